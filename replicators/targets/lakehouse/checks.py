"""Preflight of a lakehouse: checks catalog and warehouse, and names that are taken or shared. Needs
no Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from replicators.connectors.addresses import local_path
from replicators.connectors.closing import Closing
from replicators.connectors.looks import store
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import driver_of
from replicators.connectors.problems.names import shared_names
from replicators.connectors.problems.problem import Problem, Severity
from replicators.connectors.storage import Storage, looked, tried
from replicators.connectors.target import FitKind
from replicators.connectors.view_fields import view_problems
from replicators.targets.lakehouse import catalog, held, layout, listing, looks, naming, trial
from replicators.targets.lakehouse.errors import code_of
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.state import OWNER
from replicators.targets.lakehouse.types import fit

_KNOWN = frozenset({"target:storage-full", "target:not-writable", "target:unreachable"})
_ANY_REPLICATOR = "0" * 36


class LakehouseChecks(Closing):
    """Reads the target as a reader would: through the catalog's database and the warehouse's
    storage."""

    def __init__(self, params: LakehouseParams) -> None:
        self.params = params

    def close(self) -> None:
        """Nothing stays open."""

    def connection(self) -> list[Problem]:
        """Check that the catalog can be opened, and that the warehouse's folder can be written or
        its object store answers. Makes and changes nothing."""
        problems = [self._warehouse()]
        if self.params.format == "iceberg":
            problems.append(self._catalog())
        else:
            problems.append(_tried(lambda: import_module("deltalake"), "target:unreachable"))
        if self.params.is_listed:
            problems.append(self._server())
        return list({p: None for p in problems if p})

    def _warehouse(self) -> Problem | None:
        if self.params.is_lent:  # without a table there are no keys to look with
            return None
        url = self.params.warehouse_url
        path = local_path(url)
        if path:
            return looks.folder(path)
        if self.params.store.is_tried:
            return looked(self.params.store, url)
        found = _tried(lambda: store(url), "target:unreachable")
        if found:
            return found
        return Problem.of("target:store-classes", severity=Severity.WARNING)

    def _catalog(self) -> Problem | None:
        if self.params.is_served:
            return self._server()
        path = catalog.path(self.params)
        found = looks.database(path) if path else None
        if found is not None or (path and not os.path.exists(path)):
            return found
        return _tried(lambda: catalog.is_there(self.params), "target:unreachable")

    def _server(self) -> Problem | None:
        """What opening the catalog finds."""
        try:
            catalog.is_there(self.params)
        except Exception as err:  # noqa: BLE001 - whatever a driver raises becomes a problem the user sees
            return trial.of_server(err, "open the warehouse", self.params)
        return None

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        """Report names that two tables would share, names that are taken, and types that do not
        fit. In a bucket, also try whether files can be written, read, listed and removed; in a
        REST catalog and in Glue, whether it makes and drops a namespace and a table."""
        found = self._shared(tables) + self._kept(tables) + [p for t in tables for p in _columns(t)]
        per_format = _cases if self.params.format == "delta" else _reserved
        found += [p for t in tables for p in per_format(t)]
        found += self._layouts(tables) + self._unfit(tables)
        try:
            owners = self._owners([t.id for t in tables])
        except Exception as err:  # noqa: BLE001 - whatever a driver raises becomes a problem the user sees
            return [*found, self._of_reading(err)]
        for table, owner in owners.items():
            if owner != replicator or not replicator:
                target = ".".join(naming.names(self.params, table))
                found.append(Problem.of("target:table-taken", table=table, target=target))
        return found + (self._trials(tables) if tables else [])

    def views(
        self, viewed: Sequence[TableSchema], chosen: Sequence[TableSchema], replicator: str
    ) -> list[Problem]:
        """See `ViewChecks`."""
        places = {t.id: naming.names(self.params, t.id) for t in chosen}
        wanted = {t.id: naming.view(self.params, places[t.id]) for t in viewed}
        views = {table: place for table, place in wanted.items() if place is not None}
        if not views:
            return []
        try:
            taken = self._taken(views, places, replicator)
        except Exception as err:  # noqa: BLE001 - whatever a driver raises becomes a problem the user sees
            return [self._of_reading(err)]
        return list(view_problems(_plain(views), _plain(places), taken))

    def _taken(
        self,
        views: Mapping[TableId, tuple[str, str]],
        places: Mapping[TableId, tuple[str, str]],
        replicator: str,
    ) -> list[TableId]:
        kept = naming.progress_names(self.params)
        found = [table for table, place in views.items() if place == kept]
        with held.opened(self.params, None, is_look=True) as reader:
            if reader is not None:
                found += [
                    table
                    for table, place in views.items()
                    if held.is_taken(reader, self.params, places[table], place, replicator)
                ]
        return found

    def _trials(self, tables: Sequence[TableSchema]) -> list[Problem]:
        found = []
        url = self.params.warehouse_url
        if self.params.store.is_tried:
            found.append(tried(self.params.store, url))
        # In Glue and Hive, this program writes the trial's files itself
        if self.params.is_rest or (self.params.is_served and not any(found)):
            needed = {naming.names(self.params, t.id)[0] for t in tables}
            found.append(trial.failed(self.params, needed | {naming.STAGING_NAMESPACE}))
        return [problem for problem in found if problem]

    def _of_reading(self, err: Exception) -> Problem:
        if self.params.is_served:
            return trial.of_server(err, "read its tables", self.params)
        return _problem(err, "target:unreachable")

    def _shared(self, tables: Sequence[TableSchema]) -> list[Problem]:
        def place_of(table: TableId) -> tuple[str, ...]:
            return tuple(n.casefold() for n in naming.names(self.params, table))

        return list(shared_names(tables, place_of))

    def _layouts(self, tables: Sequence[TableSchema]) -> list[Problem]:
        if not (self.params.partition_by or self.params.sort_by):
            return []
        found = [
            Problem.of("target:layout-column", table=t.id, column=column, reason=reason)
            for t in tables
            for column, reason in layout.faults(self.params, t)
        ]
        unused = layout.unused(self.params, [t.id for t in tables])
        if unused:
            named = ", ".join(unused)
            found.append(Problem.of("target:layout-unused", severity=Severity.WARNING, named=named))
        return found

    def _unfit(self, tables: Sequence[TableSchema]) -> list[Problem]:
        """Names that Glue and Hive can't have."""
        if not (self.params.is_glue or self.params.is_hive):
            return []
        found = []
        for table in tables:
            names = naming.names(self.params, table.id)
            staging = ""
            if not self.params.is_listed:
                staging = naming.staging_names(names, _ANY_REPLICATOR, 1000)[1]
            if reason := naming.fault_in_lower_case(*names, staging):
                found.append(Problem.of("target:catalog-name", table=table.id, reason=reason))
        return found

    def _kept(self, tables: Sequence[TableSchema]) -> list[Problem]:
        kept = naming.progress_names(self.params)
        return [
            Problem.of("target:name-reserved", table=t.id, target=".".join(kept))
            for t in tables
            if tuple(n.casefold() for n in naming.names(self.params, t.id))
            == tuple(n.casefold() for n in kept)
        ]

    def _owners(self, tables: Sequence[TableId]) -> dict[TableId, str]:
        if self.params.format == "delta":
            owners = {t: owner for t in tables if (owner := self._delta_owner(t)) is not None}
            return owners | dict.fromkeys(self._listed_elsewhere(tables), "")
        if not catalog.is_there(self.params):
            return {}
        reader, owners = catalog.open_catalog(self.params, is_look=True), {}
        try:
            for table in tables:
                live = catalog.live_table(reader, naming.names(self.params, table))
                if live is not None:
                    owners[table] = live.owner
        finally:
            reader.close()
        return owners

    def _listed_elsewhere(self, tables: Sequence[TableId]) -> list[TableId]:
        """Tables whose name in the metastore belongs to another table."""
        if not self.params.is_listed:
            return []
        from replicators.targets.lakehouse.delta import Delta

        found, delta = [], Delta(self.params)
        reader = catalog.open_catalog(self.params, is_look=True)
        try:
            for table in tables:
                names = naming.names(self.params, table)
                entry = held.entry(reader, names)
                if entry is not None and not listing.is_at(entry, delta.folder(names)):
                    found.append(table)
        finally:
            reader.close()
        return found

    def _delta_owner(self, table: TableId) -> str | None:
        from deltalake import DeltaTable

        from replicators.targets.lakehouse.delta import Delta

        url = Delta(self.params).folder(naming.names(self.params, table))
        options = self.params.store.delta_options()
        if not DeltaTable.is_deltatable(url, options):
            return "" if Storage(self.params.store).has_folder(url) else None
        found = DeltaTable(url, storage_options=options, without_files=True)
        return str(found.metadata().configuration.get(OWNER, ""))


def _plain(places: Mapping[TableId, tuple[str, str]]) -> dict[TableId, tuple[str, ...]]:
    """The places as a catalog without upper case letters tells them apart."""
    return {table: tuple(n.casefold() for n in place) for table, place in places.items()}


def _code(err: BaseException, otherwise: str) -> str:
    code = code_of(err)
    return code if code in _KNOWN else otherwise


def _tried(act: Any, otherwise: str) -> Problem | None:
    try:
        act()
    except Exception as err:  # noqa: BLE001 - whatever a driver raises becomes a problem the user sees
        return _problem(err, otherwise)
    return None


def _problem(err: Exception, otherwise: str) -> Problem:
    if isinstance(err, ImportError):
        return Problem.of("target:driver-missing", driver=driver_of(err))
    return Problem.of(_code(err, otherwise))


def _columns(table: TableSchema) -> list[Problem]:
    found = []
    for column in table.supported:
        fitted = fit(column.type)
        facts: dict[str, Any] = {"native": column.native, "reason": fitted.reason}
        if fitted.kind is FitKind.UNSUPPORTED:
            found.append(
                Problem.of("target:column-unsupported", table=table.id, column=column.name, **facts)
            )
        elif fitted.kind is FitKind.LOSSY:
            facts["target_type"] = fitted.native
            found.append(
                Problem.of(
                    "target:column-lossy",
                    severity=Severity.WARNING,
                    table=table.id,
                    column=column.name,
                    **facts,
                )
            )
    return found


def _reserved(table: TableSchema) -> list[Problem]:
    return [
        Problem.of("target:column-reserved", table=table.id, column=name)
        for name in naming.reserved_by_iceberg(table)
    ]


def _cases(table: TableSchema) -> list[Problem]:
    found = []
    names: dict[str, str] = {}
    for column in table.supported:
        if column.name.casefold() in names:
            found.append(Problem.of("target:column-case", table=table.id, column=column.name))
        names.setdefault(column.name.casefold(), column.name)
    return found
