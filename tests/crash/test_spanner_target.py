"""SIGKILL at each step of a copy and of a merge into Spanner, seen in the tests' server: source and
copies come to be equal. The runs need no JVM, but for one."""

from __future__ import annotations

import pytest

from replicators.connectors.failpoints import KEYED_NAMES
from tests.crash.test_sql_target import (
    ANNOUNCED,
    AT_RESYNC,
    AT_START,
    LIVE,
    ON_SPARK,
    PATIENT,
    first_copy,
    merges,
    resyncs,
)
from tests.harness import Traffic, World
from tests.spanner_server import SpannerServer
from tests.spanner_world import SpannerWorld
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1200), pytest.mark.long]


class OnSpark(SpannerWorld):
    """The product as it runs."""

    program = World.program


def killed(world: SpannerWorld, *steps: tuple[str, ...]) -> None:
    """Kill at these steps of the first copy, of merges and of a re-sync; then all is equal."""
    traffic = Traffic(world.database, seed=47)
    for kill, names in zip((first_copy, merges, resyncs), steps, strict=False):
        kill(world, traffic, *names)
    world.start()
    world.assert_equal()
    assert world.stop() == 0
    assert world.left_over("views") == set(), "a staging table or a journal is left over"


def test_a_kill_at_each_step_loses_and_doubles_nothing(
    world_maker: MakeWorld, spanner: SpannerServer
) -> None:
    """Guards the order of writes where DDL takes no part in a transaction (CORRECTNESS 13, 15, 16):
    a table that was put in its place and not recorded must be known as our own. `views` has no key,
    so what comes twice shows."""
    with world_maker(kind=SpannerWorld, played=spanner, environment=PATIENT) as world:
        assert isinstance(world, SpannerWorld)
        killed(world, (ANNOUNCED, *AT_START), LIVE, AT_RESYNC)


def test_a_kill_within_a_merge_larger_than_a_commit_loses_and_doubles_nothing(
    world_maker: MakeWorld, spanner: SpannerServer
) -> None:
    """Guards the journal (CORRECTNESS 13): a merge that is marked as complete is finished by the
    next process, at each of its steps. One that is not is made again."""
    few = {**PATIENT, "TEST_MOST_CELLS": "30"}
    with world_maker(kind=SpannerWorld, played=spanner, environment=few) as world:
        assert isinstance(world, SpannerWorld)
        killed(world, (), KEYED_NAMES)


@pytest.mark.spark
@pytest.mark.integration
def test_a_kill_of_a_copy_and_of_a_merge_on_spark(
    world_maker: MakeWorld, spanner: SpannerServer
) -> None:
    """The same with the product's own parts: tasks in Spark's workers."""
    with world_maker(kind=OnSpark, played=spanner, environment=PATIENT) as world:
        assert isinstance(world, SpannerWorld)
        killed(world, ON_SPARK[:1], ON_SPARK[1:])
