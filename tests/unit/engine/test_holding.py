"""What becomes of what a run holds at the source while the change log is full."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from runners.engine.capture.stream import Streaming
from runners.engine.holding import Act, Holding, WhenStalled
from runners.engine.store.protocol import MemoryStore

TABLE = TableId("s", "t")


@pytest.mark.parametrize(
    ("when", "stalled", "due"),
    [
        (WhenStalled.WAIT, 9e9, Act.KEEP),
        (WhenStalled.CLOSE, None, Act.KEEP),
        (WhenStalled.CLOSE, 9.0, Act.KEEP),
        (WhenStalled.CLOSE, 10.0, Act.CLOSE),
        (WhenStalled.RELEASE, 9.0, Act.KEEP),
        (WhenStalled.RELEASE, 10.0, Act.GIVE_UP),
    ],
)
def test_a_choice_is_done_once_reading_waited_long_enough(
    when: WhenStalled, stalled: float | None, due: Act
) -> None:
    """Guards the time in `Holding.due`: a log that is full for a moment must not cost the slot."""
    assert Holding(when, 10.0).due(stalled, None) is due


def test_a_source_that_holds_nothing_for_us_is_only_closed() -> None:
    """Guards `holds_log`: giving up a place in MySQL's binlog frees nothing there, and costs a copy
    of every table."""
    holding = Holding(WhenStalled.RELEASE, 10.0, least_hours=2.0, holds_log=False)
    assert holding.due(10.0, 1.0) is Act.CLOSE


@pytest.mark.parametrize(("hours", "due"), [(None, Act.KEEP), (2.0, Act.KEEP), (1.9, Act.GIVE_UP)])
def test_the_position_is_given_up_below_the_hours_that_were_chosen(
    hours: float | None, due: Act
) -> None:
    """Guards `least_hours`: unknown hours are not few hours."""
    assert Holding(least_hours=2.0).due(None, hours) is due
    assert Holding().due(None, hours) is Act.KEEP


class Stage:
    """A stream whose parts write down what is done to them."""

    def __init__(self, holding: Holding) -> None:
        self.done: list[str] = []
        self.is_full = True
        self.store = MemoryStore([TABLE])
        self.store.table_event(TABLE, "table_snapshot_done", is_snapshot_done=True)
        self.streaming: Any = Streaming.__new__(Streaming)
        self.streaming._store = self.store
        self.streaming._job = SimpleNamespace(options=SimpleNamespace(holding=holding))
        self.streaming.capture = self.capture = SimpleNamespace(
            is_source_closed=False,
            stalled_seconds=99.0,
            look_for_space=lambda: self.is_full,
            follow=lambda tables: self.done.append("follow"),
            fault=None,
        )
        for name in ("stop", "close", "_drop_cut_transaction", "_connect_again"):
            setattr(self.streaming, name, lambda name=name: self.done.append(name))
        self.streaming._control = lambda: self

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def drop(self) -> None:
        self.done.append(f"drop, tables {self.store.tables()[0].state}")


def test_a_closed_connection_is_opened_again_when_there_is_room() -> None:
    """Guards `Streaming.hold`: closed twice it would wait for a thread that is gone; not opened
    again the replicator would stand still for ever. The part of a transaction that was cut is
    read again, never counted twice."""
    stage = Stage(Holding(WhenStalled.CLOSE, 10.0))
    for _ in range(3):
        stage.streaming.hold(None)
    assert stage.done == ["stop", "close"]
    stage.streaming._follow([])
    assert stage.done == ["stop", "close"], "a closed reader was told of tables"
    stage.is_full, stage.capture.stalled_seconds = False, None
    stage.streaming.hold(None)
    assert stage.done == ["stop", "close", "_drop_cut_transaction", "_connect_again"]
    assert not stage.capture.is_source_closed


def test_a_position_that_is_given_up_marks_the_tables_before_the_slot_goes() -> None:
    """Guards the order in `Streaming._give_up`: a crash between the two must leave tables that say
    what they need."""
    stage = Stage(Holding(WhenStalled.RELEASE, 10.0))
    with pytest.raises(ReplicationError) as caught:
        stage.streaming.hold(None)
    assert caught.value.code == "source:position-given-up"
    assert stage.done == ["stop", "close", "drop, tables failing"]
    assert stage.store.tables()[0].error_code == "source:position-given-up"
    assert "the change log stayed full" in caught.value.message.text
