"""The servers that the other tests stand on."""

from __future__ import annotations

import redis

from demo.broker import EmbeddedBroker
from demo.postgres import EmbeddedPostgres
from tests.servers import Database, fresh_database


def test_a_database_allows_logical_decoding(database: Database) -> None:
    """Guards `wal_level` in `demo.postgres.DEFAULTS`: without "logical" no slot can be made, and no
    test of the log could run."""
    database.execute("SELECT pg_create_logical_replication_slot('t_slot', 'pgoutput')")
    rows = database.execute("SELECT plugin FROM pg_replication_slots WHERE slot_name = 't_slot'")
    assert rows == [("pgoutput",)]


def test_a_database_and_its_slots_are_gone_afterwards(postgres: EmbeddedPostgres) -> None:
    """Guards `drop_database`: slots that stay use up the server's twenty, and hold their
    databases."""
    with fresh_database(postgres) as made:
        made.execute("SELECT pg_create_logical_replication_slot('gone_slot', 'pgoutput')")
    left = postgres.execute("SELECT 1 FROM pg_replication_slots WHERE slot_name = 'gone_slot'")
    assert left == []
    assert postgres.execute("SELECT 1 FROM pg_database WHERE datname = %s", [made.name]) == []


def test_a_killed_server_comes_back_with_its_data_on_the_same_port(
    private_postgres: EmbeddedPostgres,
) -> None:
    """Guards `EmbeddedPostgres.kill` and `start`, on which crash tests stand: fails where data or
    port do not outlive the process."""
    server = private_postgres
    server.execute("CREATE TABLE kept (id int); INSERT INTO kept VALUES (1)")
    server.execute("CHECKPOINT")
    port = server.port
    server.kill()
    assert server.pid is None
    server.start()
    assert server.port == port
    assert server.execute("SELECT id FROM kept") == [(1,)]


def test_a_server_left_by_a_killed_parent_is_stopped_first(
    private_postgres: EmbeddedPostgres,
) -> None:
    """Guards `EmbeddedPostgres.stop_leftover`: without it the lock of the server that is left
    refuses the second one in the same folder."""
    left = private_postgres.pid
    with EmbeddedPostgres(folder=private_postgres.home, fsync=False) as heir:
        assert heir.pid != left
        assert private_postgres.pid is None
        assert heir.execute("SELECT 1") == [(1,)]


def test_the_broker_answers_and_comes_back_on_the_same_url(redis_url: str) -> None:
    """Guards `EmbeddedBroker.restart`: port and password stay, and `save ""` lets it forget
    everything, or a test of a lost queue would lose nothing."""
    with EmbeddedBroker() as server:
        assert server.url != redis_url
        client = redis.Redis.from_url(server.url)
        assert client.set("a", 1)
        before = server.url
        server.restart()
        assert server.url == before
        assert client.get("a") is None
