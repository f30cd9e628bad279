"""The clock's two tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replicators.sources.clock.params import ClockParams

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import (
    Column,
    TableId,
    TableSchema,
    TableSelection,
    TableSummary,
)
from replicators.connectors.model.types import Int, String, Timestamp, Unsupported
from replicators.connectors.problems.errors import ReplicationError

MINUTE = Column("minute", Int(64), "count", nullable=False, ordinal=1)
TABLES = {
    t.id: t
    for t in (
        TableSchema(
            TableId("hall", "strikes"),
            (MINUTE, Column("at", Timestamp(zone=True), "time", ordinal=2)),
            ("minute",),
            ("minute",),
        ),
        TableSchema(
            TableId("hall", "bells"),
            (
                MINUTE,
                Column("name", String(), "word", ordinal=2),
                Column("sound", Unsupported("clang"), "clang", ordinal=3),
            ),
            ("minute",),
            ("minute",),
        ),
    )
}


def require_going(params: ClockParams) -> None:
    """`source:clock-stopped` where it does not go."""
    if params.winding == 0:
        raise ReplicationError("source:clock-stopped", place=params.place)


class ClockCatalog(Closing):
    """`Catalog` over `TABLES`."""

    def __init__(self, params: ClockParams) -> None:
        require_going(params)

    def list_tables(self) -> list[TableSummary]:
        return [TableSummary(t.id, 60, 960, True, len(t.columns)) for t in TABLES.values()]

    def describe(self, tables: Sequence[TableSelection]) -> dict[TableId, TableSchema]:
        return {t.id: _chosen(TABLES[t.id], t.columns) for t in tables if t.id in TABLES}


def _chosen(table: TableSchema, names: tuple[str, ...]) -> TableSchema:
    kept = tuple(c for c in table.columns if not names or c.name in names or c.name in table.key)
    return replace(table, columns=kept)
