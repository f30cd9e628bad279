"""What the lakehouse writer holds stays the same however often it is called: files, connections,
threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from demo.postgres import EmbeddedPostgres
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import TargetTable
from replicators.targets.lakehouse.conf import spark_conf
from replicators.targets.lakehouse.iceberg import Iceberg
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.writer import LakehouseWriter
from tests.servers import fresh_database
from tests.spark.lakehouses import PLAIN, Lakehouse, table_schema
from tests.spark_fixtures import lakehouse_params

pytestmark = pytest.mark.spark
SIDE_BY_SIDE = 3
CALLS = 500
WARM_MERGES, MERGES, DELTA_MERGES = 6, 30, 6
KINDS = ("iceberg-sqlite", "iceberg-postgresql", "delta")


@dataclass(frozen=True, slots=True)
class Held:
    """What Spark's JVM, the catalog and this process hold."""

    files: int
    connections: int
    threads: int
    own_files: int
    own_threads: int
    allocators: int

    def is_level_with(self, before: Held) -> bool:
        """Whether it is no more than what pools that still fill and files in use explain."""
        return (
            self.files <= before.files + 15
            and self.connections <= before.connections + SIDE_BY_SIDE
            and self.threads <= before.threads + 40
            and self.own_files <= before.own_files + 5
            and self.allocators <= before.allocators + 5
            and self.own_threads <= before.own_threads + 10
        )


@dataclass(frozen=True, slots=True)
class Watched:
    """A lakehouse, its twin seen by Spark alone, and what is held."""

    house: Lakehouse
    far: LakehouseWriter
    held: Callable[[], Held]
    cut: Callable[[], object] = lambda: None


@pytest.fixture(params=KINDS)
def watched(
    request: pytest.FixtureRequest,
    spark: Any,
    lakehouse_root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """A lakehouse of each format, and with each kind of catalog."""
    form, _, database = request.param.partition("-")
    params = lakehouse_params(lakehouse_root, form)
    if database != "postgresql":
        path = params.catalog_uri.removeprefix("sqlite:///")
        yield _watched(spark, params, tmp_path, lambda: _open(spark).count(path))
        return
    server: EmbeddedPostgres = request.getfixturevalue("postgres")
    with fresh_database(server) as made:
        params = LakehouseParams(
            warehouse=str(tmp_path / "w"),
            catalog_uri=f"postgresql://{server.host}:{server.port}/{made.name}",
            catalog_user=server.user,
            catalog_password=server.password,
            catalog_name="other",
        )
        cut = (
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{made.name}'"
        )
        asked = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{made.name}'"
        secret = tmp_path / "pgpass"
        secret.write_text(f"*:*:*:*:{server.password}\n")
        properties = spark._jvm.System
        properties.setProperty("org.postgresql.pgpassfile", str(secret))
        conf = {k: v for k, v in spark_conf(params).items() if ".catalog." in k}
        monkeypatch.setattr(Iceberg, "session_conf", {**Iceberg.session_conf, **conf})
        try:
            made_of = _watched(spark, params, tmp_path, lambda: int(server.execute(asked)[0][0]))
            yield replace(made_of, cut=lambda: server.execute(cut))
        finally:
            properties.clearProperty("org.postgresql.pgpassfile")


def _open(spark: Any) -> list[str]:
    folder = Path("/proc") / str(spark._jvm.ProcessHandle.current().pid()) / "fd"
    return [os.readlink(p) for p in folder.iterdir() if p.is_symlink()]


def _watched(
    spark: Any, params: LakehouseParams, folder: Path, connections: Callable[[], int]
) -> Watched:
    own, jvm = psutil.Process(), psutil.Process(spark._jvm.ProcessHandle.current().pid())

    arrow = spark._jvm.org.apache.iceberg.arrow.ArrowAllocation.rootAllocator()

    def held() -> Held:
        return Held(
            jvm.num_fds(),
            connections(),
            jvm.num_threads(),
            own.num_fds(),
            own.num_threads(),
            arrow.getChildAllocators().size(),
        )

    # Looked at by its URL, a warehouse is read through Spark's catalog alone, as one in an object
    # store is.
    far = replace(params, warehouse=f"file://{params.warehouse}")
    house = Lakehouse(params, LakehouseWriter(params, spark), folder)
    return Watched(house, LakehouseWriter(far, spark), held)


def _work(watched: Watched, pool: ThreadPoolExecutor, calls: int, merges: int, start: int) -> None:
    """Calls side by side, among them merges into three tables."""
    house, missing = watched.house, TargetTable(TableId("shop", "missing"), "r1", 1)
    schemas = [table_schema(f"held_{n}", PLAIN) for n in range(SIDE_BY_SIDE)]
    if start == 0:
        for one in schemas:
            house.copied(one, [(0, "a", "x")])

    def merge(number: int) -> None:
        for turn in range(start, start + merges // SIDE_BY_SIDE):
            one = schemas[number]
            table = TargetTable(one.id, "r1", 1)
            house.writer.merge(table, house.batch(one, 10 + turn, [(turn, str(number), None)]))

    done = [pool.submit(watched.far.token, missing) for _ in range(calls)]
    done += [pool.submit(merge, n) for n in range(SIDE_BY_SIDE)]
    for one_done in done:
        one_done.result(600)


def _level(watched: Watched, calls: int, merges: int) -> None:
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        _work(watched, pool, SIDE_BY_SIDE * 10, WARM_MERGES, 0)
        before = watched.held()
        _work(watched, pool, calls, merges, WARM_MERGES)
        after = watched.held()
    assert after.is_level_with(before), (before, after)


@pytest.mark.parametrize(
    "watched",
    [
        "iceberg-sqlite",
        pytest.param("iceberg-postgresql", marks=pytest.mark.long),
        pytest.param("delta", marks=pytest.mark.long),
    ],
    indirect=True,
)
@pytest.mark.long
def test_five_hundred_calls_hold_no_more_than_thirty(watched: Watched) -> None:
    """Guards `Sessions.lent`: each new session loaded the catalog anew, and its connection stayed
    open for ever."""
    is_slow = watched.house.form == "delta"
    _level(watched, CALLS, DELTA_MERGES if is_slow else MERGES)


@pytest.mark.long
def test_five_hundred_merges_hold_no_more_than_six(watched: Watched) -> None:
    """The same with real merges; takes minutes."""
    _level(watched, CALLS, CALLS)


@pytest.mark.parametrize("watched", ["iceberg-postgresql"], indirect=True)
def test_a_catalog_that_was_away_is_connected_again(watched: Watched) -> None:
    """A kept session has a connection that its server ended: the merge that meets it may fail, the
    next one does not."""
    house = watched.house
    schema = table_schema("cut", PLAIN)
    table = house.copied(schema, [(0, "a", "x")])
    house.writer.merge(table, house.batch(schema, 10, [(1, "b", None)]))
    watched.cut()
    codes = []
    try:
        house.writer.merge(table, house.batch(schema, 11, [(2, "c", None)]))
    except ReplicationError as err:
        codes.append(err.code)
    assert codes in ([], ["target:unreachable"])
    house.writer.merge(table, house.batch(schema, 11, [(2, "c", None)]))
    house.writer.merge(table, house.batch(schema, 12, [(3, "d", None)]))
    assert house.writer.token(table).sequence == 12  # type: ignore[union-attr]
    assert watched.far.token(table).sequence == 12  # type: ignore[union-attr]
