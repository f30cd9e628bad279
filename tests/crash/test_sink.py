"""The crash table of a sink, on Spark and the files target: SIGKILL at each step of deliver,
record, resolve. The same steps without a JVM: `unit/engine/test_deliver.py`; a new column, a
TRUNCATE and a fresh copy: `integration/test_files_target.py`. The change log's own steps do not
differ by target: `test_failpoints.py`."""

from __future__ import annotations

import pytest

from tests.crash.test_failpoints import died_at
from tests.files_world import FilesWorld, column_truncate_and_resync, marks_go_on
from tests.harness import Traffic
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1200)]

AT_START = ("snapshot_begun", "snapshot_part_delivered", "snapshot_delivered", "snapshot_recorded")
LIVE = ("changes_delivered", "merge_recorded", "resolved_recorded", "resolved_reported")


@pytest.mark.long
def test_a_kill_at_each_step_of_a_delivery_loses_and_doubles_nothing(
    world_maker: MakeWorld,
) -> None:
    """Guards the order of a sink's writes: rows of a snapshot that died would be read beside those
    of the next one, recorded before it is delivered a change would be lost, and what an unrecorded
    try left would be in a closed bucket twice. A loader reads closed buckets alone; that no change
    is in them twice, and none after a newer one, `replayed` sees."""
    patient = {"REPLICATOR_LEASE_SECONDS": "120"}  # a slow machine is no fault of the order
    with world_maker(kind=FilesWorld, format="Parquet", environment=patient) as world:
        traffic = Traffic(world.database, seed=11)
        for name in AT_START:
            world.arm(name)
            died_at(world, world.start(), name)
            assert set(world.states().values()) != {"replicating"}, "nothing remained to be done"
            traffic.write(10)
        child = world.start()
        for name in LIVE:
            world.settle()
            with traffic.going_on():
                world.arm(name)
                died_at(world, child, name)
            child = world.start()
        world.assert_equal()
        operations = {r["_operation"] for r in world.records("items")}
        assert operations == {"read", "insert", "update", "delete"}
        assert world.stop() == 0


@pytest.mark.long
def test_on_spark_a_column_a_truncate_and_a_copy_come_and_marks_go_on(
    world_maker: MakeWorld,
) -> None:
    """In Parquet, through Spark. In JSON lines and without a JVM:
    `integration/test_files_target.py`."""
    with world_maker(kind=FilesWorld, format="Parquet") as world:
        traffic = Traffic(world.database, seed=11)
        world.start()
        world.settle()
        column_truncate_and_resync(world, traffic)
        marks_go_on(world)
