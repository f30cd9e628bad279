"""The tables of the in-memory source: some that always exist, and those that tests created in its
database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import (
    Column,
    TableId,
    TableSchema,
    TableSelection,
    TableSummary,
)
from replicators.connectors.model.types import Int, Json, String, Timestamp, Unsupported
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.memory.database import database
from replicators.sources.memory.params import MemoryParams

_ID = Column("id", Int(64), "bigint", nullable=False, ordinal=1)
TABLES = {
    t.id: t
    for t in (
        TableSchema(
            TableId("shop", "customers"),
            (_ID, Column("name", String(80), "varchar(80)", ordinal=2)),
            ("id",),
            ("id",),
            101,
        ),
        TableSchema(
            TableId("shop", "orders"),
            (
                _ID,
                Column("details", Json(), "jsonb", ordinal=2),
                Column("made_at", Timestamp(6, True), "timestamptz", ordinal=3),
            ),
            ("id",),
            ("id",),
            102,
        ),
        TableSchema(
            TableId("shop", "page_views"),
            (Column("path", String(), "text", ordinal=1),),
            native_id=103,
        ),
        TableSchema(
            TableId("shop", "places"),
            (_ID, Column("shape", Unsupported("polygon"), "polygon", ordinal=2)),
            ("id",),
            ("id",),
            104,
        ),
    )
}


def require_reachable(params: MemoryParams) -> None:
    """Raise the error that the parameters ask for, if any."""
    if params.fault == "unreachable":
        raise ReplicationError("source:unreachable", host=params.host, port=params.port)
    if params.fault == "login":
        raise ReplicationError("source:login-refused")
    if params.fault == "crash":
        raise RuntimeError(f"driver text with {params.password}")


def _chosen(table: TableSchema, columns: tuple[str, ...]) -> TableSchema:
    if not columns:
        return table
    kept = tuple(c for c in table.columns if c.name in columns or c.name in table.key)
    return TableSchema(table.id, kept, table.key, table.primary_key, table.native_id)


class MemoryCatalog(Closing):
    """`Catalog` over `TABLES` and the database's tables."""

    def __init__(self, params: MemoryParams) -> None:
        require_reachable(params)
        self._tables = {**TABLES, **database(params.host).tables}

    def list_tables(self) -> list[TableSummary]:
        return [
            TableSummary(t.id, 10, 1000, bool(t.key), len(t.columns))
            for t in sorted(self._tables.values(), key=lambda t: t.id)
        ]

    def describe(self, tables: Sequence[TableSelection]) -> dict[TableId, TableSchema]:
        return {
            t.id: replace(_chosen(self._tables[t.id], t.columns), filter=t.filter)
            for t in tables
            if t.id in self._tables
        }

    def close(self) -> None:
        """Nothing is open."""
