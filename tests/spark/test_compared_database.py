"""Tables and queries of real databases, compared in whole runs on Spark."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableId
from replicators.connectors.params import parse
from replicators.sources.compared import PLUGIN, arrivals
from replicators.sources.compared.params import ComparedParams
from replicators.targets.lakehouse import PLUGIN as LAKEHOUSE
from replicators.targets.lakehouse.naming import names
from replicators.targets.postgresql import PLUGIN as POSTGRESQL
from runners.engine.job import Job
from runners.engine.store.protocol import MemoryStore, TableRow, TableState
from tests.local.polled import SETTINGS, Running
from tests.mysql_servers import SqlServer, fresh_sql_database
from tests.postgres_target import writer_params
from tests.servers import Database
from tests.spark_fixtures import lakehouse_params

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(900)]
RECENT = TableId("delivered", "recent")
SECONDS = 300.0
DDL = "CREATE TABLE people (id bigint PRIMARY KEY, name varchar(40), price numeric(9,2), year int)"
QUERY = "recent: SELECT id, name, price FROM people WHERE year > 2020"
FIRST = Counter({(1, "Ann", "1.50"): 1, (2, "Bob", "2.00"): 1, (3, None, "3.25"): 1})
THEN = Counter({(1, "Ann", "1.50"): 1, (2, "Bo", "2.10"): 1, (4, "", "4.00"): 1})
ROWS = (
    "INSERT INTO people VALUES (1, 'Ann', 1.5, 2021), (2, 'Bob', 2, 2022), (3, NULL, 3.25, 2023), "
    "(9, 'old', 9, 2000)"
)
CHANGES = (
    "UPDATE people SET name = 'Bo', price = 2.1 WHERE id = 2",
    "DELETE FROM people WHERE id = 3",
    "UPDATE people SET name = 'older' WHERE id = 9",
    "INSERT INTO people VALUES (4, '', 4, 2024)",
)


class Clock:
    """The schedule's times, set by hand: the next delivery comes when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = 1_700_000_040.0
        monkeypatch.setattr(arrivals, "last_before", lambda text, at: self.at)

    def next(self) -> None:
        self.at += 60


class World:
    """A source, a target, and what the engine remembers."""

    def __init__(self, folder: Path, spark: Any, address: str, password: str) -> None:
        (folder / "state").mkdir()
        given = {
            "database": address,
            "password": password,
            "queries": QUERY,
            "keys": "recent: id",
            "schedule": "* * * * *",
            "state": str(folder / "state"),
        }
        self.params = parse(ComparedParams, given)
        self.store = MemoryStore([RECENT])
        self.spark = spark
        log = str(folder / "log")
        self.settings = dataclasses.replace(SETTINGS, log_url=log, log_spool_dir=str(folder))

    def start(self, target: Any, params: Any, mode: Mode = Mode.MIRROR) -> Running:
        self.store._tables[RECENT] = TableRow(RECENT, mode=mode, mode_asked=mode)
        job = Job("r9", "compared", "slot_r9", PLUGIN, self.params, target, params)
        return Running(job, self.store, self.settings, self.spark)

    def is_replicating(self) -> bool:
        return {r.state for r in self.store.tables()} == {TableState.REPLICATING}

    def counts(self) -> list[tuple[int, ...]]:
        """Inserted, updated, deleted and unchanged rows of each delivery."""
        found = sorted(self.store.deliveries.values(), key=lambda d: d.name)
        return [(d.inserts, d.updates, d.deletes, d.unchanged) for d in found]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def two_deliveries(
    world: World,
    running: Running,
    clock: Clock,
    execute: Callable[[str], Any],
    copied: Callable[[], Counter[Any]],
) -> None:
    """A copy, and what changed until the schedule's next time."""
    running.until(lambda: world.is_replicating() and copied() == FIRST, SECONDS)
    for sql in CHANGES:
        execute(sql)
    clock.next()
    running.until(lambda: copied() == THEN, SECONDS)
    running.stop()
    assert world.counts() == [(3, 0, 0, 0), (1, 1, 1, 1)]


@pytest.mark.long  # `make test` has a query and Iceberg each in another test
def test_a_query_of_postgresql_reaches_iceberg(
    tmp_path: Path, lakehouse_root: Path, spark: Any, database: Database, clock: Clock
) -> None:
    """Guards the whole path of a query: its first rows are the copy, and at the schedule's next
    time only what changed comes. A row that the query leaves out is nobody's change."""
    database.execute(DDL)
    database.execute(ROWS)
    at = database.params
    address = f"postgresql://{at['user']}@{at['host']}:{at['port']}/{database.name}"
    world = World(tmp_path, spark, address, at["password"])
    lake = lakehouse_params(lakehouse_root, "iceberg")

    def copied() -> Counter[Any]:
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.exceptions import NoSuchTableError

        catalog = SqlCatalog(lake.catalog_name, uri=lake.catalog_uri, warehouse=lake.warehouse)
        try:
            rows = catalog.load_table(names(lake, RECENT)).scan().to_arrow().to_pylist()
        except NoSuchTableError:
            return Counter()
        return Counter((r["id"], r["name"], f"{r['price']:.2f}") for r in rows)

    two_deliveries(world, world.start(LAKEHOUSE, lake), clock, database.execute, copied)


@pytest.mark.long
@pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.SOFT_DELETE, Mode.HISTORY])
def test_a_query_of_mysql_reaches_postgresql(
    tmp_path: Path,
    spark: Any,
    mysql: SqlServer,
    database: Database,
    clock: Clock,
    mode: Mode,
) -> None:
    """Guards another database and another target, in modes that keep what was deleted."""
    with fresh_sql_database(mysql) as shop:
        shop.execute(DDL, ROWS)
        at = shop.params
        address = f"mysql://{at['user']}@{at['host']}:{at['port']}/{shop.name}"
        world = World(tmp_path, spark, address, at["password"])
        current = {Mode.SOFT_DELETE: "WHERE NOT _is_deleted", Mode.HISTORY: "WHERE _is_current"}
        query = f"SELECT id, name, price FROM delivered.recent {current.get(mode, '')}"

        def copied() -> Counter[Any]:
            if not database.execute("SELECT to_regclass('delivered.recent')")[0][0]:
                return Counter()
            return Counter((r[0], r[1], f"{r[2]:.2f}") for r in database.execute(query))

        running = world.start(POSTGRESQL, writer_params(database), mode)
        two_deliveries(world, running, clock, shop.execute, copied)
        whole = database.execute("SELECT count(*) FROM delivered.recent")[0][0]
        assert whole == {Mode.MIRROR: 3, Mode.SOFT_DELETE: 4, Mode.HISTORY: 5}[mode]
