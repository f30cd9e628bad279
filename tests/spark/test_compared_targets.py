"""The compared source into every merge target, in every mode that people choose for it."""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from demo.bigquery import EmbeddedBigQuery
from replicators.connectors import registry
from replicators.connectors.model.modes import CHOICES, Mode
from replicators.connectors.params import parse
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.bigquery.connection import open_client
from runners.engine.store.target_table import target_table
from runners.engine.tasks.on_spark import SparkTasks
from tests.mysql_servers import SqlServer, fresh_sql_database
from tests.mysql_target import plain_writer
from tests.postgres_target import writer_params
from tests.redshift_server import LOADER, RedshiftServer, fresh_redshift_database
from tests.redshift_target import params_of as redshift_params
from tests.servers import Database
from tests.snowflake_server import SnowflakeServer
from tests.snowflake_target import params_of
from tests.spanner_server import SpannerServer
from tests.spanner_target import params_of as spanner_params
from tests.spark.test_compared_database import CHANGES, DDL, ROWS, Clock, World, two_deliveries
from tests.spark_fixtures import lakehouse_params

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(900)]
_NUMBERS = itertools.count(1)
HERE = ("bigquery", "lakehouse", "mysql", "postgresql", "redshift", "snowflake", "spanner")
"""The merge targets of this program. A new one is added here, with its place below."""
OTHERWISE = {Mode.MESSAGES: "its rows are messages: contract/test_postgresql_target.py"}
CASES = [
    (name, mode)
    for name in HERE
    for mode in CHOICES
    if mode in registry.targets()[name].capabilities.modes and mode not in OTHERWISE
]


def test_every_merge_target_is_here() -> None:
    """Guards the list: a target that is left out of it is never tried with deliveries."""
    merging = [
        name
        for name, plugin in registry.targets().items()
        if not plugin.capabilities.takes_changes and name != "memory"
    ]
    assert sorted(merging) == sorted(HERE)


@dataclass
class Shop:
    """The database that is compared: SQLite."""

    path: Path

    def __post_init__(self) -> None:
        self.execute(DDL)
        self.execute(ROWS)

    def execute(self, statement: str) -> None:
        with closing(sqlite3.connect(self.path)) as made, made:
            made.execute(statement)


@pytest.fixture
def target_params(request: pytest.FixtureRequest, name: str, tmp_path: Path) -> Any:
    """Where the target lies, on a real server or the emulator."""
    match name:
        case "lakehouse":
            found = lakehouse_params(request.getfixturevalue("lakehouse_root"), "iceberg")
            yield replace(found, namespace=f"compared_{next(_NUMBERS)}")
        case "postgresql":
            database: Database = request.getfixturevalue("database")
            yield writer_params(database)
        case "mysql":
            server: SqlServer = request.getfixturevalue("mariadb")
            with fresh_sql_database(server) as copies:
                given = {**plain_writer(copies), "database": copies.name}
                yield parse(registry.targets()[name].params, given)
        case "bigquery":
            emulator: EmbeddedBigQuery = request.getfixturevalue("bigquery")
            dataset = f"compared_{next(_NUMBERS)}"
            given = {"project": "contract", "dataset": dataset, "endpoint": emulator.url}
            found = parse(registry.targets()[name].params, given)
            with open_client(found) as client:
                client.create_dataset(dataset)
            yield found
        case "snowflake":
            played: SnowflakeServer = request.getfixturevalue("snowflake")
            given = params_of(played, f"COMPARED_{next(_NUMBERS)}")
            yield parse(registry.targets()[name].params, given)
        case "spanner":
            small: SpannerServer = request.getfixturevalue("spanner")
            given = spanner_params(small, f"compared_{next(_NUMBERS)}")
            yield parse(registry.targets()[name].params, given)
        case "redshift":
            redshift: RedshiftServer = request.getfixturevalue("redshift")
            with fresh_redshift_database(redshift) as copies:
                given = redshift_params(redshift, copies, LOADER)
                yield parse(registry.targets()[name].params, given)


@pytest.mark.long  # `make test` has it in test_compared_into_iceberg.py
@pytest.mark.parametrize(
    ("name", "mode"),
    [pytest.param(*case, id="-".join(case)) for case in CASES],
)
def test_two_deliveries_reach_it(
    tmp_path: Path, spark: Any, clock: Clock, target_params: Any, name: str, mode: Mode
) -> None:
    """Guards what deliveries ask of a target: a copy, then the changes between two sets, with old
    rows and without gaps, whatever the mode keeps."""
    plugin = registry.targets()[name]
    shop = Shop(tmp_path / "shop.db")
    world = World(tmp_path, spark, f"sqlite:///{shop.path}", "")
    writer: Any = plugin.writer(target_params, SparkTasks(spark, folder=str(tmp_path / "look")))

    def rows() -> pa.Table | None:
        row = world.store.tables()[0]
        if row.schema is None:
            return None
        table = target_table("r9", row)
        with suppress(ReplicationError), writer.open_rows(table, row.schema) as opened:
            return pa.Table.from_batches(opened.rows(), row.schema.arrow_schema())
        return None

    def copied() -> Counter[Any]:
        found = rows()
        values = [] if found is None else found.select(["id", "name", "price"]).to_pylist()
        return Counter((r["id"], r["name"], f"{r['price']:.2f}") for r in values)

    running = world.start(plugin, target_params, mode)
    if mode is Mode.APPEND:
        _every_change(world, running, clock, shop.execute, copied)
    else:
        two_deliveries(world, running, clock, shop.execute, copied)
    if hasattr(writer, "close"):  # a lakehouse has nothing to close
        writer.close()


def _every_change(
    world: World,
    running: Any,
    clock: Clock,
    execute: Callable[[str], Any],
    copied: Callable[[], Counter[Any]],
) -> None:
    """Three rows of the copy; then one that is new, one that changed, and one that went."""
    running.until(lambda: copied().total() == 3, 300)
    for sql in CHANGES:
        execute(sql)
    clock.next()
    running.until(lambda: copied().total() == 6, 300)
    running.stop()
    assert Counter(key for key, _, _ in copied().elements()) == {1: 1, 2: 2, 3: 2, 4: 1}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)
