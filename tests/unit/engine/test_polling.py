"""The capture thread of a source that is polled, step by step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.connectors.poll import Polled, TableChanges, polled_schema
from runners.engine.capture.polling import PollCapture
from runners.engine.changelog.segments import ChangeLog
from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import ChangeFileRow, MemoryStore
from runners.engine.watchdog import Watchdog

ONE = TableSchema(TableId("s", "one"), (Column("id", Int(64), "bigint"),), ("id",), native_id=1)
TWO = TableSchema(TableId("s", "two"), (Column("id", Int(64), "bigint"),), ("id",), native_id=2)
ROW = {"_op": 0, "_committed_at": 0, "_transaction": 1, "_position": 1, "id": 1}


class Place:
    """A source with a row at every poll; `during` happens while it is asked."""

    def __init__(self, folder: Path, **values: float) -> None:
        self.asked: list[tuple[int, tuple[TableSchema, ...]]] = []
        self.done: list[int] = []
        self.tables: tuple[TableSchema, ...] = (ONE,)
        self.during: Callable[[], None] = lambda: None
        self.version = 0
        self.lock = threading.Lock()
        self.store = MemoryStore([ONE.id])
        settings = RunnerSettings(log_url=str(folder), disk_reserve_bytes=0, **values)  # type: ignore[arg-type]
        self.watchdog = Watchdog(self.store, settings)
        self.capture = PollCapture(
            self,  # type: ignore[arg-type]
            ChangeLog(str(folder), "r1", "a1"),
            self.store,
            settings,
            files=self,
            seconds=0.0,
            watchdog=self.watchdog,
            describe=lambda: self.tables,
            next_number=1,
        )
        self.capture.position = Position(5)
        self.capture.step()  # learns the version

    def poll(self, after: Position, tables: Sequence[TableSchema], *, max_bytes: int) -> Polled:
        self.asked.append((after.ordinal, tuple(tables)))
        self.during()
        rows = pa.Table.from_pylist([ROW], polled_schema(ONE))
        end = Position(after.ordinal + 1)
        return Polled(end, (TableChanges(ONE, rows),), schema_version=self.version)

    def acknowledge(self, position: Position) -> None:
        assert self.store.memory().position == position, "recorded before it is acknowledged"
        self.done.append(position.ordinal)

    def polled(self, number: int, found: Polled) -> list[ChangeFileRow]:
        assert self.lock.locked()
        return []

    def recorded(self) -> list[int]:
        return [s.position.ordinal for s in self.store.segments()]


def test_a_poll_is_recorded_and_then_acknowledged(tmp_path: Path) -> None:
    """Guards the order of `PollCapture._record`: a source that hears first may forget what nobody
    has."""
    place = Place(tmp_path)
    assert (place.recorded(), place.done) == ([], [])
    place.capture.step()
    assert (place.recorded(), place.done) == ([6], [6])
    assert all(s.is_decoded and s.is_closed for s in place.store.segments())


def test_a_poll_that_hangs_is_past_its_deadline(tmp_path: Path) -> None:
    """Guards the watchdog's step around a poll: the run would keep its lease, and no table would
    get a change any more."""
    place, end = Place(tmp_path, step_deadline_seconds=0.01), time.monotonic() + 10
    found: list[str | None] = []

    def hang() -> None:
        while place.watchdog.overdue() is None and time.monotonic() < end:
            pass
        found.append(place.watchdog.overdue())

    place.during = hang
    place.capture.step()
    assert found == ["poll"]
    assert place.watchdog.overdue() is None


def test_a_poll_that_began_before_a_table_was_chosen_is_thrown_away(tmp_path: Path) -> None:
    """Guards CORRECTNESS 18: its end may lie behind the new table's view, and it lacks that table's
    changes in between."""
    place = Place(tmp_path)

    def choose() -> None:
        place.during = lambda: None
        place.tables = (ONE, TWO)
        place.capture.follow(place.tables)

    place.during = choose
    place.capture.step()
    assert place.recorded() == []
    place.capture.step()
    assert place.asked[-2:] == [(5, (ONE,)), (5, (ONE, TWO))]
    assert place.recorded() == [6]


def test_a_new_schema_has_the_tables_described_anew_and_the_same_asked_again(
    tmp_path: Path,
) -> None:
    """Guards `Polled.schema_version`: which of the new columns are followed is known only by a new
    description."""
    place = Place(tmp_path)
    place.capture.step()
    place.version, place.tables = 1, (TWO,)
    place.capture.step()
    assert place.recorded() == [6]
    place.capture.step()
    assert place.asked[-2:] == [(6, (ONE,)), (6, (TWO,))]
    assert place.recorded() == [6, 7]
