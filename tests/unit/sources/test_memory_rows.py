"""The in-memory source gives rows by key, as a source that can be asked does."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from replicators.connectors import registry
from replicators.connectors.model.schema import TableId
from replicators.connectors.params import parse
from replicators.sources.memory.catalog import TABLES
from replicators.sources.memory.database import database, insert


def test_only_rows_of_the_keys_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards `MemoryRows.read`, on which tests of filling rest: rows that were not asked for would
    hide that a filler takes any row."""
    table, held = TABLES[TableId("shop", "orders")], database("rows.example")
    at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    there = [{"id": n, "details": "{}", "made_at": at} for n in (1, 2, 3)]
    monkeypatch.setitem(held.tables, table.id, table)
    held.commit(*(insert(table.id, row) for row in there))
    plugin = registry.sources()["memory"]
    assert plugin.row_reader is not None
    with plugin.row_reader(parse(plugin.params, {"host": "rows.example"})) as reader:
        found, position = reader.read(table, pa.table({"id": pa.array([2, 3, 4], pa.int64())}))
    assert found.schema == table.arrow_schema()
    assert [r["id"] for r in found.to_pylist()] == [2, 3]
    assert position == held.end
