"""Real servers for the tests, started as local processes; each fixture cleans up after itself."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg

from demo.postgres import EmbeddedPostgres

_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Database:
    """A fresh database on a test server, and how to reach it."""

    server: EmbeddedPostgres = field(repr=False)
    name: str

    @property
    def params(self) -> dict[str, Any]:
        """host, port, user, password, database: as a PostgreSQL source's parameters name them."""
        return self.server.params(self.name)

    @property
    def dsn(self) -> str:
        """A libpq URL."""
        return self.server.dsn(self.name)

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """An autocommit psycopg connection as superuser."""
        return self.server.connect(self.name, **options)

    def execute(self, sql: str, params: Any = None) -> list[Any]:
        """Run statements; the rows of the last one, or an empty list."""
        return self.server.execute(sql, params, database=self.name)

    def user(self, name: str, options: str = "LOGIN") -> dict[str, Any]:
        """Make a role with the given options; the parameters to connect as it."""
        self.execute(f"CREATE ROLE {name} {options} PASSWORD '{self.server.password}'")
        return {**self.params, "user": name}


@contextmanager
def fresh_database(server: EmbeddedPostgres) -> Iterator[Database]:
    """A database of its own; its slots, and then it, are dropped at the end."""
    name = f"t{os.getpid()}_{next(_NUMBERS)}"
    server.execute(f"CREATE DATABASE {name}")
    try:
        yield Database(server, name)
    finally:
        drop_database(server, name)


def drop_database(server: EmbeddedPostgres, name: str) -> None:
    """End the database's walsenders and drop its slots, and it. A server that is down is started
    first."""
    if server.pid is None:
        server.start()
    server.execute(
        "SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots"
        f" WHERE database = '{name}' AND active_pid IS NOT NULL"
    )
    server.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
        f" WHERE database = '{name}' AND NOT temporary"
    )
    server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
