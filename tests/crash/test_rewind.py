"""A table is rewound from an older version of its target and the change log, killed at each step,
and nobody sees it."""

from __future__ import annotations

import re
import signal
from datetime import datetime
from typing import Any

import pytest
from django.utils import timezone

from runners.models import Event, Segment
from runners.tables.rewinding import rewind_window
from tests.harness import Traffic, World, until
from tests.local.world import local_twin
from tests.world_fixtures import LOCAL, MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]


def killed(world: World, name: str) -> None:
    assert world.child is not None
    child = world.child
    until(child.is_dead, lambda: f"death at {name}\n{child.tail()}")
    assert child.wait() == -signal.SIGKILL, child.tail()
    assert world.flag(name).read_text() == str(child.pid)
    child.end()


def events(world: World, kind: str) -> int:
    return Event.objects.filter(replicator=world.replicator, kind=kind).count()


def history(world: World, traffic: Traffic) -> datetime:
    """Several merges before a moment and several after it: the moment. The window to rewind within
    begins with a whole second after the first segment."""
    for _ in range(2):
        traffic.write(5)
        world.settle()
    segments = Segment.objects.filter(replicator=world.replicator)
    world.until(
        lambda: segments.exists() and timezone.now() > rewind_window(world.replicator).earliest,
        "the window has begun",
    )
    moment = timezone.now()
    for _ in range(2):
        traffic.write(5)
        world.settle()
    return moment


SPREAD = {"target": {"history_minutes": 0},
    "environment": {"REPLICATOR_MAINTAIN_EVERY_COMMITS": "1"}}  # fmt: skip


@pytest.mark.parametrize(
    ("form", "values"),
    [
        (LOCAL, {}),
        pytest.param("iceberg", {}, marks=pytest.mark.long),
        pytest.param("delta", {}, marks=pytest.mark.long),
        pytest.param("iceberg", SPREAD, marks=pytest.mark.long),
        pytest.param("delta", SPREAD, marks=pytest.mark.long),
    ],
    ids=[LOCAL, "iceberg", "delta", "past the history", "delta, past the history"],
)
def test_a_rewind_that_is_killed_ends_in_the_same_rows_and_readers_never_go_back(
    world_maker: MakeWorld, form: str, values: dict[str, Any]
) -> None:
    """Guards CORRECTNESS 15. Replaying into the live rows would show readers old ones (they are
    compared all the while); a replay from the wrong sequence would lose or double rows of `views`,
    which has no key; without `adopt` the table fails as replaced after the kill between publishing
    and recording. Past the history only versions that tags or marks keep are left to begin at."""
    kind = local_twin(World) if form == LOCAL else World
    with world_maker(kind=kind, format=form, **values) as world:
        world.start()
        moment = history(world, Traffic(world.database))
        world.arm("rewind_begun")
        world.rewind("views", moment)
        killed(world, "rewind_begun")
        world.arm("rewind_replayed")
        world.start()
        killed(world, "rewind_replayed")
        assert not world.differences("views"), "the live rows were touched"
        world.start()
        done = False
        while not done:
            done = events(world, "table_rewound") == 1
            assert not world.differences("views"), "a reader saw other rows"
            world.until(lambda: True, "the run lives")
        reported = r"([\d,]+) changes were applied again"
        world.until(lambda: re.search(reported, world.log_text()), "the log says what was done")
        applied = re.findall(reported, world.log_text())
        assert int(applied[0].replace(",", "")) >= 10, world.log_text()
        assert world.row("views").generation == 2

        world.arm("rewind_published")
        world.rewind("items", moment)
        killed(world, "rewind_published")
        assert world.row("items").generation == 1, "it was recorded before the kill"
        world.start()
        world.assert_equal()
        assert world.row("items").generation == 2 and world.row("items").rewind_to is None
        assert events(world, "table_rewound") == 2
        Traffic(world.database, seed=3).write(5)
        world.assert_equal()
        if form == "iceberg" and not values:
            assert set(world.lake_table("views").metadata.refs) == {"main"}
        assert world.stop() == 0


@pytest.mark.long
def test_on_spark_a_rewind_that_is_killed_ends_in_the_same_rows(world_maker: MakeWorld) -> None:
    """The same with the product's own parts, killed between publishing and recording: the step at
    which the target's own commit must tell what was done."""
    with world_maker() as world:
        world.start()
        traffic = Traffic(world.database)
        moment = history(world, traffic)
        world.arm("rewind_published")
        world.rewind("views", moment)
        killed(world, "rewind_published")
        assert world.row("views").generation == 1, "it was recorded before the kill"
        assert not world.differences("views"), "a reader saw other rows"
        world.start()
        world.assert_equal()
        assert world.row("views").generation == 2 and events(world, "table_rewound") == 1
        traffic.write(5)
        world.assert_equal()
        assert set(world.lake_table("views").metadata.refs) == {"main"}
        assert world.stop() == 0
