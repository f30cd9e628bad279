"""A world whose target is files: what it holds is what the manifests of closed buckets lead to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests import replayed
from tests.harness import World
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

    def settle(self, *names: str, **values: Any) -> None:
        """Wait until what was committed by now is delivered, and its buckets are closed."""
        super().settle(*names, **values)
        now = self.source_time()
        for name in names or self.tables:
            self.until(lambda name=name: self._closed(name) > now, f"{name} is closed past {now}")

    def _closed(self, name: str) -> str:
        found = self.generation(name)
        return replayed.closed_before(found) if found else ""

    def source_time(self) -> str:
        """The source's clock, as `_resolved.json` writes times."""
        (row,) = self.database.execute(
            "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS')"
        )
        return str(row[0])


class LocalFilesWorld(FilesWorld):
    """Its runs need no JVM."""

    program = (sys.executable, "-m", "tests.local.run")


class MysqlFilesWorld(LocalFilesWorld, MysqlWorld):
    """From MariaDB or MySQL, without a JVM."""

    def source_time(self) -> str:
        with self.database.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT date_format(utc_timestamp(), '%Y-%m-%dT%H:%i:%s')")
            found: Any = cursor.fetchone()
            return str(found[0])
