"""A world whose target is files: what it holds is what the manifests of closed buckets lead to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests import replayed
from tests.harness import FILL_ITEMS, Traffic, World
from tests.mysql_world import MysqlWorld


class FilesWorld(World):
    """In a folder, with buckets of ten seconds. `format` is the files'."""

    def target_params(self) -> tuple[str, dict[str, Any]]:
        reported = {"location": str(self.warehouse), "format": self.format, "bucket": "10 seconds"}
        return "files", {**reported, **self.target}

    def generation(self, name: str) -> Path | None:
        """The folder of a table's last whole copy."""
        found = replayed.generations(self.warehouse / f"{self.schema}.{name}")
        return found[-1] if found else None

    def target_rows(self, name: str) -> list[dict[str, Any]]:
        found = self.generation(name)
        return replayed.rows(found) if found else []

    def records(self, name: str) -> list[dict[str, Any]]:
        """Every change of closed buckets, in order."""
        found = self.generation(name)
        return list(replayed.records(found)) if found else []

    def assert_equal(self, *names: str) -> None:
        """Once the buckets of what was committed by now are closed."""
        self.settle(*names)
        now = self.source_time()
        for name in names or self.tables:
            self.until(lambda name=name: self._closed(name) > now, f"{name} is closed past {now}")
        super().assert_equal(*names)

    def _closed(self, name: str) -> str:
        found = self.generation(name)
        return replayed.closed_before(found) if found else ""

    def source_time(self) -> str:
        """The source's clock, as `_resolved.json` writes times."""
        (row,) = self.database.execute(
            "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS')"
        )
        return str(row[0])

    def closed_files(self) -> dict[Path, bytes]:
        """Everything in buckets that are closed."""
        found = [p.parent for p in self.warehouse.rglob("_manifest.json")]
        return {path: path.read_bytes() for folder in found for path in folder.iterdir()}


def assert_kept(before: dict[Path, bytes]) -> None:
    """Closed buckets are as they were, with no file more."""
    for folder in {p.parent for p in before}:
        assert set(folder.iterdir()) == {p for p in before if p.parent == folder}
    for path, data in before.items():
        assert path.read_bytes() == data


def column_truncate_and_resync(world: FilesWorld, traffic: Traffic) -> None:
    """A new column comes, a table is emptied, and one is copied afresh. What a loader took before
    stays as it was."""
    before = world.closed_files()
    world.database.execute("ALTER TABLE shop.items ADD COLUMN extra int")
    world.database.execute(FILL_ITEMS, {"first": 5_000_000, "last": 5_000_040})
    world.database.execute("UPDATE shop.items SET extra = 7 WHERE id >= 5000010")
    traffic.write(10)
    world.assert_equal()
    assert_kept(before)
    assert [r.get("extra") for r in world.target_rows("items")].count(7) >= 31
    assert {r["_schema"] for r in world.records("items")} == {1, 2}

    generation = world.generation("views")
    world.database.execute("TRUNCATE shop.pairs")
    world.resync("views")
    traffic.write(5)
    world.assert_equal()
    assert_kept(before)
    found = world.generation("views")
    assert found is not None and found != generation


def marks_go_on(world: FilesWorld) -> None:
    """A restart without work resolves later moments, and the run stops."""
    marks = {n: world.row(n).resolved_at for n in world.tables}
    assert world.stop() == 0
    world.start()
    world.until(
        lambda: all(world.row(n).resolved_at > marks[n] for n in world.tables),
        "marks of tables without work go on after a restart",
    )
    assert world.stop() == 0


class LocalFilesWorld(FilesWorld):
    """Its runs need no JVM, and its buckets have two seconds, not ten."""

    program = ("-m", "tests.local.run")

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        return super()._environment({"TEST_BUCKET_SECONDS": "2", **more})


class MysqlFilesWorld(LocalFilesWorld, MysqlWorld):
    """From MariaDB or MySQL, without a JVM."""

    def source_time(self) -> str:
        with self.database.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT date_format(utc_timestamp(), '%Y-%m-%dT%H:%i:%s')")
            found: Any = cursor.fetchone()
            return str(found[0])
