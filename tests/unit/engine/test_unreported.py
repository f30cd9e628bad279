"""A table that the catalog lacks stays in the stream until it is reported dropped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from replicators.connectors.capabilities import ColumnKnowledge
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.connectors.schema.policy import SchemaPolicy
from runners.engine.capture.stream import Streaming
from runners.engine.store.protocol import TableRow, TableState

NAME = TableId("shop", "t")
COPY = TableSchema(NAME, (), native_id=7)
ROW = TableRow(NAME, state=TableState.REPLICATING, schema=COPY, is_snapshot_done=True)


def carried(row: TableRow, *, last: TableSchema | None = None, found: bool = False) -> Any:
    """What is added to a description without the table."""

    class Rows:
        def tables(self) -> list[TableRow]:
            return [row]

    streaming: Any = object.__new__(Streaming)
    streaming._store, streaming._policy = Rows(), SchemaPolicy.EVOLVE
    streaming._columns = ColumnKnowledge.BY_CATALOG
    streaming._chosen = (TableSelection(NAME),)
    streaming._schemas = {NAME: last} if last else {}
    return streaming._unreported([COPY] if found else [])


def test_a_table_that_is_away_for_a_moment_is_not_left_out_of_the_segments() -> None:
    """Found by the adversary (see test_described). What a segment's head does not name is not
    decoded, and nothing tells so."""
    assert carried(ROW) == [COPY]
    last = replace(COPY, layout=((1, "id", 20),))
    assert carried(ROW, last=last) == [last], "the last description says more than the copy's"
    assert carried(ROW, found=True) == []


def test_one_that_was_reported_dropped_is() -> None:
    """Guards `VANISHED` in `Streaming._unreported`: carried on in every head, a table that is gone
    would be described by its last schema for ever."""
    gone = replace(ROW, state=TableState.FAILING, error_code="source:table-missing")
    assert carried(gone) == []


def test_one_that_nobody_ever_described_can_not_be_named() -> None:
    """Guards `Streaming._unreported` for a table without any known schema: there is nothing to put
    into a head, and no number to tell its rows by."""
    assert carried(replace(ROW, schema=None, is_snapshot_done=False)) == []
