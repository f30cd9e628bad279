"""Where the ranges of a batch's keys may be written."""

from __future__ import annotations

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, LogicalType, String
from replicators.connectors.sql import engines
from replicators.connectors.sql.dialect import SqlDialect
from replicators.connectors.sql.merge.parts import ranges
from replicators.connectors.target import FoldedBatch, KeyRange


def _written(dialect: SqlDialect, kind: LogicalType, low: object, high: object) -> str:
    columns = (Column("id", kind, "", nullable=False),)
    schema = TableSchema(TableId("s", "t"), columns, ("id",), ("id",))
    return ranges(dialect, FoldedBatch(schema, (), 1, 1, ranges=(KeyRange(low, high),)), "")


def test_ranges_of_text_are_left_out_where_a_collation_orders_it() -> None:
    """Guards CORRECTNESS 11: ranges are made in the order of bytes. Under PostgreSQL's collations
    `a` lies between `A` and `B`, so a range would miss keys, and a merge would add them again."""
    postgresql = engines.postgresql(lambda _: "text")
    assert _written(postgresql, String(), "A", "B") == ""
    assert "BETWEEN" in _written(engines.duckdb(lambda _: "text"), String(), "A", "B")
    numbers = engines.postgresql(lambda _: "bigint")
    assert "BETWEEN" in _written(numbers, Int(64), 1, 9)
