"""The whole path into files: closed buckets lead to the source's rows, each change once and in
order, over kills."""

from __future__ import annotations

from typing import Any

import pytest

from tests.files_world import (
    FilesWorld,
    LocalFilesWorld,
    MysqlFilesWorld,
    assert_kept,
    column_truncate_and_resync,
    marks_go_on,
)
from tests.harness import Traffic
from tests.mysql_servers import SqlServer
from tests.mysql_world import SHOP_TABLES as MYSQL_TABLES
from tests.mysql_world import MysqlTraffic
from tests.mysql_world import make_shop as make_mysql_shop
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        pytest.param(FilesWorld, "Parquet", marks=pytest.mark.long),
        pytest.param(FilesWorld, "JSON lines", marks=pytest.mark.long),
        (LocalFilesWorld, "JSON lines"),
    ],
    ids=["Parquet on Spark", "JSON lines on Spark", "JSON lines"],
)
@pytest.mark.long
def test_closed_buckets_lead_to_the_rows_of_the_source(
    world_maker: MakeWorld, kind: type[FilesWorld], form: str
) -> None:
    """Guards the target over the whole path: every type, composite keys, no key, unsent values,
    changed keys, a new column, a TRUNCATE and a fresh copy, with a SIGKILL while changes are
    delivered. What a loader took before stays as it was. On Spark and in Parquet:
    `crash/test_sink.py`."""
    with world_maker(kind=kind, format=form) as world:
        traffic = Traffic(world.database)
        world.start()
        world.until(lambda: "snapshotting" in world.states().values(), "the first copy begins")
        traffic.write(30)
        world.assert_equal()
        before = world.closed_files()
        operations = {r["_operation"] for r in world.records("items")}
        assert operations == {"read", "insert", "update", "delete"}

        with traffic.going_on():
            world.moves_on("items")
            world.kill()
        world.start()
        column_truncate_and_resync(world, traffic)
        assert_kept(before)
        marks_go_on(world)


@pytest.mark.long
def test_changes_of_mariadb_lead_to_its_rows(world_maker: MakeWorld, mariadb: SqlServer) -> None:
    """Guards the target behind another kind of log: every type of its own, and changed keys."""
    values: dict[str, Any] = {"kind": MysqlFilesWorld, "format": "JSON lines"}
    with world_maker(
        server=mariadb, prepare=make_mysql_shop, tables=MYSQL_TABLES, **values
    ) as world:
        traffic = MysqlTraffic(world.database)  # type: ignore[arg-type]
        world.start()
        world.until_states("replicating")
        traffic.write(60)
        world.assert_equal()
        updates = [r for r in world.records("items") if r["_operation"] == "update"]  # type: ignore[attr-defined]
        assert updates
        assert any(r["old_key"] for r in updates)
        assert not any(r["_unsent"] for r in updates)
        assert world.stop() == 0
