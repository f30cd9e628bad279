"""Fixtures that every suite shares: real servers, each started only when a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo.broker import EmbeddedBroker
from demo.postgres import EmbeddedPostgres
from tests.mysql_servers import (
    MariadbServer,
    MysqlServer,
    SqlDatabase,
    SqlServer,
    fresh_sql_database,
)
from tests.servers import Database, fresh_database
from tests.spark_fixtures import lakehouse_root, spark

__all__ = ["lakehouse_root", "spark"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """One PostgreSQL 18 for the whole session, without fsync; tests make databases on it, not servers."""
    with EmbeddedPostgres(fsync=False, options={"max_connections": "200"}) as server:
        yield server


@pytest.fixture
def private_postgres() -> Iterator[EmbeddedPostgres]:
    """A PostgreSQL of the test's own, to be killed, restarted or configured badly."""
    with EmbeddedPostgres(fsync=False) as server:
        yield server


@pytest.fixture
def database(postgres: EmbeddedPostgres) -> Iterator[Database]:
    """A fresh, empty database on the session's server."""
    with fresh_database(postgres) as made:
        yield made


@pytest.fixture(scope="session")
def mariadb() -> Iterator[SqlServer]:
    """One MariaDB for the whole session; tests make databases on it."""
    with MariadbServer() as server:
        yield server


@pytest.fixture(scope="session")
def mysql() -> Iterator[SqlServer]:
    """One MySQL for the whole session."""
    with MysqlServer() as server:
        yield server


@pytest.fixture
def mariadb_database(mariadb: SqlServer) -> Iterator[SqlDatabase]:
    """A fresh, empty database on the session's MariaDB."""
    with fresh_sql_database(mariadb) as made:
        yield made


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedBroker]:
    """One Redis-protocol broker for the whole session."""
    with EmbeddedBroker() as server:
        yield server


@pytest.fixture
def redis_url(broker: EmbeddedBroker) -> str:
    """The session's broker."""
    return broker.url
