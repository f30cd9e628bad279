"""Preflight of a Spanner target: whether the database answers, and which names and keys it takes.
Makes and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import Array
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.names import shared_names
from replicators.connectors.problems.problem import Problem, Severity
from replicators.connectors.sql.checks import problem_of
from replicators.connectors.sql.state import COLUMNS, PROGRESS
from replicators.targets.spanner import naming
from replicators.targets.spanner.client import SpannerClient
from replicators.targets.spanner.params import NAME, SpannerParams
from replicators.targets.spanner.service import Service

ANSWER_SECONDS = 2.0
MOST_COLUMNS, MOST_KEYS = 1017, 15
"""Spanner has 1,024 columns and 16 of a key; a mode adds some."""
OWN = "_replicator"


class SpannerChecks(Closing):
    """See `connectors.target.TargetChecks`."""

    def __init__(self, params: SpannerParams) -> None:
        self.params = params

    def close(self) -> None:
        """Nothing is held."""

    def _client(self) -> SpannerClient:
        client = SpannerClient(self.params)
        client.service = Service(self.params, seconds=ANSWER_SECONDS)
        return client

    def connection(self) -> list[Problem]:
        """Whether one can sign in and read the catalog."""
        try:
            with closing(self._client()) as client:
                client.table((PROGRESS,))
        except ReplicationError as err:
            return [problem_of(err)]
        return []

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        """Names, keys, and tables that are taken."""
        places = {t.id: naming.names(self.params, t.id) for t in tables}
        found = [p for t in tables for p in self._named(t, places[t.id][-1])]
        found += shared_names(tables, lambda table: (places[table][-1].casefold(),))
        try:
            with closing(self._client()) as client:
                has_progress = client.table((PROGRESS,)) is not None
                there = {n.casefold() for n in client.tables((), "")}
                for table, place in places.items():
                    if place[-1].casefold() not in there:
                        continue
                    owner = _owner(client, place[-1]) if has_progress else ""
                    if not replicator or owner != replicator:
                        taken = Problem.of("target:table-taken", table=table, target=place[-1])
                        found.append(taken)
        except ReplicationError as err:
            found.append(problem_of(err))
        return found

    def _named(self, table: TableSchema, name: str) -> Iterator[Problem]:
        if name.startswith(OWN):
            yield Problem.of("target:name-reserved", table=table.id, target=name)
        for one in (name, *(c.name for c in table.supported)):
            there = naming.encoded(one)
            if not NAME.fullmatch(there):
                yield Problem.of("target:spanner-name", table=table.id, name=one)
            elif there != one:
                yield Problem.of(
                    "target:spanner-renamed", severity=Severity.INFO, table=table.id,
                    name_there=one, made=there,
                )  # fmt: skip
        for what, count, most in (
            ("columns", len(table.supported), MOST_COLUMNS),
            ("columns of the key", len(table.key), MOST_KEYS),
        ):
            if count > most:
                yield Problem.of(
                    "target:spanner-wide", table=table.id, what=what, count=count, most=most
                )
        yield from self._columns(table)

    def _columns(self, table: TableSchema) -> Iterator[Problem]:
        seen: dict[str, str] = {}
        for column in table.supported:
            other = seen.setdefault(column.name.casefold(), column.name)
            if other != column.name:
                yield Problem.of(
                    "target:column-case", table=table.id, column=column.name, other=other
                )
        if self.params.commit_column.casefold() in seen:
            yield Problem.of(
                "target:spanner-column", table=table.id, column=self.params.commit_column
            )
        for key in table.key:
            if isinstance(table.column(key).type, Array):
                yield Problem.of("target:spanner-key", table=table.id, column=key)


def _owner(client: SpannerClient, name: str) -> str:
    """The replicator whose copy a table is; empty: nobody's."""
    import pyarrow as pa

    rows = client.read((PROGRESS,), COLUMNS, pa.table({"target_table": [name]}))
    return str(rows.column("replicator")[0]) if rows.num_rows else ""
