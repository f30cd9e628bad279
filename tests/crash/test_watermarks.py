"""One point in time over several tables: at every published watermark a bank's money is all there,
whatever was killed."""

from __future__ import annotations

import signal

import pytest

from tests.bank import (
    BANK_TABLES,
    TOTAL,
    all_published,
    make_bank,
    published,
    reported_at_target,
    sums,
    transfers,
)
from tests.harness import World, until
from tests.shared_spark import SharedServer
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]


def more(world: World, count: int) -> None:
    """Wait until so many more watermarks over both tables are published."""
    wanted = len(published(world)) + count
    world.until(lambda: len(published(world)) >= wanted, f"{wanted} watermarks")


@pytest.mark.parametrize(
    ("form", "kills"),
    [
        ("iceberg", 0),
        pytest.param("iceberg", 2, marks=pytest.mark.long),
        pytest.param("delta", 2, marks=pytest.mark.long),
    ],
)
def test_transfers_between_two_tables_keep_their_sum_at_every_watermark(
    world_maker: MakeWorld, shared_spark: SharedServer, form: str, kills: int
) -> None:
    """Guards the cut of merges at a round's end (CORRECTNESS 31, `Rounds.limit`): without it the
    two tables' versions lie some transfers apart, and the sums differ from the bank's at most
    watermarks. The kill between the last table's commit and the row guards that nothing is
    published but what a finished round holds."""
    environment = {"REPLICATOR_ROUND_SECONDS": "1", "REPLICATOR_WATERMARK_SECONDS": "1"}
    made = world_maker(
        prepare=make_bank,
        tables=BANK_TABLES,
        format=form,
        options={"seal_seconds": 1.0},
        environment={**environment, **shared_spark.environment},
    )
    with made as world:
        child = world.start()
        with transfers(world.database):
            more(world, 2)
            world.arm("round_ended")
            until(child.is_dead, lambda: f"death at round_ended\n{child.tail()}")
            assert child.wait() == -signal.SIGKILL and world.flag("round_ended").exists()
            child.end()
            world.start()
            for _ in range(kills):
                more(world, 2)
                world.kill()
                world.start()
            more(world, 2)
        world.settle()
        more(world, 1)
        world.assert_equal()
        assert world.stop() == 0
        found = [sums(world, mark) for mark in published(world)]
        known = {m.sequence: {(t, v) for _, t, v in m.versions} for m in all_published(world)}
        reported = reported_at_target(world)
    assert reported and all(
        known.get(sequence) == versions for sequence, versions in reported.items()
    )
    assert [sum(held) for held in found] == [TOTAL] * len(found)
    assert len({held[0] for held in found}) > 3, "no money moved between the watermarks"
