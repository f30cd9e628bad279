"""Rows of a table that a segment does not name (CORRECTNESS: no silent hole)."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from replicators.connectors.model.schema import TableId, TableSchema
from runners.engine.decode.thread import Decoding, missed
from runners.engine.store.protocol import MemoryStore, TableRow, TableState

NAME = TableId("shop", "t")
ROW = TableRow(
    NAME, state=TableState.REPLICATING, schema=TableSchema(NAME, (), native_id=7),
    is_snapshot_done=True, snapshot_position=100,
)  # fmt: skip


@pytest.mark.parametrize(
    ("row", "passed", "reported"),
    [
        (ROW, {7: 100}, True),
        (ROW, {7: 99}, False),
        (ROW, {8: 100}, False),
        (replace(ROW, is_resync_asked=True), {7: 100}, False),
        (replace(ROW, state=TableState.SNAPSHOTTING), {7: 100}, False),
        (replace(ROW, state=TableState.FAILING), {7: 100}, False),
        (replace(ROW, schema=None), {7: 100}, False),
    ],
)
def test_only_a_copy_that_should_have_the_rows_has_a_hole(
    row: TableRow, passed: Mapping[int, int], reported: bool
) -> None:
    """Guards against a hole that nobody sees, and against fresh copies for rows from before the
    copy, or of a removed table."""
    assert missed([row], passed) == ([NAME] if reported else [])


def test_a_file_that_was_pruned_while_it_was_read_is_not_decoded_again() -> None:
    """Guards a rewind that is overtaken by the end of the keep time: a segment that is gone can't
    be decoded, and to try would end the run with every table in it."""
    nothing: Any = None
    decoding = Decoding(
        nothing, "", MemoryStore(), nothing, nothing, nothing, threading.Event(),
        lambda table, code, _: None,
    )  # fmt: skip
    decoding.again(7)


def test_a_hole_from_before_the_copy_was_done_is_reported_once_it_is() -> None:
    """Guards the time between a copy's view and its end, when nobody knows yet what the copy
    holds."""
    faults: list[tuple[TableId, str]] = []
    nothing: Any = None
    decoding = Decoding(
        nothing, "", nothing, nothing, nothing, nothing, threading.Event(),
        lambda table, code, _: faults.append((table, code)),
    )  # fmt: skip
    decoding._tell_missed([replace(ROW, state=TableState.SNAPSHOTTING)], {7: 120})
    decoding._tell_missed([replace(ROW, state=TableState.SNAPSHOTTING)], {7: 110, 9: 1})
    assert faults == []
    decoding._tell_missed([ROW], {})
    assert faults == [(NAME, "log:rows-passed-over")]
    decoding._tell_missed([replace(ROW, snapshot_position=121)], {})
    assert len(faults) == 1
