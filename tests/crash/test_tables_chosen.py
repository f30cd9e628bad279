"""SIGKILL while a table is added or removed: the next run finishes what was begun."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runners.models import ChangeFile
from tests.crash.test_failpoints import died_at
from tests.harness import Traffic, World
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

KEPT = ("items", "pairs")


@pytest.fixture(scope="module")
def world(twin_maker: MakeWorld) -> Iterator[World]:
    with twin_maker(tables=KEPT) as made:
        made.start()
        made.settle()
        yield made


@pytest.fixture(scope="module")
def traffic(world: World) -> Traffic:
    return Traffic(world.database)


@pytest.mark.parametrize(
    "name",
    [
        "tables_published",
        *(
            pytest.param(n, marks=pytest.mark.long)
            for n in ("snapshot_loaded", "snapshot_published")
        ),
    ],
)
def test_a_kill_within_an_add_and_within_the_removal_after_it(
    world: World, traffic: Traffic, name: str
) -> None:
    """Guards CORRECTNESS 18 with 16: after the kill the table is in the publication, but without a
    copy. Going on from there would lose every row that was there before."""
    assert world.child is not None
    with traffic.going_on():
        world.arm(name)
        world.add("views")
        died_at(world, world.child, name)
    assert world.row("views").state in {"waiting", "snapshotting"}
    assert not world.row("views").is_snapshot_done, "nothing remained to be done"
    child = world.start()
    traffic.write(10)
    world.assert_equal(*KEPT, "views")

    with traffic.going_on():
        world.arm("tables_withdrawn")
        world.remove("views")
        died_at(world, child, "tables_withdrawn")
    assert world.row("views").state == "replicating"
    assert "views" not in world.published()
    world.start()
    world.until(lambda: world.row("views").state == "removed", "views is removed")
    left = ChangeFile.objects.filter(replicator=world.replicator, table_name="views")
    assert not left.exists()
    world.assert_equal(*KEPT)
