"""One point in time over several tables: at every published watermark a bank's money is all there, whatever was killed."""

from __future__ import annotations

import signal

import pytest

from tests.bank import BANK_TABLES, TOTAL, make_bank, published, sums, transfers
from tests.harness import World, until
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]


def more(world: World, count: int) -> None:
    """Wait until so many more watermarks over both tables are published."""
    wanted = len(published(world)) + count
    world.until(lambda: len(published(world)) >= wanted, f"{wanted} watermarks")


@pytest.mark.parametrize("form", ["iceberg", pytest.param("delta", marks=pytest.mark.long)])
def test_transfers_between_two_tables_keep_their_sum_at_every_watermark(
    world_maker: MakeWorld, form: str
) -> None:
    """Guards the cut of merges at a round's end (CORRECTNESS 31, `Rounds.limit`): without it the two tables' versions lie some
    transfers apart, and the sums differ from the bank's at most watermarks. The kill between the last table's commit and the
    row guards that nothing is published but what a finished round holds."""
    made = world_maker(
        prepare=make_bank,
        tables=BANK_TABLES,
        format=form,
        environment={"REPLICATOR_ROUND_SECONDS": "1"},
    )
    with made as world:
        child = world.start()
        with transfers(world.database):
            more(world, 4)
            world.arm("round_ended")
            until(child.is_dead, lambda: f"death at round_ended\n{child.tail()}")
            assert child.wait() == -signal.SIGKILL and world.flag("round_ended").exists()
            child.end()
            world.start()
            more(world, 3)
            world.kill()
            world.start()
            more(world, 3)
        world.settle()
        more(world, 2)
        world.assert_equal()
        found = [sums(world, mark) for mark in published(world)]
        assert world.stop() == 0
    assert [sum(held) for held in found] == [TOTAL] * len(found)
    assert len({held[0] for held in found}) > 5, "no money moved between the watermarks"
