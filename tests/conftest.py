"""Fixtures that every suite shares: real servers, each started only when a test asks for it."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.bigquery import EmbeddedBigQuery
from demo.broker import EmbeddedBroker
from demo.postgres import EmbeddedPostgres
from tests.kafka_servers import KafkaBroker, SchemaRegistry
from tests.mysql_servers import (
    MariadbServer,
    MysqlServer,
    SqlDatabase,
    SqlServer,
    fresh_sql_database,
)
from tests.plugin_minutes import file_of
from tests.postgres_versions import (
    NEWEST,
    Servers,
    postgres,
    postgres_servers,
    pytest_generate_tests,
)
from tests.progress import Progress
from tests.redshift_server import RedshiftServer, redshift_server
from tests.report import UNKNOWN, Report, tested_commit
from tests.search_server import SearchServer
from tests.servers import Database, fresh_database
from tests.snowflake_server import SnowflakeServer
from tests.spanner_server import SpannerServer
from tests.spark_fixtures import lakehouse_root, spark
from tests.turns import turns
from tests.world_fixtures import app_template, shared_spark

__all__ = [
    "app_template",
    "lakehouse_root",
    "postgres",
    "postgres_servers",
    "pytest_generate_tests",
    "shared_spark",
    "spark",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also the cases of `make test-long`")
    parser.addoption("--report", help="write a page of what was done to this file")
    parser.addoption(
        "--plugin-minutes", help="write the minutes of each plugin's own tests to this file"
    )


def pytest_configure(config: pytest.Config) -> None:
    """The page is written by a plugin of its own. The seed of the adversary's walks is set here, so
    that a run that is broken off has named it."""
    os.environ.setdefault("SEED", str(_seed()))
    if hasattr(config, "workerinput"):
        return
    config.pluginmanager.register(Progress(config), "progress")
    if named := config.getoption("--report"):
        config.pluginmanager.register(Report(Path(named)), "report")


def _seed() -> int:
    """Another walk for each commit, and the same for all who test it; a random one where there is
    no commit."""
    commit = tested_commit()
    if commit == UNKNOWN:
        return random.SystemRandom().randrange(1_000_000)
    return int(commit[:10], 16) % 1_000_000


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`make test` leaves the cases marked `long` to `make test-long`. Where processes share the
    suite, `tests.turns` says in which order they take its files."""
    if not config.getoption("--long"):
        late = [item for item in items if _is_long(item)]
        config.hook.pytest_deselected(items=late)
        items[:] = [item for item in items if not _is_long(item)]
    if hasattr(config, "workerinput"):
        places = turns(list(dict.fromkeys(file_of(item.nodeid) for item in items)))
        items.sort(key=lambda item: places[file_of(item.nodeid)])


def _is_long(item: pytest.Item) -> bool:
    """Marked `long`, or `long_with` one of its parameters' ids."""
    if item.get_closest_marker("long"):
        return True
    callspec = getattr(item, "callspec", None)
    ids = callspec.id.split("-") if callspec else []
    return any(set(mark.args) & set(ids) for mark in item.iter_markers("long_with"))


def pytest_report_header() -> list[str]:
    """The seed of the adversary's walks, and another PostgreSQL than the wheel's."""
    seed = f"nemesis: SEED={os.environ['SEED']}"
    named = os.environ.get("TEST_POSTGRES_BIN")
    if not named:
        return [seed]
    said = subprocess.run(
        [f"{named}/postgres", "--version"], capture_output=True, text=True, check=True
    )
    return [seed, said.stdout.replace("(PostgreSQL)", "PostgreSQL").strip()]


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


@pytest.fixture(scope="session")
def bigquery() -> Iterator[EmbeddedBigQuery]:
    """One BigQuery emulator for the whole session; tests use datasets of their own."""
    with EmbeddedBigQuery() as server:
        yield server


@pytest.fixture(scope="session")
def spanner() -> Iterator[SpannerServer]:
    """A small Spanner in this process; each test makes databases of its own."""
    server = SpannerServer().start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def snowflake() -> Iterator[SnowflakeServer]:
    """One Snowflake emulator for the whole session; tests use databases of their own."""
    with SnowflakeServer() as server:
        yield server


@pytest.fixture(scope="session")
def redshift(postgres_servers: Servers) -> Iterator[RedshiftServer]:
    """One server that plays Redshift for the whole session; tests use databases of their own."""
    with redshift_server(postgres_servers.get(NEWEST)) as server:
        yield server


@pytest.fixture(scope="session")
def search_server() -> Iterator[SearchServer]:
    """One search server for the whole session; tests use indexes of their own."""
    with SearchServer() as server:
        yield server


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    """One Kafka broker for the whole session; tests use topics of their own."""
    with KafkaBroker() as server:
        yield server


@pytest.fixture(scope="session")
def schema_registry() -> Iterator[SchemaRegistry]:
    """One schema registry for the whole session; tests use subjects of their own."""
    with SchemaRegistry() as server:
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
