"""Capture: durable first, then acknowledged; whole transactions or nothing (CORRECTNESS 1, 4, 23,
27, 28)."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.log import LogBlock
from replicators.connectors.model.positions import Position
from runners.engine.capture.reader import (
    BULK_BYTES,
    BULK_PAUSE_SECONDS,
    BULK_SEAL_BYTES,
    LINGER_SECONDS,
    Capture,
    discard_open_tail,
)
from runners.engine.changelog.backlog import Backlog
from runners.engine.changelog.segments import ChangeLog
from runners.engine.idle import Idle
from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import MemoryStore
from tests.unit.engine.changes import SCHEMA
from tests.unit.engine.test_frontier import change_file


def block(end: int, *, closed: bool = True, version: int = 1, data: bytes = b"rows") -> LogBlock:
    return LogBlock(data, 1, closed, Position(end), {"v": version}, version)


class Log:
    """A source's log: gives blocks in order, and looks, at each acknowledgement, at what is
    durable."""

    def __init__(self, blocks: Sequence[LogBlock], store: MemoryStore) -> None:
        self.blocks = list(blocks)
        self.store = store
        self.idle: Position | None = None
        self.acknowledged: list[int] = []
        self.too_early: list[int] = []

    def read(self, *, wait_seconds: float, max_bytes: int) -> LogBlock | None:
        return self.blocks.pop(0) if self.blocks else None

    def acknowledge(self, position: Position) -> None:
        recorded = self.store.memory().position
        files = all(Path(s.path).exists() for s in self.store.segments())
        if recorded is None or recorded.ordinal < position.ordinal or not files:
            self.too_early.append(position.ordinal)
        self.acknowledged.append(position.ordinal)

    def follow(self, tables: object) -> None:
        """Every table comes."""

    def idle_position(self) -> Position | None:
        return self.idle


class Place:
    """A capture over a log of blocks; `turn` takes as many steps as there are blocks, and one
    more."""

    def __init__(self, folder: Path, *blocks: LogBlock, **knobs: Any) -> None:
        self.store = MemoryStore([SCHEMA.id])
        self.log = ChangeLog(str(folder), "r1", "a1")
        self.source = Log(blocks, self.store)
        settings = dataclasses.replace(
            RunnerSettings(log_url=str(folder)), disk_reserve_bytes=0, **{"seal_bytes": 1, **knobs}
        )
        self.capture = Capture(
            self.source,  # type: ignore[arg-type]
            self.log,
            self.store,
            settings,
            describe=lambda: [SCHEMA],
            next_number=1,
        )

    def turn(self) -> None:
        for _ in range(len(self.source.blocks) + 1):
            self.capture.step()

    def segments(self) -> list[tuple[int, int, bool]]:
        return [(s.number, s.position.ordinal, s.is_closed) for s in self.store.segments()]


def test_a_segment_is_durable_and_recorded_before_it_is_acknowledged(tmp_path: Path) -> None:
    """Guards the order in `Capture._seal` (CORRECTNESS 27; order of writes, 1 to 3): acknowledged
    first, a crash would lose a segment that the source has let go."""
    place = Place(tmp_path, block(10), block(20), block(30))
    place.turn()
    assert place.segments() == [(1, 10, True), (2, 20, True), (3, 30, True)]
    assert place.source.acknowledged == [10, 20, 30]
    assert place.source.too_early == []


def test_a_segment_file_reaches_the_disk_before_its_name_and_its_name_before_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the two fsyncs of `SegmentFile.seal` (CORRECTNESS 27): without the file's, a power cut
    leaves a recorded segment of zeros; without the folder's, none at all."""
    place = Place(tmp_path, block(10))
    seen: list[tuple[str, int, int]] = []
    sync = os.fsync

    def note(number: int) -> None:
        kind = "folder" if os.path.isdir(f"/proc/self/fd/{number}") else "file"
        named = len(list(Path(place.log.segments).glob("*.raw")))
        seen.append((kind, named, len(place.store.segments())))
        sync(number)

    monkeypatch.setattr(os, "fsync", note)
    place.turn()
    assert seen == [("file", 0, 0), ("folder", 1, 0)]
    assert len(place.store.segments()) == 1


def test_an_idle_position_is_recorded_before_it_is_acknowledged_and_never_goes_back(
    tmp_path: Path,
) -> None:
    """Guards `Capture._record_idle` (CORRECTNESS 23): a keepalive acknowledged first would be ahead
    of what we know after a crash, and a lower one would be reported to the source as a step
    back."""
    place = Place(tmp_path, block(10))
    place.capture._idle = Idle(record=0.0)
    place.turn()
    place.source.idle = Position(50)
    place.turn()
    assert place.store.memory().position == Position(50)
    place.source.idle = Position(40)
    place.turn()
    assert place.source.acknowledged == [10, 50]
    assert place.source.too_early == []


def test_the_position_stays_before_a_transaction_that_is_still_open(tmp_path: Path) -> None:
    """Guards CORRECTNESS 1 and 4: a transaction that was cut comes again whole, so without
    `discard_open_tail` its first part would be there twice; its segments' numbers stay used."""
    place = Place(tmp_path, block(10), block(10, closed=False), block(10, closed=False))
    place.turn()
    assert place.segments() == [(1, 10, True), (2, 10, False), (3, 10, False)]
    assert set(place.source.acknowledged) == {10}
    decoded = Path(place.log.segments).parent / "of 2.parquet"
    decoded.write_bytes(b"decoded while it was open")
    place.store.record_decoded([2], [replace(change_file(2), path=str(decoded))])
    assert discard_open_tail(place.store, place.log) == 2
    assert place.segments() == [(1, 10, True)]
    assert len(list(Path(place.log.segments).iterdir())) == 1
    assert not decoded.exists(), "it would count as part of the log until the next start"
    assert place.store.memory().last_segment == 3, "a number would be used twice"


def test_a_segment_holds_closed_transactions_or_one_that_is_open_and_one_schema(
    tmp_path: Path,
) -> None:
    """Guards where `Capture._take` seals: whole transactions in one file with an open one would be
    dropped with its tail, and rows of a new schema would be read by the old head."""
    blocks = (
        block(10),
        block(20),
        block(20, closed=False),
        block(30),
        block(40, version=2),
        block(50, version=2),
    )
    place = Place(tmp_path, *blocks, seal_bytes=1 << 20, seal_seconds=3600.0)
    place.capture._sealed_at = time.monotonic()
    place.turn()
    place.capture.stop()
    place.capture.run()
    assert place.segments() == [(1, 20, True), (2, 30, True), (3, 50, True)]


def test_a_change_after_a_quiet_time_does_not_wait_for_a_segments_age(tmp_path: Path) -> None:
    """Guards `Capture._due_at`: a change now and then was a second later than it had to be. Under
    steady changes segments still lie a whole age apart."""
    place = Place(tmp_path, block(10), seal_bytes=1 << 20, seal_seconds=10.0)
    capture = place.capture
    place.turn()
    current = capture._open
    assert current is not None and place.segments() == []
    assert capture._due_at(current) == current.began_at + LINGER_SECONDS
    assert 0 < capture._wait_seconds() <= LINGER_SECONDS
    capture._sealed_at = current.began_at - 4.0
    assert capture._due_at(current) == pytest.approx(current.began_at + 6.0)
    capture._sealed_at = current.began_at + 1.0
    assert capture._due_at(current) == pytest.approx(current.began_at + 10.0)
    capture._sealed_at = current.began_at = current.began_at - 10.0
    capture.step()
    assert place.segments() == [(1, 10, True)]
    assert capture._sealed_at > current.began_at


def _in_bulk(place: Place, end: int, data: bytes, *, closed: bool = True) -> None:
    """A block that comes `LINGER_SECONDS` after its window began, with enough in it for bulk."""
    place.source.blocks.append(block(end, closed=closed, data=data))
    place.capture._counted, place.capture._counted_at = BULK_BYTES, 0.0
    place.capture.step()


def test_bulk_is_sealed_by_size_and_at_its_end(tmp_path: Path) -> None:
    """Guards `Capture._count`: after a quiet time the first 0.2 s of a backlog got a segment, and
    the rest waited for the segment's age. A pause ends the bulk, and so does a slow source."""
    place = Place(tmp_path, seal_bytes=1 << 30, seal_seconds=3600.0)
    capture = place.capture
    _in_bulk(place, 10, b"x" * (BULK_SEAL_BYTES // 2))
    assert capture.is_in_bulk and place.segments() == []
    assert capture._wait_seconds() == BULK_PAUSE_SECONDS
    _in_bulk(place, 20, b"x" * (BULK_SEAL_BYTES // 2))
    assert place.segments() == [(1, 20, True)]
    _in_bulk(place, 20, b"open", closed=False)
    capture.step()
    assert not capture.is_in_bulk and place.segments() == [(1, 20, True)]
    _in_bulk(place, 30, b"whole")
    capture.step()
    assert not capture.is_in_bulk and place.segments() == [(1, 20, True), (2, 30, True)]
    _in_bulk(place, 40, b"fast")
    place.source.blocks.append(block(50))
    capture._counted, capture._counted_at = 1, 0.0
    capture.step()
    assert not capture.is_in_bulk, "a steady source with a little every moment"
    capture._abandon()


def test_what_is_incomplete_when_it_stops_is_thrown_away(tmp_path: Path) -> None:
    """Guards `Capture._finish` (CORRECTNESS 1): the source sends the open transaction again, so a
    sealed half of it would be decoded beside the whole one."""
    place = Place(tmp_path, block(10), block(10, closed=False), seal_bytes=1 << 20)
    place.turn()
    place.capture.stop()
    place.capture.run()
    assert place.segments() == [(1, 10, True)]
    assert len(list(Path(place.log.segments).iterdir())) == 1


def test_a_lost_lease_ends_capture_unacknowledged(tmp_path: Path) -> None:
    """Guards CORRECTNESS 29: a run that was replaced could acknowledge to the source what its
    successor never got, were the store not asked before."""
    place = Place(tmp_path, block(10))
    place.store.lost = True
    place.capture.run()
    assert getattr(place.capture.fault, "code", "") == "run:lease-lost"
    assert place.source.acknowledged == []


def test_at_the_logs_limit_nothing_is_read_and_the_source_hears_that_we_live(
    tmp_path: Path,
) -> None:
    """Guards `Capture._has_space` (CORRECTNESS 28): without it the log fills the disk; without the
    acknowledgement meanwhile the server ends the silent connection."""
    place = Place(tmp_path, block(10), block(20), log_limit_bytes=0)
    place.log.added(1)
    place.capture.position = Position(5)
    place.store.record_start(Position(5))
    place.capture.step()
    assert place.capture.is_waiting_for_space
    assert len(place.source.blocks) == 2
    assert place.source.acknowledged == [5]


def test_a_selection_that_changes_while_a_head_is_made_gets_a_head_of_its_own(
    tmp_path: Path,
) -> None:
    """Guards CORRECTNESS 3 and 18: a table that is published while the source is being asked would
    be missing in every head until a relation changes, and all its changes would be decoded to
    nothing."""
    place = Place(tmp_path, block(10), block(20))
    asked: list[int] = []

    def describe() -> list[Any]:
        asked.append(1)
        if len(asked) == 1:
            place.capture.refresh_tables()
        return [SCHEMA]

    place.capture._describe = describe
    place.turn()
    assert len(asked) == 2
    place.source.blocks.append(block(30))
    place.turn()
    assert len(asked) == 2


def test_a_mark_waits_for_the_end_of_the_transaction_that_is_being_captured(tmp_path: Path) -> None:
    """Guards CORRECTNESS 1 where a transaction larger than a segment makes a pause: a closed
    segment behind its first part would let that part be merged, and be kept beside the whole one
    after a cut."""
    place = Place(tmp_path, block(100), block(200, closed=False, data=b"x" * 64), seal_bytes=64)
    for _ in range(4):
        place.capture.step()
    assert place.segments() == [(1, 100, True), (2, 200, False)]
    place.capture.mark()
    place.capture.step()
    assert len(place.segments()) == 2
    place.source.blocks.append(block(300))
    for _ in range(4):
        place.capture.step()
    assert place.segments()[2:] == [(3, 300, True), (4, 300, True)], "the mark was forgotten"


def test_a_mark_on_a_quiet_log_is_an_empty_segment_at_the_same_position(tmp_path: Path) -> None:
    """A replay of quarantined rows needs a sequence that no commit has had; on an idle source the
    log would bring none."""
    place = Place(tmp_path, block(100))
    place.turn()
    place.capture.step()
    assert place.segments() == [(1, 100, True)]
    place.capture.mark()
    place.capture.step()
    place.capture.step()
    assert place.segments() == [(1, 100, True), (2, 100, True)]
    backlog = Backlog([], 0)
    for row in place.store.segments():
        backlog.sealed(row)
    assert backlog.frontier.segment == 0, "the first is not decoded yet"
    backlog.decoded([1], [])
    assert backlog.frontier.segment == 2
    assert place.source.too_early == []
