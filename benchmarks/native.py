"""PostgreSQL's own logical replication between two servers: the peer, and the limit, of the lines
into PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from demo.postgres import EmbeddedPostgres

SERVER = {"shared_buffers": "256MB", "max_wal_size": "4GB", "wal_sender_timeout": "0"}
"""The settings of both servers, for every side. A held run must not lose its connection."""
LOOK_SECONDS = 0.02
WAIT_SECONDS = 300.0
LEFT = (
    "SELECT count(*) FILTER (WHERE srsubstate <> ALL(%s)), count(*) FROM pg_subscription_rel r "
    "JOIN pg_subscription s ON s.oid = r.srsubid WHERE s.subname = %s"
)
COPIED, STREAMED = ["f", "s", "r"], ["r"]
"""States of a table of a subscription: its rows are committed; its changes are applied as they
come."""


@contextmanager
def pair(**target: str) -> Iterator[tuple[EmbeddedPostgres, EmbeddedPostgres]]:
    """A source and a target with the same settings, which do not wait for their disk. `target` has
    further settings of the target."""
    with (
        EmbeddedPostgres(fsync=False, options=SERVER) as source,
        EmbeddedPostgres(fsync=False, options={**SERVER, **target}) as other,
    ):
        yield source, other


def fresh(server: EmbeddedPostgres, database: str) -> None:
    """Make an empty database in place of the older one of that name."""
    server.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
    server.execute(f'CREATE DATABASE "{database}"')


@dataclass
class Native:
    """A publication at the source, and a subscription to it in a database of the target that has
    the name `name`. `is_binary`: values are sent in their binary form."""

    source: EmbeddedPostgres
    target: EmbeddedPostgres
    name: str
    is_binary: bool = False
    source_database: str = "postgres"

    def prepare(self, ddl: str, tables: Sequence[str]) -> None:
        """Make the target's empty tables with `ddl`, and publish the source's tables."""
        fresh(self.target, self.name)
        if ddl:
            self._at_target(ddl)
        self._at_source(f"CREATE PUBLICATION {self.name} FOR TABLE {', '.join(tables)}")

    def subscribe(self) -> None:
        """Let the copy begin."""
        dsn = self.source.dsn(self.source_database)
        self._at_target(
            f"CREATE SUBSCRIPTION {self.name} CONNECTION '{dsn}' PUBLICATION {self.name} "
            f"WITH (copy_data = true, binary = {str(self.is_binary).lower()})"
        )

    def wait(self, states: list[str], seconds: float = WAIT_SECONDS) -> None:
        """Wait until every table has one of these states. Raises TimeoutError where it takes too
        long."""
        end = time.monotonic() + seconds
        with self.target.connect(self.name) as connection:
            while True:
                left, tables = connection.execute(LEFT, [states, self.name]).fetchone() or (0, 0)
                if tables and not left:
                    return
                if time.monotonic() > end:
                    raise TimeoutError(f"Logical replication has no such state: {states}")
                time.sleep(LOOK_SECONDS)

    def hold(self) -> None:
        """Stop the subscription. Its slot keeps the changes."""
        self._at_target(f"ALTER SUBSCRIPTION {self.name} DISABLE")
        running = "SELECT count(*) FROM pg_stat_subscription WHERE subname = %s AND pid IS NOT NULL"
        end = time.monotonic() + WAIT_SECONDS
        with self.target.connect(self.name) as connection:
            while connection.execute(running.encode(), [self.name]).fetchall() != [(0,)]:
                if time.monotonic() > end:
                    raise TimeoutError("The subscription's worker does not end")
                time.sleep(LOOK_SECONDS)

    def go_on(self) -> None:
        """Let the subscription apply changes."""
        self._at_target(f"ALTER SUBSCRIPTION {self.name} ENABLE")

    def end(self) -> None:
        """Remove the subscription, its slot and the publication. The rows stay."""
        self._at_target(f"DROP SUBSCRIPTION {self.name}")
        self._at_source(f"DROP PUBLICATION {self.name}")

    def _at_target(self, sql: str) -> None:
        self.target.execute(sql, database=self.name)

    def _at_source(self, sql: str) -> None:
        self.source.execute(sql, database=self.source_database)
