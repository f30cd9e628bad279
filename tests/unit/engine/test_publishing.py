"""The target's progress table is written now and then, and never in the way."""

from __future__ import annotations

import threading
from dataclasses import replace

from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId
from replicators.connectors.model.watermarks import Watermark
from replicators.connectors.problems.errors import ReplicationError
from runners.engine.checkpoints.publish import Publisher
from runners.engine.idle import Idle
from tests.harness import until


class Writer:
    """Remembers what it was told; waits while held."""

    def __init__(self) -> None:
        self.reported: list[int] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self.fault: ReplicationError | None = None

    def publish_watermark(self, replicator: str, mark: Watermark) -> None:
        self.go_on.wait(10)
        self.reported.append(mark.sequence)
        if self.fault:
            raise self.fault


def mark(sequence: int) -> Watermark:
    return Watermark(sequence, Position(1), 0.0, 0.0, {TableId("s", "t"): str(sequence)})


def test_rows_are_written_at_most_every_so_often_and_one_at_a_time() -> None:
    """Guards both bounds: without the time a commit is made for each watermark, without the look at
    the job a slow target piles them up."""
    now, writer = [0.0], Writer()
    publisher = Publisher(writer, "r", 10.0, lambda: now[0])  # type: ignore[arg-type]
    writer.go_on.clear()
    publisher.offer(mark(1))
    now[0] = 20.0
    publisher.offer(mark(2))
    writer.go_on.set()
    until(lambda: publisher._job is not None and publisher._job.done(), "written", 10)
    publisher.offer(mark(3))
    now[0] = 25.0
    publisher.offer(mark(4))
    until(lambda: writer.reported == [1, 3], "the next one is reported", 10)
    publisher.close()
    assert writer.reported == [1, 3]


def test_a_fault_of_the_target_stops_nothing_and_zero_seconds_mean_never() -> None:
    """Guards that a progress table which can't be written does not end the run."""
    now, writer = [0.0], Writer()
    writer.fault = ReplicationError("target:unreachable")
    publisher = Publisher(writer, "r", 1.0, lambda: now[0])  # type: ignore[arg-type]
    publisher.offer(mark(1))
    until(lambda: publisher._job is not None and publisher._job.done(), "written", 10)
    now[0] = 2.0
    publisher.offer(mark(2))
    until(lambda: writer.reported == [1, 2], "it is tried again", 10)
    publisher.close()
    never = Publisher(writer, "r", 0.0)  # type: ignore[arg-type]
    never.offer(mark(3))
    never.close()
    assert writer.reported == [1, 2]


def test_rows_that_name_the_same_versions_are_further_apart() -> None:
    """Guards an idle replicator from a commit at the target each ten seconds for ever, and its
    readers from waiting that long for a row with other versions."""
    now, writer = [0.0], Writer()
    idle = Idle(row=2.0, same_row=10.0)
    publisher = Publisher(writer, "r", 10.0, lambda: now[0], idle)  # type: ignore[arg-type]

    def offered(at: float, sequence: int, version: str) -> list[int]:
        now[0] = at
        publisher.offer(replace(mark(sequence), versions={TableId("s", "t"): version}))
        until(lambda: publisher._job is not None and publisher._job.done(), "written", 10)
        return writer.reported

    assert offered(0.0, 1, "a") == [1]
    assert offered(99.0, 2, "a") == [1]
    assert offered(99.0, 3, "b") == [1, 3]
    assert offered(118.0, 4, "c") == [1, 3]
    assert offered(119.0, 5, "c") == [1, 3, 5]
    writer.fault = ReplicationError("target:unreachable")
    assert offered(219.0, 6, "c") == [1, 3, 5, 6]
    assert offered(239.0, 7, "c") == [1, 3, 5, 6, 7]
    publisher.close()
