"""What a source does to a run: connections cut within a message, limits on statements, rights taken
away, a slot that the server gave up."""

from __future__ import annotations

import random

import pytest

from demo.postgres import EmbeddedPostgres
from tests.harness import Traffic, make_shop
from tests.proxies import CuttingProxy
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

CUTS = 6


@pytest.mark.long
def test_connections_cut_within_messages_and_a_limit_on_statements_lose_and_double_nothing(
    twin_maker: MakeWorld, postgres: EmbeddedPostgres
) -> None:
    """Guards CORRECTNESS 1: half a message, or half a transaction, must never be kept; and that the
    source's own limit on statements does not end the copy of a large table."""
    user = "hurried_reader"

    def prepare(database: Database) -> None:
        make_shop(database)
        database.user(user, "LOGIN REPLICATION SUPERUSER")
        database.execute(f"ALTER ROLE {user} SET statement_timeout = '1ms'")

    with CuttingProxy(postgres.port) as proxy:
        source = {"port": proxy.port, "user": user}
        try:
            with twin_maker(prepare=prepare, source=source, tables=("items", "views")) as world:
                traffic = Traffic(world.database)
                child = world.start()
                world.settle()
                random_ = random.Random(5)
                with traffic.going_on():
                    for _ in range(CUTS):
                        cuts, position = proxy.cuts, world.position()
                        proxy.cut_after(random_.randint(1, 60_000))
                        world.until(lambda c=cuts: proxy.cuts > c, "a connection is cut")
                        world.until(lambda p=position: world.position() > p, "it reads again")
                world.assert_equal()
                assert not child.is_dead()
                assert world.stop() == 0
        finally:
            postgres.execute(f"DROP ROLE IF EXISTS {user}")


@pytest.mark.long
def test_a_right_that_is_taken_away_ends_the_run_plainly_and_given_back_it_goes_on(
    world_maker: MakeWorld, postgres: EmbeddedPostgres
) -> None:
    """Guards that the run says which right is missing, instead of trying for ever or calling the
    log lost."""
    user = "demoted_reader"

    def prepare(database: Database) -> None:
        make_shop(database)
        database.user(user, "LOGIN REPLICATION")
        database.execute(
            f"GRANT CREATE ON DATABASE {database.name} TO {user};"
            f"GRANT USAGE ON SCHEMA shop TO {user}"
        )
        for name in ("items", "pairs", "views"):
            database.execute(f"ALTER TABLE shop.{name} OWNER TO {user}")

    try:
        with world_maker(prepare=prepare, source={"user": user}) as world:
            traffic = Traffic(world.database)
            child = world.start()
            world.settle()
            world.database.execute(f"ALTER ROLE {user} NOREPLICATION")
            world.database.execute(
                "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
                " WHERE slot_name = %s AND active_pid IS NOT NULL", [world.replicator.slot_name],
            )  # fmt: skip
            traffic.write(20)
            assert child.wait() != 0
            child.end()
            assert child.run.error_code == "source:replication-right"
            world.database.execute(f"ALTER ROLE {user} REPLICATION")
            world.start()
            world.assert_equal()
            assert world.stop() == 0
    finally:
        postgres.execute(f"DROP ROLE IF EXISTS {user}")


@pytest.mark.long
def test_a_table_that_may_not_be_read_any_more_stops_and_the_others_go_on(
    twin_maker: MakeWorld, postgres: EmbeddedPostgres
) -> None:
    """Guards a right that is taken away: PostgreSQL sends the log also to a user without SELECT, so
    the table's changes went on to the target."""
    user = "blinded_reader"

    def prepare(database: Database) -> None:
        make_shop(database)
        database.user(user, "LOGIN REPLICATION")
        database.execute(
            f"GRANT CREATE ON DATABASE {database.name} TO {user};"
            f"GRANT USAGE ON SCHEMA shop TO {user}"
        )
        for name in ("items", "pairs", "views"):
            database.execute(f"ALTER TABLE shop.{name} OWNER TO {user}")

    try:
        with twin_maker(prepare=prepare, source={"user": user}) as world:
            traffic = Traffic(world.database)
            world.start(REPLICATOR_CATALOG_SECONDS="0.5")
            world.settle()
            world.database.execute(f"REVOKE ALL ON shop.items FROM {user}")
            world.until_states("failing source:select-revoked", "items")
            assert "items" not in world.published()
            traffic.write(20)
            world.assert_equal("pairs", "views")
            world.database.execute(f"GRANT ALL ON shop.items TO {user}")
            world.resync("items")
            world.assert_equal()
            assert world.stop() == 0
    finally:
        postgres.execute(f"DROP ROLE IF EXISTS {user}")


@pytest.mark.long
def test_a_slot_that_the_server_gave_up_is_said_plainly_and_resync_brings_all_tables_back(
    world_maker: MakeWorld,
) -> None:
    """Guards CORRECTNESS 23: reading on from a new slot would lose what was committed in
    between."""
    options = {"max_slot_wal_keep_size": "1MB", "max_wal_size": "32MB", "min_wal_size": "32MB"}
    with (
        EmbeddedPostgres(fsync=False, options=options) as server,
        world_maker(server=server) as world,
    ):
        traffic = Traffic(world.database)
        world.start()
        world.settle()
        assert world.stop() == 0
        for _ in range(6):
            world.database.execute("CREATE TABLE noise AS SELECT repeat('x', 2000) t FROM "
                                   "generate_series(1, 20000) i; DROP TABLE noise")  # fmt: skip
            world.database.execute("SELECT pg_switch_wal(); CHECKPOINT")
        world.start()
        world.until_states("failing source:slot-invalidated")
        traffic.write(10)
        for name in world.tables:
            world.resync(name)
        traffic.write(10)
        world.assert_equal()
        assert world.stop() == 0
