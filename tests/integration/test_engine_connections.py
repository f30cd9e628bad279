"""Cut connections, a restarted server, idle tables and lag: the run goes on by itself and says how
far behind it is."""

from __future__ import annotations

from typing import Any

import pytest

from demo.postgres import EmbeddedPostgres
from tests.harness import Traffic, World
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

CONFIRMED = (
    "SELECT (confirmed_flush_lsn - '0/0')::bigint FROM pg_replication_slots WHERE slot_name = %s"
)
CUT = """
SELECT count(pg_terminate_backend(active_pid)) FROM pg_replication_slots
WHERE slot_name = %s AND active_pid IS NOT NULL
"""


def lag(world: World) -> Any:
    """The worst table's."""
    return max((world.row(t).lag_seconds for t in world.tables), key=lambda v: v or 0.0)


def confirmed(world: World) -> int:
    return int(world.database.execute(CONFIRMED, [world.replicator.slot_name])[0][0])


def is_level(world: World) -> bool:
    return all(world.row(t).lag_seconds == 0.0 for t in world.tables)


@pytest.mark.timeout(900)
def test_a_run_outlives_cut_connections_and_a_restart_of_the_server(
    twin_maker: MakeWorld, private_postgres: EmbeddedPostgres
) -> None:
    """Guards CORRECTNESS 1, 23, 28 and 33. Ending the run at a cut would need a new one; going on
    from the read instead of the recorded position would lose rows; a lag of 0 without a fresh
    heartbeat would say all is well while cut off; without the heartbeat an idle replicator would
    hold the server's log for ever."""
    with twin_maker(server=private_postgres, tables=("items", "views")) as world:
        traffic = Traffic(world.database)
        child = world.start()
        world.settle()
        world.until(lambda: is_level(world), "lag 0 once level")

        with traffic.going_on():
            for _ in range(3):
                world.until(
                    lambda: world.database.execute(CUT, [world.replicator.slot_name])[0][0],
                    "a walsender to cut",
                )
                seen, position = traffic.transactions, world.position()
                world.until(
                    lambda s=seen, p=position: (
                        traffic.transactions > s + 20 and world.position() > p
                    ),
                    "it reads again after the cut",
                )
        world.assert_equal()

        traffic.write(20)
        private_postgres.stop("fast")
        world.until(lambda: (lag(world) or 0.0) > 8.0, "lag grows while cut off")
        private_postgres.start()
        traffic.write(20)
        world.assert_equal()
        world.until(lambda: is_level(world), "lag 0 again")

        busy = Database(private_postgres, "busy")
        private_postgres.execute("CREATE DATABASE busy")
        busy.execute(
            "CREATE TABLE noise AS SELECT i, repeat('x', 500) FROM generate_series(1, 9000) i"
        )
        end = int(busy.execute("SELECT (pg_current_wal_lsn() - '0/0')::bigint")[0][0])
        world.until(lambda: confirmed(world) >= end, "the slot lets the other database's log go")
        assert is_level(world) or (lag(world) or 0.0) < 10.0
        assert not child.is_dead()
        assert world.stop() == 0
