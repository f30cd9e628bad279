"""How work is cut must not change what comes out: the same changes with other sizes, intervals and
numbers of workers."""

from __future__ import annotations

import pytest

from tests.harness import Traffic
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.long, pytest.mark.timeout(900)]

SMALL = {
    "REPLICATOR_SEAL_BYTES": "2000",
    "REPLICATOR_ROWS_PER_CHUNK": "40",
    "REPLICATOR_MERGE_PARALLEL": "1",
    "REPLICATOR_SPARK_MASTER": "local[1]",
    "REPLICATOR_MAINTAIN_EVERY_COMMITS": "3",
}
LARGE = {
    "REPLICATOR_ROWS_PER_CHUNK": "1000000",
    "REPLICATOR_MERGE_PARALLEL": "4",
    "REPLICATOR_SPARK_MASTER": "local[4]",
    "REPLICATOR_MAINTAIN_EVERY_COMMITS": "1000",
}


@pytest.mark.parametrize(
    ("seal", "merge", "environment"),
    [(0.1, 0.1, SMALL), (5.0, 4.0, LARGE), (0.1, 4.0, LARGE), (5.0, 0.1, SMALL)],
    ids=["all small", "all large", "many segments, few merges", "few segments, many merges"],
)
def test_the_end_is_the_same_however_the_work_is_cut(
    world_maker: MakeWorld, seal: float, merge: float, environment: dict[str, str]
) -> None:
    """Guards CORRECTNESS 2, 3, 5 and 11: a transaction over many segments, a chunk's edge within a
    page's rows, a batch of one or of all changes, or tables merged one after the other, would each
    show where an edge is off by one."""
    options = {"seal_seconds": seal, "merge_seconds": merge}
    with world_maker(options=options, environment=environment) as world:
        traffic = Traffic(world.database, seed=3)
        world.start()
        traffic.write(40)
        world.settle()
        traffic.write(60)
        world.database.execute("UPDATE shop.items SET n = n + 1 WHERE id % 2 = 0")
        traffic.write(40)
        world.assert_equal()
        assert world.stop() == 0
