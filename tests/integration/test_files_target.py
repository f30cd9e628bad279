"""The whole path into files: closed buckets lead to the source's rows, each change once and in
order, over kills."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.files_world import FilesWorld, LocalFilesWorld, MysqlFilesWorld
from tests.harness import FILL_ITEMS, Traffic
from tests.mysql_servers import SqlServer
from tests.mysql_world import SHOP_TABLES as MYSQL_TABLES
from tests.mysql_world import MysqlTraffic
from tests.mysql_world import make_shop as make_mysql_shop
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def closed_files(world: FilesWorld) -> dict[Path, bytes]:
    """Everything in buckets that are closed."""
    found = [p.parent for p in world.warehouse.rglob("_manifest.json")]
    return {path: path.read_bytes() for folder in found for path in folder.iterdir()}


def assert_kept(before: dict[Path, bytes]) -> None:
    """Closed buckets are as they were, with no file more."""
    for folder in {p.parent for p in before}:
        assert set(folder.iterdir()) == {p for p in before if p.parent == folder}
    for path, data in before.items():
        assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        (FilesWorld, "Parquet"),
        pytest.param(FilesWorld, "JSON lines", marks=pytest.mark.long),
        (LocalFilesWorld, "JSON lines"),
    ],
    ids=["Parquet on Spark", "JSON lines on Spark", "JSON lines"],
)
def test_closed_buckets_lead_to_the_rows_of_the_source(
    world_maker: MakeWorld, kind: type[FilesWorld], form: str
) -> None:
    """Guards the target over the whole path: every type, composite keys, no key, unsent values,
    changed keys, a new column, a TRUNCATE and a fresh copy, with a SIGKILL while changes are
    delivered. What a loader took before stays as it was."""
    with world_maker(kind=kind, format=form) as world:
        traffic = Traffic(world.database)
        world.start()
        world.until(lambda: "snapshotting" in world.states().values(), "the first copy begins")
        traffic.write(30)
        world.assert_equal()
        before = closed_files(world)
        operations = {r["_operation"] for r in world.records("items")}
        assert operations == {"read", "insert", "update", "delete"}

        with traffic.going_on():
            world.moves_on("items")
            world.kill()
        world.start()
        world.database.execute("ALTER TABLE shop.items ADD COLUMN extra int")
        world.database.execute(FILL_ITEMS, {"first": 5_000_000, "last": 5_000_040})
        world.database.execute("UPDATE shop.items SET extra = 7 WHERE id >= 5000010")
        traffic.write(10)
        world.assert_equal()
        assert_kept(before)
        assert [r.get("extra") for r in world.target_rows("items")].count(7) >= 31
        assert {r["_schema"] for r in world.records("items")} == {1, 2}

        world.database.execute("TRUNCATE shop.pairs")
        world.resync("views")
        traffic.write(5)
        world.assert_equal()
        assert_kept(before)
        found = world.generation("views")
        assert found is not None and found.name != "g000001"
        assert world.stop() == 0


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
