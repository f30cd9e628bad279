"""Preflight of BigQuery: credentials, rights by name, dataset and location, and names. Changes
nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError, driver_of
from replicators.connectors.problems.lookup import message_of
from replicators.connectors.problems.message import Scope
from replicators.connectors.problems.names import shared_names
from replicators.connectors.problems.problem import Problem, Severity
from replicators.connectors.sql.client import Names
from replicators.connectors.sql.taken import Owners, row_of
from replicators.connectors.target import FitKind
from replicators.connectors.view_fields import view_problems
from replicators.targets.bigquery import dialect, layout, naming
from replicators.targets.bigquery.client import BigQueryClient
from replicators.targets.bigquery.connection import open_client
from replicators.targets.bigquery.errors import code_of, reason_of
from replicators.targets.bigquery.params import BigQueryParams
from replicators.targets.bigquery.types import fit

if TYPE_CHECKING:
    from google.api_core.retry import Retry
    from google.cloud import bigquery

ANSWER_SECONDS = 8.0
DAY_MS = 86_400_000
PROBE = "_replicator_probe"
_RIGHT = re.compile(r"bigquery\.[a-z]+\.[a-zA-Z]+")
TABLE_RIGHTS = (
    "bigquery.tables.get",
    "bigquery.tables.getData",
    "bigquery.tables.update",
    "bigquery.tables.updateData",
    "bigquery.tables.delete",
)
"""The rights that a copy needs on its table. The service can say them for a table that exists."""


class BigQueryChecks(Closing):
    """Asks BigQuery what the account may do. Dry runs are checked like real ones, and change and
    cost nothing."""

    def __init__(self, params: BigQueryParams) -> None:
        self.params = params
        self._client: bigquery.Client | None = None

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()

    def _opened(self) -> bigquery.Client:
        if self._client is None:
            self._client = open_client(self.params)
        return self._client

    @staticmethod
    def _retry() -> Retry:
        """A check is not repeated for long: a person waits for it."""
        from google.cloud.bigquery import DEFAULT_RETRY

        return DEFAULT_RETRY.with_timeout(ANSWER_SECONDS / 4)

    def connection(self) -> list[Problem]:
        """Credentials, the right to run jobs, and the dataset: where it lies, or whether it may be
        made."""
        try:
            self._dry("SELECT 1")
            found = self._may_list_jobs()
            found += self._dataset() if self.params.dataset else self._may_make_datasets()
            return found
        except Exception as err:  # noqa: BLE001 - whatever a driver raises becomes a problem the user sees
            return [self._problem(err, "project")]

    def _dry(self, sql: str) -> bigquery.QueryJob:
        from google.cloud import bigquery

        config = bigquery.QueryJobConfig(dry_run=True, use_query_cache=False)
        return self._opened().query(
            sql,
            job_config=config,
            retry=self._retry(),
            job_retry=self._retry(),
            timeout=ANSWER_SECONDS,
        )

    def _may_list_jobs(self) -> list[Problem]:
        """Whether jobs that a killed process left running can be found, to be awaited. Without
        that, a merge that such a job ends later leads to a re-sync."""
        from google.api_core.exceptions import Forbidden

        try:
            list(self._opened().list_jobs(max_results=1, timeout=ANSWER_SECONDS))
        except Forbidden:
            place = f"project `{self.params.project}`"
            known: dict[str, Any] = {"right": "bigquery.jobs.list", "place": place}
            code = "target:bigquery-right-missing"
            return [Problem.of(code, severity=Severity.WARNING, **known)]
        return []

    def _dataset(self) -> list[Problem]:
        from google.api_core.exceptions import NotFound

        name = self.params.dataset
        try:
            found = self._opened().get_dataset(
                f"{self.params.project}.{name}", retry=self._retry(), timeout=ANSWER_SECONDS
            )
        except NotFound:
            known: dict[str, Any] = {"dataset": name, "location": self.params.location}
            made = Problem.of("target:bigquery-dataset-new", severity=Severity.INFO, **known)
            return [made, *self._may_make_datasets()]
        return [*self._elsewhere(found), *_expiring(found), *self._may_make_tables(name)]

    def _elsewhere(self, found: bigquery.Dataset) -> list[Problem]:
        there, wanted = str(found.location or ""), self.params.location
        if self.params.is_emulated or not there or there.lower() == wanted.lower():
            return []
        facts: dict[str, Any] = {"dataset": found.dataset_id, "found": there, "location": wanted}
        return [Problem.of("target:bigquery-location", **facts)]

    def _may_make_datasets(self) -> list[Problem]:
        """Whether datasets may be made, by a dry run of it."""
        name = dialect.quoted((self.params.project, PROBE))
        return self._tried(f"CREATE SCHEMA {name}", "the project")

    def _may_make_tables(self, dataset: str) -> list[Problem]:
        name = dialect.quoted((self.params.project, dataset, PROBE))
        return self._tried(f"CREATE TABLE {name} (id INT64)", f"dataset `{dataset}`")

    def _tried(self, sql: str, place: str) -> list[Problem]:
        try:
            self._dry(sql)
        except Exception as err:  # noqa: BLE001 - whatever a driver raises becomes a problem the user sees
            return [self._problem(err, place)]
        return []

    def _problem(self, err: BaseException, place: str) -> Problem:
        """The problem of what a driver raised. A refusal names the right where the service does."""
        if isinstance(err, ReplicationError):
            return Problem(err.code, facts=tuple(err.facts.items()))
        if isinstance(err, ImportError):
            return Problem.of("target:driver-missing", driver=driver_of(err))
        code, right = code_of(err), _RIGHT.search(str(err))
        if code == "target:bigquery-denied" and right:
            where = place if place != "project" else f"project `{self.params.payer}`"
            return Problem.of("target:bigquery-right-missing", right=right[0], place=where)
        if code == "target:table-missing":
            code = "target:bigquery-project"
        known: dict[str, Any] = {"project": self.params.project, "reason": reason_of(err)[0]}
        if message_of(code).scope is Scope.TABLE or code == "internal:unexpected":
            code = "target:unreachable"
        return Problem.of(code, **known)

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        """Names that two tables or columns would share, names that are changed or taken, types that
        do not fit, and rights on tables that exist."""
        found = self._shared(tables)
        for table in tables:
            found += [*_names(self.params, table), *_columns(table), *_layout(table)]
        try:
            for table in tables:
                found += self._taken(table.id, replicator)
        except Exception as err:  # noqa: BLE001 - whatever a driver raises becomes a problem the user sees
            found.append(self._problem(err, "project"))
        return found

    def _shared(self, tables: Sequence[TableSchema]) -> list[Problem]:
        def place_of(table: TableId) -> tuple[str, ...]:
            return tuple(n.casefold() for n in naming.names(self.params, table))

        return list(shared_names(tables, place_of))

    def _taken(self, table: TableId, replicator: str) -> list[Problem]:
        """A table of somebody else's, or one of ours on which a right is missing."""
        client = BigQueryClient(self._opened(), self.params)
        names = naming.names(self.params, table)
        live = client.table(names)
        if live is None:
            return []
        row = row_of(client, names)
        is_own = row is not None and row.replicator == replicator and bool(replicator)
        if not is_own and (row is not None or self.params.existing_tables == "refuse"):
            return [Problem.of("target:table-taken", table=table, target=".".join(names))]
        return self._rights(names) if is_own else []

    def views(
        self, viewed: Sequence[TableSchema], chosen: Sequence[TableSchema], replicator: str
    ) -> list[Problem]:
        """See `ViewChecks`."""
        tables = {t.id: naming.names(self.params, t.id) for t in chosen}
        wanted = {t.id: naming.view(self.params, tables[t.id]) for t in viewed}
        views = {table: place for table, place in wanted.items() if place is not None}
        if not views:
            return []
        try:
            client = BigQueryClient(self._opened(), self.params)
            own = Owners(client)
            taken = [t for t, p in views.items() if not own.has_view(tables[t], p, replicator)]
        except Exception as err:  # noqa: BLE001 - whatever a driver raises becomes a problem the user sees
            return [self._problem(err, "project")]

        def folded(places: Mapping[TableId, Names]) -> dict[TableId, Names]:
            return {t: tuple(n.casefold() for n in p) for t, p in places.items()}

        return list(view_problems(folded(views), folded(tables), taken))

    def _rights(self, names: tuple[str, ...]) -> list[Problem]:
        place = f"table `{'.'.join(names)}`"
        if self.params.is_emulated:
            return []
        told = self._opened().test_iam_permissions(
            ".".join(names), TABLE_RIGHTS, retry=self._retry(), timeout=ANSWER_SECONDS
        )
        has = set(told.get("permissions", ()))
        return [
            Problem.of("target:bigquery-right-missing", right=right, place=place)
            for right in TABLE_RIGHTS
            if right not in has
        ]


def _expiring(found: bigquery.Dataset) -> list[Problem]:
    expires = found.default_table_expiration_ms
    if not expires:
        return []
    days = round(expires / DAY_MS, 1)
    facts: dict[str, Any] = {"dataset": found.dataset_id, "days": days}
    return [Problem.of("target:bigquery-expires", severity=Severity.WARNING, **facts)]


def _names(params: BigQueryParams, table: TableSchema) -> list[Problem]:
    *_, dataset, made = naming.names(params, table.id)
    pairs = [(table.id.name, made)]
    if not params.dataset:
        pairs.append((table.id.schema, dataset))
    found = [_renamed(table, was, now) for was, now in pairs if was != now]
    found += [
        _renamed(table, c.name, naming.column(c.name), c.name)
        for c in table.supported
        if naming.column(c.name) != c.name
    ]
    found += [
        Problem.of("target:bigquery-columns", table=table.id, column=column, other=other)
        for column, other in naming.shared(params, table)
    ]
    return found


def _renamed(table: TableSchema, was: str, made: str, column: str | None = None) -> Problem:
    return Problem.of(
        "target:bigquery-renamed", severity=Severity.INFO, table=table.id, column=column,
        name_there=was, made=made,
    )  # fmt: skip


def _columns(table: TableSchema) -> list[Problem]:
    found = []
    for column in table.supported:
        fitted = fit(column.type)
        facts: dict[str, Any] = {"native": column.native, "reason": fitted.reason}
        if fitted.kind is FitKind.UNSUPPORTED:
            code, severity = "target:column-unsupported", Severity.ERROR
        elif fitted.kind is FitKind.LOSSY:
            code, severity = "target:column-lossy", Severity.WARNING
            facts["target_type"] = fitted.native
        else:
            continue
        found.append(
            Problem.of(code, severity=severity, table=table.id, column=column.name, **facts)
        )
    return found


def _layout(table: TableSchema) -> list[Problem]:
    shown = naming.renamed(table)
    if not shown.key or layout.clustered(shown):
        return []
    return [Problem.of("target:bigquery-unclustered", severity=Severity.WARNING, table=table.id)]
