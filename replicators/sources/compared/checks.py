"""What is wrong before a run: with the path and the state, and with the chosen tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replicators.connectors import files, looks
from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import Column, TableId, TableSchema, TableSelection
from replicators.connectors.model.types import Bytes, Float, Json, Unsupported
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem, Severity
from replicators.sources.compared.arrivals import arrivals
from replicators.sources.compared.catalog import ComparedCatalog
from replicators.sources.compared.columns import key_of
from replicators.sources.compared.errors import reading
from replicators.sources.compared.params import ComparedParams

_NO_KEY_TYPES = (Float, Json, Bytes)


class ComparedChecks(Closing):
    """`Checks`."""

    def __init__(self, params: ComparedParams) -> None:
        self._params = params

    def connection(self) -> list[Problem]:
        try:
            found = arrivals(self._params)
            problem = self._state_problem()
        except ReplicationError as err:
            return [_problem(err)]
        nothing = [] if found else [Problem.of("source:no-files", severity=Severity.WARNING)]
        return [*nothing, *([problem] if problem is not None else [])]

    def _state_problem(self) -> Problem | None:
        root = self._params.state_root
        if not files.is_url(root):
            return looks.folder(root)
        with reading("state"):
            looks.store(root)
        return None

    def tables(self, tables: Sequence[TableSelection]) -> list[Problem]:
        try:
            catalog = ComparedCatalog(self._params)
        except ReplicationError as err:
            return [_problem(err)]
        return [p for table in tables for p in self._of_table(catalog, table)]

    def _of_table(self, catalog: ComparedCatalog, table: TableSelection) -> Iterator[Problem]:
        try:
            schema = catalog.describe([TableSelection(table.id)]).get(table.id)
        except ReplicationError as err:
            yield _problem(err, table.id)
            return
        if schema is None:
            yield Problem.of("source:table-missing", table=table.id)
            return
        yield from self._of_key(schema)
        for column in schema.columns:
            is_chosen = not table.columns or column.name in table.columns
            if is_chosen and isinstance(column.type, Unsupported):
                yield Problem.of(
                    "source:column-unsupported",
                    severity=Severity.WARNING,
                    table=table.id,
                    column=column.name,
                    native=column.native,
                )

    def _of_key(self, schema: TableSchema) -> Iterator[Problem]:
        named = key_of(self._params, schema.id.name)
        if not named:
            yield Problem.of("source:no-key-named", table=schema.id)
        known: dict[str, Column] = {c.name: c for c in schema.columns}
        for name in named:
            if name not in known:
                columns = ", ".join(known)
                yield Problem.of(
                    "source:key-column-missing", table=schema.id, column=name, columns=columns
                )
            elif isinstance(known[name].type, _NO_KEY_TYPES):
                native = known[name].native
                yield Problem.of(
                    "source:key-column-type", table=schema.id, column=name, native=native
                )

    def close(self) -> None:
        """Nothing is open."""


def _problem(err: ReplicationError, table: TableId | None = None) -> Problem:
    facts = {k: v for k, v in err.facts.items() if k not in ("code", "severity")}
    return Problem.of(err.code, table=err.table or table, **facts)  # type: ignore[arg-type]
