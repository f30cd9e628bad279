"""The tables of the files: their names come from the path, their columns from the newest
delivery."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import (
    TableId,
    TableSchema,
    TableSelection,
    TableSummary,
)
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.compared.arrivals import arrivals
from replicators.sources.compared.columns import described, newest_of, seen_tables
from replicators.sources.compared.params import ComparedParams


class ComparedCatalog(Closing):
    """`Catalog` over the files of the path, and over the tables that were compared before."""

    def __init__(self, params: ComparedParams) -> None:
        self._params = params
        self._newest = newest_of(arrivals(params))
        self._seen: frozenset[str] = frozenset()
        with suppress(ReplicationError):  # the state may not be there yet
            self._seen = frozenset(seen_tables(params))

    def list_tables(self) -> list[TableSummary]:
        names = sorted({*self._newest, *self._seen})
        return [self._summary(name) for name in names]

    def _summary(self, name: str) -> TableSummary:
        newest = self._newest.get(name)
        table = TableId(self._params.schema_name, name)
        try:
            schema = described(self._params, name, newest)
        except ReplicationError:
            schema = None  # the assessment says why
        return TableSummary(
            table,
            None,
            newest.size if newest else None,
            bool(schema and schema.key),
            len(schema.columns) if schema else 0,
        )

    def describe(self, tables: Sequence[TableSelection]) -> dict[TableId, TableSchema]:
        found = {}
        for table in tables:
            if table.id.schema != self._params.schema_name:
                continue
            newest = self._newest.get(table.id.name)
            schema = described(self._params, table.id.name, newest)
            if schema is not None:
                found[table.id] = _chosen(schema, table.columns)
        return found

    def close(self) -> None:
        """Nothing is open."""


def _chosen(schema: TableSchema, names: tuple[str, ...]) -> TableSchema:
    if not names:
        return schema
    kept = tuple(c for c in schema.columns if c.name in names or c.name in schema.key)
    return replace(schema, columns=kept)
