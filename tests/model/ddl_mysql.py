"""Changes of a table's schema on MariaDB and MySQL. Each is a transaction of its own, so that rows
come before and after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from tests.model.ddl import Alterations, Kinds
from tests.model.tables_mysql import ALTERED, FILL_ALTERED, columns_of

PLAIN = (
    "text", "int", "datetime(6)", "bit(1)", "decimal(9,2)", "timestamp(3) NULL", "enum('a','b')",
    "double", "json",
    "varchar(20) CHARACTER SET latin1",
)  # fmt: skip
WITH_DEFAULT = (
    "int NOT NULL DEFAULT 7", "varchar(40) DEFAULT 'it''s \"{,}\\\\ ü'",
    "datetime DEFAULT '2026-01-01 10:11:12'",
    "bit(1) DEFAULT b'1'", "decimal(9,2) DEFAULT 1.5", "enum('p','q') NOT NULL",
    "double DEFAULT 0.1",
    "bigint unsigned NOT NULL DEFAULT 18446744073709551615", "date DEFAULT '2026-02-03'",
    "varchar(20) NOT NULL DEFAULT ''",
)  # fmt: skip
COPIED = (
    "int DEFAULT (1 + 1)", "timestamp(6) NULL DEFAULT CURRENT_TIMESTAMP(6)", "json DEFAULT ('[1]')",
    "int AS (id + 1) STORED", "year NOT NULL DEFAULT 2024",
)  # fmt: skip
VALUES = {
    "int": "{n}", "bigint": "{n}", "decimal": "{n} / 8", "double": "{n} / 7", "bit": "{n} % 2",
    "enum": "1 + {n} % 2",
    "text": "'é{n}'", "varchar": "'ü{n}'", "json": "json_array({n})", "longtext": "json_array({n})",
    "date": "'2026-03-04'", "year": "2020",
    "datetime": "'2026-05-06 07:08:09.123456'", "timestamp": "'2026-05-06 07:08:09.5'",
}  # fmt: skip
PLACES = ("", "", " FIRST", " AFTER version", " AFTER v")


@dataclass
class MysqlAlterations(Alterations):
    """The table `altered` on MariaDB and MySQL."""

    _plain: ClassVar[Kinds] = PLAIN
    _with_default: ClassVar[Kinds] = WITH_DEFAULT
    _copied: ClassVar[Kinds] = COPIED

    def ways(self) -> dict[Callable[[], None], int]:
        own: dict[Callable[[], None], int] = {
            self.several: 6, self.drop_and_add: 2, self.say_the_same: 5, self.swap_in: 2,
        }  # fmt: skip
        return super().ways() | own

    def _made(self) -> tuple[str, ...]:
        filled = FILL_ALTERED.format(next=self.source.next, numbers=self.source.series(1, 200))
        return ALTERED, filled

    def _columns(self) -> dict[str, str]:
        return columns_of(self.source.database, "altered")

    def _added(self, name: str, kinds: Kinds) -> str:
        return f"ADD COLUMN {name} {self.random.choice(kinds)}{self.random.choice(PLACES)}"

    def write(self) -> None:
        """A transaction of rows, with values in the columns that come and go."""
        sets = [
            f"UPDATE altered SET {name} = {VALUES[kind].format(n=self.next % 100)} WHERE id = "
            f"{self._id()}"
            for name, kind in self._columns().items()
            if name in self.free
        ]
        self._sql(*self._rows(), *self.random.sample(sets, min(3, len(sets))))

    def swap_names(self) -> None:
        """Two columns change names, in three statements or in one."""
        if len(self.free) < 2 or self.random.choice((True, False)):
            return super().swap_names()
        one, two = self.random.sample(self.free, 2)
        return self._altered(f"RENAME COLUMN {one} TO {two}, RENAME COLUMN {two} TO {one}")

    def widen(self) -> None:
        self.size += 10
        how = self.random.choice(("MODIFY COLUMN code", "CHANGE code code"))
        self._altered(f"{how} varchar({self.size})")

    def retype(self) -> None:
        """A number gets wider, which changes no value, or narrower."""
        self.wide = not self.wide
        self._altered(f"MODIFY n {'bigint' if self.wide else 'int'}")

    def several(self) -> None:
        """One statement adds a column, renames one and drops one."""
        if len(self.free) < 2:
            return self.add()
        one, two = self.random.sample(self.free, 2)
        new, other = self._name(), self._name()
        self.free = [f for f in self.free if f not in (one, two)] + [new, other]
        kinds = self.random.choice((self._plain, self._with_default))
        return self._altered(
            f"DROP COLUMN {one}, {self._added(new, kinds)}, RENAME COLUMN {two} TO {other}"
        )

    def drop_and_add(self) -> None:
        """A column goes, and another has its name at once."""
        if not self.free:
            return self.add()
        name = self.random.choice(self.free)
        return self._altered(f"DROP COLUMN {name}, ADD COLUMN {name} text")

    def say_the_same(self) -> None:
        """An ALTER that changes no value: order, comment, index, character set."""
        said = ("MODIFY v text COMMENT 'again' FIRST", "MODIFY v text AFTER id",
            "CONVERT TO CHARACTER SET utf8mb4",
                "COMMENT = 'nothing', ENGINE = InnoDB",
                "ALTER COLUMN code SET DEFAULT 'c'")  # fmt: skip
        self._altered(self.random.choice(said))

    def swap_in(self) -> None:
        """Another table with the same rows takes its place in one statement, as tools for changes
        online do it."""
        self._sql(
            *self._rows(),
            "CREATE TABLE altered_new LIKE altered",
            "ALTER TABLE altered_new ADD INDEX (version)",
        )
        listed = ", ".join(self._columns())
        self._sql(
            f"INSERT INTO altered_new ({listed}) SELECT {listed} FROM altered",  # noqa: S608
            "RENAME TABLE altered TO altered_old, altered_new TO altered",
            "DROP TABLE altered_old",
        )
