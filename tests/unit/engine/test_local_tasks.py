"""The twin of Spark's tasks keeps the promises of `Tasks`."""

from __future__ import annotations

import pytest

from replicators.connectors.problems.errors import ReplicationError
from runners.engine.tasks.local import LocalTasks


def test_results_come_in_the_order_of_the_items_and_nothing_is_shared() -> None:
    """Guards that a test on local tasks does not pass by an object that Spark's tasks would not
    share."""
    seen: list[int] = []

    def task(item: int) -> int:
        seen.append(item)
        return item * item

    assert LocalTasks().map(task, range(5)) == [0, 1, 4, 9, 16]
    assert seen == []


def test_an_error_of_a_task_is_raised_as_it_was() -> None:
    """Guards the engine's reading of codes, which Spark's tasks carry too."""

    def task(item: int) -> int:
        raise ReplicationError("log:segment-corrupt", segment=str(item))

    with pytest.raises(ReplicationError) as caught:
        LocalTasks().map(task, [7])
    assert (caught.value.code, caught.value.facts["segment"]) == ("log:segment-corrupt", "7")
