"""Where the stream is cut for a schema that differs from what was described."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicators.connectors.model.schema import TableSchema
from replicators.sources.postgresql.blocks import BlockCutter, origin_of
from replicators.sources.postgresql.offsets import Identity
from tests.unit.sources.pgoutput_messages import TEXT, FakeTable, Sent, begin, commit

ITEMS = FakeTable(70, "items", (Sent("id", is_key=True), Sent("note", TEXT)))


def described(table: FakeTable) -> TableSchema:
    layout = tuple((i, c.name, c.oid) for i, c in enumerate(table.columns, 1))
    return replace(table.schema, layout=layout)


@pytest.mark.parametrize(
    ("sent", "version"),
    [
        (ITEMS, 0),
        (replace(ITEMS, columns=(*ITEMS.columns, Sent("new", TEXT))), 1),
        (replace(ITEMS, columns=(ITEMS.columns[0], Sent("renamed", TEXT))), 1),
        (replace(ITEMS, columns=ITEMS.columns[:1]), 1),
        (replace(ITEMS, oid=71), 0),
    ],
)
def test_a_first_relation_that_was_not_described_so_begins_a_segment(
    sent: FakeTable, version: int
) -> None:
    """Without it, the segment's head would not have a column that was added while the table was
    idle, and its values in the first rows would be left out."""
    cutter = BlockCutter(0, Identity("1", 1), is_binary=True)
    cutter.expect([described(ITEMS)])
    cutter.place(begin())
    cutter.relation(sent.relation())
    assert cutter.context_version == version
    cutter.relation(sent.relation())
    assert cutter.context_version == version


def test_a_transaction_of_an_origin_is_left_out() -> None:
    """What older servers than 16 send of it is dropped, its table's description is kept, and the
    position moves on."""
    cutter = BlockCutter(0, Identity("1", 1), is_binary=True)
    cutter.expect([described(ITEMS)])
    message = b"O" + bytes(8) + b"from_b\0"
    assert origin_of(message) == "from_b"
    for is_left_out in (False, True, False):
        cutter.place(begin())
        if is_left_out:
            cutter.skip()
            cutter.skip()
        cutter.relation(ITEMS.relation())
        cutter.place(ITEMS.insert("1", "note"))
        cutter.place(commit())
    cutter.emit_closed()
    (block,) = cutter.ready
    assert block.data.count(b"note") == 2 + 2  # a Relation has the column's name
    assert block.messages == 8
    cutter.place(begin())
    cutter.skip()
    cutter.place(ITEMS.insert("1", "note"))
    cutter.place(commit())
    cutter.emit_closed()
    assert len(cutter.ready) == 1
    assert not cutter.is_open
