"""When a merge begins, and when it waits for more of the log (`runners.engine.pacing`)."""

from __future__ import annotations

from dataclasses import replace

from replicators.connectors.model.positions import Position
from runners.engine.changelog.backlog import Backlog
from runners.engine.pacing import AHEAD_BYTES, ENOUGH_BYTES, HOLD_SECONDS, LEVEL_BYTES, Pacing
from runners.engine.store.protocol import SegmentRow
from tests.unit.engine.changes import SCHEMA
from tests.unit.engine.test_frontier import change_file

TABLE = SCHEMA.id


class Paced:
    """A table whose log is captured and decoded by hand, on a clock that stands still."""

    def __init__(self) -> None:
        self.backlog = Backlog([], 0)
        self.now = 100.0
        self.spared = 0.0
        self.is_in_bulk = False
        self.pacing = Pacing(
            self.backlog, 1.0, lambda _: self.spared, lambda: self.now,
            is_in_bulk=lambda: self.is_in_bulk,
        )  # fmt: skip

    def sealed(self, number: int, size: int) -> None:
        row = SegmentRow(number, f"{number}.raw", size, 0, Position(number), True, 1)
        self.backlog.sealed(row)

    def decoded(self, number: int, size: int = 1) -> None:
        self.backlog.decoded([number], [replace(change_file(number), size_bytes=size)])

    def is_due(self) -> bool:
        self.pacing.turn()
        return self.pacing.is_due(TABLE)


def test_a_merge_follows_its_interval_where_decoding_keeps_up() -> None:
    """Guards the interval between merges, and that a segment on its way to be decoded holds
    nobody."""
    paced = Paced()
    paced.sealed(1, AHEAD_BYTES - 1)
    assert paced.is_due()
    paced.pacing.begun(TABLE)
    paced.pacing.ended(TABLE)
    assert not paced.is_due()
    paced.now += 1.0
    assert paced.is_due()


def test_far_behind_a_merge_waits_until_all_is_decoded() -> None:
    """Guards the hold: without it the first merge of a backlog takes what happens to be decoded,
    and the next ones read what that one wrote. What is small holds it no longer: under steady
    traffic there is always a segment that waits."""
    paced = Paced()
    paced.sealed(1, AHEAD_BYTES)
    paced.sealed(2, LEVEL_BYTES)
    paced.sealed(3, 1)
    assert not paced.is_due()
    paced.decoded(1)
    assert not paced.is_due()
    paced.decoded(2)
    assert paced.is_due()
    paced.sealed(4, AHEAD_BYTES - 2)
    assert paced.is_due()


def test_while_the_source_sends_in_bulk_a_merge_waits_for_its_end() -> None:
    """Guards `Pacing.is_in_bulk`: the first portion of a small backlog was merged by itself, the
    rest a merge and an interval later. What the bulk left undecoded is waited for too, and no table
    waits longer than `HOLD_SECONDS`."""
    paced = Paced()
    paced.is_in_bulk = True
    paced.sealed(1, LEVEL_BYTES)
    assert not paced.is_due()
    paced.is_in_bulk = False
    assert not paced.is_due()
    paced.decoded(1)
    assert paced.is_due()
    paced.is_in_bulk = True
    assert not paced.is_due()
    paced.now += HOLD_SECONDS
    assert paced.is_due()


def test_what_a_round_cut_off_goes_on_at_once() -> None:
    """Guards `Pacing.ended`: held once more, every merge would be cut by the round that begins
    meanwhile, and the lag doubled."""
    paced = Paced()
    paced.sealed(1, AHEAD_BYTES)
    paced.now += paced.is_due() or HOLD_SECONDS
    assert paced.is_due()
    paced.pacing.begun(TABLE)
    paced.pacing.ended(TABLE, is_cut=True)
    assert paced.is_due()
    paced.pacing.begun(TABLE)
    paced.pacing.ended(TABLE)
    assert not paced.is_due()


def test_nobody_waits_longer_than_the_limit_nor_with_enough() -> None:
    """Guards the hold's two ends: a log that stays ahead must not keep a table from being merged,
    and a merge that is large already gains nothing."""
    paced = Paced()
    paced.sealed(1, AHEAD_BYTES)
    paced.sealed(2, AHEAD_BYTES)
    assert not paced.is_due()
    paced.now += HOLD_SECONDS - 0.1
    assert not paced.is_due()
    paced.now += 0.1
    assert paced.is_due()
    paced.pacing.begun(TABLE)
    assert not paced.is_due()
    paced.decoded(1, ENOUGH_BYTES)
    assert paced.is_due()


def test_the_targets_budget_stretches_the_interval_and_holds_what_was_cut_off_too() -> None:
    """Guards `spared`: a table whose day's load jobs run out would fail at every merge until the
    next day, also with a backlog of several merges."""
    paced = Paced()
    paced.spared = 120.0
    paced.pacing.begun(TABLE)
    paced.pacing.ended(TABLE, is_cut=True)
    paced.now += 119.0
    assert not paced.is_due()
    paced.now += 1.0
    assert paced.is_due()
