"""Worlds whose target is a MariaDB or MySQL server. Their runs need no JVM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import LogicalType, String
from replicators.targets.mysql import naming
from tests.harness import World
from tests.mysql_servers import SqlDatabase
from tests.mysql_target import OF_MODES, neutral, plain_writer, quoted
from tests.mysql_world import MysqlWorld


@dataclass
class MysqlTargetWorld(World):
    """The copies lie in the database `copies`, written by a plain user."""

    program: ClassVar[tuple[str, ...]] = ("-m", "tests.local.run")

    copies: SqlDatabase | None = None

    @property
    def there(self) -> SqlDatabase:
        """The target's database."""
        assert self.copies is not None
        return self.copies

    def target_params(self) -> tuple[str, dict[str, Any]]:
        return "mysql", {
            **plain_writer(self.there),
            "database": self.there.name,
            **self.target,
        }

    def _kinds(self, name: str) -> dict[str, LogicalType]:
        """The types of the copy's columns at the source."""
        kept = self.row(name).schema
        columns = TableSchema.from_json(kept).columns if kept else ()
        return {**OF_MODES, **{c.name: c.type for c in columns}}

    def target_rows(self, name: str) -> list[dict[str, Any]]:
        kinds = self._kinds(name)
        with self.there.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {quoted(name)}")
            names = [d[0] for d in cursor.description or ()]
            return [
                {n: neutral(v, kinds.get(n, String())) for n, v in zip(names, row, strict=True)}
                for row in cursor.fetchall()
            ]

    def copied(self, name: str) -> tuple[tuple[str, ...], Iterator[dict[str, Any]]]:
        found = self.there.execute(f"SHOW COLUMNS FROM {quoted(name)}")
        return tuple(str(row[0]) for row in found), iter(self.target_rows(name))

    def _tables(self) -> set[str]:
        return {str(name) for (name,) in self.there.execute("SHOW TABLES")}

    def has_target(self, name: str) -> bool:
        return name in self._tables()

    def left_over(self, name: str) -> set[str]:
        """Our own tables besides the progress table."""
        return {n for n in self._tables() if n.startswith(naming.OWN)} - {naming.PROGRESS}

    def tokens(self, name: str) -> list[int]:
        """The sequence that the copy reached."""
        text = f"SELECT sequence FROM {naming.PROGRESS} WHERE target_table = '{name}'"
        return [row[0] for row in self.there.execute(text)]


@dataclass
class MysqlToMysqlWorld(MysqlTargetWorld, MysqlWorld):
    """From MariaDB or MySQL."""
