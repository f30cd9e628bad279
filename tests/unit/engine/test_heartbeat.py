"""Lag is 0 only after a heartbeat has come back through capture and decoding (CORRECTNESS 33)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from replicators.connectors.control import LogStatus
from replicators.connectors.model.changes import first_sequence
from replicators.connectors.model.positions import Position
from replicators.connectors.problems.errors import ReplicationError
from runners.engine.capture import heartbeat as module
from runners.engine.capture.heartbeat import Heartbeat
from runners.engine.changelog.backlog import Backlog
from runners.engine.changelog.segments import ChangeLog
from runners.engine.idle import Idle
from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import MemoryStore, TableMetrics
from tests.unit.engine.changes import SCHEMA
from tests.unit.engine.test_frontier import change_file, segment

AHEAD_SECONDS = 1000.0
TABLE = SCHEMA.id


class Source:
    """A control connection to a server whose clock is ahead of ours and whose heartbeats lie at
    150."""

    def __init__(self) -> None:
        self.is_dead = False

    def _ask(self) -> None:
        if self.is_dead:
            raise ReplicationError("source:connection-lost")

    def heartbeat(self) -> int:
        self._ask()
        return 150

    def status(self, reached: object = None) -> LogStatus:
        self._ask()
        return LogStatus(server_time=time.time() + AHEAD_SECONDS)

    def close(self) -> None:
        """Nothing is open."""


class Place:
    """A heartbeat that beats fast, over one segment that is captured and decoded when the test says
    so."""

    def __init__(self, folder: Path) -> None:
        self.source = Source()
        self.capture = SimpleNamespace(
            position=None,
            is_waiting_for_space=False,
            is_source_closed=False,
            messages=0,
            bytes=0,
            next_at=None,
        )
        self.backlog = Backlog([], 0)
        self.store = MemoryStore([TABLE])
        self.store.table_event(TABLE, "table_snapshot_done", is_snapshot_done=True)
        self.heartbeat = Heartbeat(
            lambda: self.source,  # type: ignore[arg-type,return-value]
            self.store,
            ChangeLog(str(folder), "r1", "a1"),
            self.backlog,
            lambda: self.capture,  # type: ignore[arg-type,return-value]
            RunnerSettings(log_url=str(folder), heartbeat_seconds=0.01),
            idle=Idle(beat=0.01),
        )

    @property
    def lag(self) -> float | None:
        return self.heartbeat.lag(TABLE)[0]

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not holds():
            assert time.monotonic() < deadline, (self.lag, self.heartbeat.known_until)
            time.sleep(0.005)

    def beats(self, number: int = 3) -> None:
        """So many beats pass."""
        for _ in range(number):
            self.store.metrics.clear()
            self.until(lambda: bool(self.store.metrics))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    made.heartbeat.start()
    yield made
    made.heartbeat.close()


def test_lag_is_unknown_until_a_heartbeat_came_back_through_decoding(place: Place) -> None:
    """Guards `Heartbeat._settle` (CORRECTNESS 33): a heartbeat that is captured and not decoded
    says nothing of changes before it, and lag 0 would be a lie."""
    place.beats()
    assert place.lag is None
    place.backlog.sealed(segment(1))
    place.capture.position = Position(150)
    place.beats()
    assert place.lag is None, "its segment is captured but not decoded"
    place.backlog.decoded([1], [])
    place.until(lambda: place.lag == 0.0)


def test_lag_is_the_sources_clock_less_the_oldest_unmerged_commit(place: Place) -> None:
    """Guards `Heartbeat.now` (CORRECTNESS 33): by our clock, a source whose clock is ahead would
    never lag."""
    place.capture.position = Position(150)
    place.until(lambda: place.lag == 0.0)
    place.backlog.sealed(segment(1))
    place.backlog.decoded([1], [change_file(1)])
    lag = place.lag
    assert lag is not None
    assert abs(lag - (time.time() + AHEAD_SECONDS - 1.0)) < 5.0


def test_a_schema_change_that_is_known_and_not_applied_is_lag_though_it_has_no_rows(
    place: Place,
) -> None:
    """Guards the time between a statement of the log and its effect on the copy: nobody is told
    *level* meanwhile."""
    file = replace(change_file(1, rows=0), last_sequence=first_sequence(1))
    place.backlog.sealed(segment(1))
    place.backlog.decoded([1], [file])
    assert (place.lag or 0.0) > AHEAD_SECONDS / 2
    assert not place.backlog.is_done(TABLE, 1, 1)
    place.backlog.mark(TABLE, [], place.backlog.touched(TABLE))
    assert place.backlog.oldest(TABLE) is None


def test_lag_grows_again_where_heartbeats_stay_away(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the freshness in `Heartbeat.lag` (CORRECTNESS 33): a source that no longer answers
    would stay at lag 0."""
    place.capture.position = Position(150)
    place.until(lambda: place.lag == 0.0)
    place.source.is_dead = True
    place.beats()
    later = time.monotonic() + 60
    monkeypatch.setattr(module.time, "monotonic", lambda: later)
    assert (place.lag or 0.0) > 50.0


def test_lag_is_the_same_while_our_clock_is_set_back_an_hour(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards rule 33: by our own clock a table that is an hour behind would say 0."""
    place.capture.position = Position(150)
    place.until(lambda: place.lag == 0.0)
    place.source.is_dead = True
    place.beats()
    place.backlog.sealed(segment(1))
    place.backlog.decoded([1], [change_file(1)])
    before, back = place.heartbeat.lag(TABLE)[0], time.time() - 3600
    monkeypatch.setattr(module.time, "time", lambda: back)
    after = place.heartbeat.lag(TABLE)[0]
    assert before is not None
    assert after is not None
    assert abs(after - before) < 60


def test_heartbeats_come_back_one_by_one_where_decoding_is_always_behind(tmp_path: Path) -> None:
    """Were a newer heartbeat to take the place of one that waits, lag would grow for ever."""
    place = Place(tmp_path)
    known = []
    for number in range(1, 12):
        place.backlog.sealed(segment(number))
        place.capture.position = Position(150)
        place.heartbeat._sent_at = 0.0
        place.heartbeat._beat()
        place.heartbeat._settle()
        if number > 4:
            place.backlog.decoded([number - 4], [])
        known.append(place.heartbeat.known_until)
    assert known[-1] is not None
    assert known[-1] > (known[-3] or 0.0)


def test_the_page_is_told_when_the_source_last_answered(place: Place) -> None:
    """Guards `source_at` in `Heartbeat.facts`: set without an answer, the page would show old
    metrics of the source as present ones."""
    place.beats()
    place.until(lambda: place.heartbeat.facts()["source_at"] is not None)
    place.source.is_dead = True
    place.beats()
    last = place.heartbeat.facts()["source_at"]
    place.beats()
    assert place.heartbeat.facts()["source_at"] == last


def test_a_failing_table_whose_changes_were_dropped_is_not_level(place: Place) -> None:
    """Guards `Heartbeat._write`: with nothing of the table listed its lag would be 0 for as long as
    it fails, and so might be the whole replicator's; what is not known is counted from the
    fault."""
    place.capture.position = Position(150)
    place.until(lambda: place.lag == 0.0)
    unknown = TableMetrics(None, None)
    place.until(lambda: place.store.metrics.get(TABLE, unknown).lag_seconds == 0.0)
    place.store.table_event(TABLE, "table_failed", error_code="log:table-over-limit")
    place.until(lambda: place.store.metrics[TABLE] == unknown)


def test_a_limit_of_ours_for_the_sources_log_counts_as_its_own(place: Place) -> None:
    """Guards the option *Log at the source at most*: without it a slot without a limit of the
    server would never be short, whatever it keeps."""
    made = place.heartbeat
    assert made.hours_left is None
    made._source_limit = 100
    made._source_growth.measure(0.0, 10)
    made._source_growth.measure(3600.0, 40)
    assert made.hours_left is None, "it was not measured long enough"
    made._source_growth = type(made._source_growth)()
    made._source_growth.measure(0.0, 10)
    made._source_growth.measure(360.0, 40)
    assert made.hours_left == pytest.approx(0.2)
    made._status = LogStatus(hours_left=0.1)
    assert made.hours_left == 0.1
    made._source_growth.measure(400.0, 101)
    assert made.hours_left == 0.0
