"""Changes of a table's schema, with writes in the same transaction and around it. Types and
defaults are PostgreSQL's; what MySQL has in their place is in `ddl_mysql`."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from tests.model.tables import ALTERED, FILL_ALTERED

if TYPE_CHECKING:
    from tests.model.sources import Source

Kinds = tuple[str, ...]
PLAIN = ("text", "int", "timestamptz", "boolean", "numeric(9,2)")
WITH_DEFAULT = (
    "int NOT NULL DEFAULT 7", "text DEFAULT 'it''s \"{,}\\ ü'", "timestamptz DEFAULT now()",
    "boolean DEFAULT true", "numeric(9,2) DEFAULT 1.5", "jsonb DEFAULT '{\"a\": [1, null]}'",
)  # fmt: skip
COPIED = ("float8 DEFAULT random()", "int[] DEFAULT '{1,2}'")
"""Columns whose values in old rows only a fresh copy can tell."""
MOST_COLUMNS = 8


@dataclass
class Alterations:
    """The table `altered`: `free` are the columns that come and go, `size` how long its code may
    be, `wide` whether its number is a bigint."""

    _plain: ClassVar[Kinds] = PLAIN
    _with_default: ClassVar[Kinds] = WITH_DEFAULT
    _copied: ClassVar[Kinds] = COPIED

    source: Source
    random: random.Random
    free: list[str] = field(default_factory=list)
    size: int = 10
    wide: bool = False
    next: int = 1000
    named: int = 0

    def ways(self) -> dict[Callable[[], None], int]:
        """The changes, with how often they come."""
        return {
            self.add: 6, self.add_with_default: 8, self.add_volatile: 2, self.drop: 8,
            self.rename: 8, self.swap_names: 3,
            self.widen: 4, self.retype: 4, self.truncate: 4, self.make_again: 2,
        }  # fmt: skip

    def _made(self) -> tuple[str, ...]:
        """What makes the table with its rows."""
        return tuple(filter(str.strip, (ALTERED + FILL_ALTERED).split(";")))

    def _added(self, name: str, kinds: Kinds) -> str:
        return f"ADD COLUMN {name} {self.random.choice(kinds)}"

    def _sql(self, *statements: str) -> None:
        self.source.run(statements)

    def _id(self) -> int:
        return self.random.randint(1, 200)

    def _rows(self) -> list[str]:
        """A row comes, one changes, one goes, whatever the schema is."""
        self.next += 1
        change = (
            f"UPDATE altered SET v = concat(v, '+'), version = {self.source.next} WHERE id = "
            f"{self._id()} AND length(v) < 50"
        )
        return [
            f"INSERT INTO altered (id, version, v) VALUES ({self.next}, {self.source.next}, 'new')",
            change,
            f"DELETE FROM altered WHERE id = {self._id() + 50 if self.next % 2 else self.next - 7}",
        ]

    def write(self) -> None:
        """A transaction of rows."""
        used = [f"UPDATE altered SET {c} = {c}, n = 1 WHERE id = {self._id()}" for c in self.free]
        self._sql(*self._rows(), *used[:2])

    def _altered(self, *changes: str) -> None:
        """The change, with rows before or after it in the same transaction, or alone."""
        alters = [f"ALTER TABLE altered {c}" for c in changes]
        how = self.random.randrange(4)
        before, after = self._rows() if how & 1 else [], self._rows() if how & 2 else []
        self._sql(*before, *alters, *after)

    def _name(self) -> str:
        self.named += 1
        return f"s{self.named}"

    def _add(self, kinds: Kinds) -> None:
        if len(self.free) >= MOST_COLUMNS:
            return self.drop()
        self.free.append(self._name())
        return self._altered(self._added(self.free[-1], kinds))

    def add(self) -> None:
        """A column without a default."""
        self._add(self._plain)

    def add_with_default(self) -> None:
        """A column that old rows have a value in, without a row being sent."""
        self._add(self._with_default)

    def add_volatile(self) -> None:
        """A column for which the server writes every row again."""
        self._add(self._copied)

    def drop(self) -> None:
        """A column goes."""
        if not self.free:
            return self.add()
        name = self.free.pop(self.random.randrange(len(self.free)))
        return self._altered(f"DROP COLUMN {name}")

    def rename(self) -> None:
        """A column gets a name that none had before."""
        if not self.free:
            return self.add_with_default()
        at = self.random.randrange(len(self.free))
        old, self.free[at] = self.free[at], self._name()
        return self._altered(f"RENAME COLUMN {old} TO {self.free[at]}")

    def swap_names(self) -> None:
        """Two columns change names, types with them or not."""
        if len(self.free) < 2:
            return self.add()
        one, two = self.random.sample(self.free, 2)
        return self._altered(
            f"RENAME COLUMN {one} TO meanwhile",
            f"RENAME COLUMN {two} TO {one}",
            f"RENAME COLUMN meanwhile TO {two}",
        )

    def widen(self) -> None:
        """A text may be longer."""
        self.size += 10
        self._altered(f"ALTER COLUMN code TYPE varchar({self.size})")

    def retype(self) -> None:
        """A number gets wider or narrower, and every row another value without a change being
        sent."""
        self.wide = not self.wide
        self._altered(f"ALTER COLUMN n TYPE {'bigint' if self.wide else 'int'} USING n + 1")

    def truncate(self) -> None:
        """All rows go, others come, in one transaction."""
        first = self.next + 1
        self.next += 60
        fill = (
            f"INSERT INTO altered (id, version, v) SELECT i, {self.source.next}, 't' FROM "
            f"{self.source.series(first, self.next)}"
        )
        refill = (
            f"INSERT INTO altered (id, version, v) SELECT i, {self.source.next}, 'v' FROM "
            f"{self.source.series(1, 200)}"
        )
        self._sql(*self._rows(), "TRUNCATE altered", fill, refill)

    def make_again(self) -> None:
        """The table is dropped and made again, with another schema, in one transaction."""
        self.free, self.size, self.wide = [], 10, False
        self._sql(*self._rows(), "DROP TABLE altered", *self._made())

    def call_else(self) -> None:
        """The table gets another name, and is written under it."""
        self._sql("ALTER TABLE altered RENAME TO altered_else")
        self._sql(
            f"UPDATE altered_else SET v = 'else', version = {self.source.next} WHERE id = "
            f"{self._id()}"
        )

    def call_again(self) -> None:
        """It has its own name again."""
        self._sql("ALTER TABLE altered_else RENAME TO altered")
