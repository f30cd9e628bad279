"""Writes to the further tables: those that keep the past, equal rows, rows that enter and leave a
filter, and values that don't fit. In words that every server knows; the rest is its `Source`'s."""

from __future__ import annotations

import random

from tests.model.sources import Source
from tests.model.tables import MODES, ROWS


class FurtherWrites:
    """Each act is one transaction (where the server has them around such statements)."""

    def __init__(self, source: Source, rng: random.Random) -> None:
        self._source = source
        self._random = rng
        self._version = source.next
        self._next = 1000
        self.columns: dict[str, list[str]] = {t: [] for t in MODES}
        self._added = 0

    def _id(self, rows: int = ROWS) -> int:
        return self._random.randint(1, rows)

    def _sql(self, *statements: str) -> None:
        self._source.run(statements)

    def _new(self) -> int:
        self._next += 1
        return self._next

    # --- tables that keep the past -------------------------------------------------------------------------------  # noqa: E501
    def keep(self) -> None:
        """One to four changes of one table in a transaction: rows change, move, go, come back."""
        table = self._random.choice(tuple(MODES))
        actions = self._random.choices(range(7), k=self._random.randint(1, 4))
        self._sql(*(s for act in actions for s in self._change(table, act)))

    def _change(self, table: str, act: int) -> list[str]:
        one, two, new = self._id(), self._id(), self._new()
        values = f"{self._version}, 1, repeat('large {{1}}, ', 300), '{{{{b}}}}'"
        insert = (
            f"INSERT INTO {table} (id, version, n, big, tags) SELECT {{0}}, {values} WHERE "
            f"NOT EXISTS (SELECT 1 FROM {table} WHERE id = {{0}})"
        )  # noqa: S608
        update = f"UPDATE {table} SET {{}}, version = {self._version} WHERE {{}}"
        delete = f"DELETE FROM {table} WHERE id = {{}}"
        extra = self._random.choice([*self.columns[table], "n"])
        value = "n + 1" if extra == "n" else f"'x{new}'"
        return (
            [update.format(f"{extra} = {value}", f"id = {one}")] * 2,
            [delete.format(two), update.format(f"id = {two}", f"id = {one}")],
            [update.format(f"id = {new}", f"id = {one}"), insert.format(one, one)],
            [insert.format(new, new), update.format("n = 2", f"id = {new}"), delete.format(new)],
            [delete.format(one), insert.format(one, new)],
            [delete.format(one)],
            [insert.format(one, one), update.format("n = n + 1", f"id % 5 = {one % 5}")],
        )[act]

    def keep_nothing(self) -> None:
        """A transaction over a table that keeps the past which never happened, and a large value
        that changes."""
        table, one = self._random.choice(tuple(MODES)), self._id()
        self._sql(
            f"UPDATE {table} SET big = repeat('large {self._new()}, ', 300), version = "
            f"{self._version} WHERE id = {one}",
            "SAVEPOINT before_it",
            f"DELETE FROM {table}",
            "ROLLBACK TO SAVEPOINT before_it",
        )

    def empty(self) -> None:
        """A table that keeps the past is emptied between two changes of the same transaction."""
        table, one = self._random.choice(tuple(MODES)), self._id()
        self._sql(
            f"UPDATE {table} SET n = n + 1, version = {self._version} WHERE id = {one}",
            f"TRUNCATE {table}",
            f"INSERT INTO {table} (id, version, n, big, tags) SELECT i, {self._version}, 1, "
            f"repeat(concat('large ', i), 400), '{{b}}'"
            f" FROM {self._source.series(one, one + 5)}",
        )

    def add_column_kept(self) -> None:
        """A new column of a table that keeps the past; its old rows have none of it."""
        table = self._random.choice(tuple(MODES))
        if len(self.columns[table]) >= 4:
            return self.keep()
        self._added += 1
        self.columns[table].append(f"k{self._added}")
        return self._sql(
            f"ALTER TABLE {table} ADD COLUMN k{self._added} text",
            f"UPDATE {table} SET k{self._added} = 'new', version = {self._version} WHERE id = "
            f"{self._id()}",
        )

    # --- without a key -------------------------------------------------------------------------------------------  # noqa: E501
    def visit(self) -> None:
        """Rows that equal others come, change and go, one at a time."""
        page, n = f"p{self._random.randrange(20)}", self._random.randrange(1, 3)
        one = self._source.one("visits", f"page = '{page}' AND n = {n}")
        again = f"INSERT INTO visits SELECT * FROM visits WHERE {one}"  # noqa: S608
        change = f"UPDATE visits SET n = 3 - n WHERE {one}"  # noqa: S608
        move = f"UPDATE visits SET page = 'p{self._random.randrange(20)}' WHERE {one}"  # noqa: S608
        delete = f"DELETE FROM visits WHERE {one}"  # noqa: S608
        lonely = f"INSERT INTO visits (page, n) VALUES ('{page}', {n})"
        self._sql(*self._random.choices([again, change, move, delete, lonely], k=4))

    # --- with a filter, or with rows that don't fit --------------------------------------------------------------  # noqa: E501
    def pick(self) -> None:
        """Rows enter the filter, leave it, change inside and outside, and change their keys, mostly
        without their large value."""
        one, two, n = self._id(200), self._id(200), self._random.randrange(100)
        update = f"UPDATE picked SET {{}}, version = {self._version} WHERE id = {{}}"
        moved = [f"DELETE FROM picked WHERE id = {two}", update.format(f"id = {two}", one)]
        actions = (
            [update.format(f"n = {n}", one)],
            [update.format(f"n = {n}", one), update.format(f"n = {100 - n}", one)],
            [update.format("big = concat(big, 'x')", f"{one} AND length(big) < 5000")],
            moved if one != two else [],
            [
                f"DELETE FROM picked WHERE id = {two}",
                f"INSERT INTO picked VALUES ({two}, {self._version}, {n}, repeat('large {n}, ', "
                "300))",
            ],
            [f"DELETE FROM picked WHERE id = {two}"],
            [update.format("n = NULL", one)],
        )
        self._sql(*self._random.choice(actions))

    def unsupported_value(self) -> None:
        """A value that the target can't hold, a change of such a row, and one that fits again."""
        one, two = self._id(100), self._id(100)
        value = self._random.choice(self._source.odd_values)
        odd = (
            f"(SELECT id FROM (SELECT id FROM odd WHERE {self._source.is_odd} ORDER BY id "
            "LIMIT 1) AS found)"
        )  # noqa: S608
        update = f"UPDATE odd SET {{}}, version = {self._version} WHERE {{}}"
        insert = (
            f"INSERT INTO odd SELECT {{0}}, {self._version}, '{{1}}', '{{2}}' WHERE NOT "
            f"EXISTS (SELECT 1 FROM odd WHERE id = {{0}})"
        )  # noqa: S608
        actions = (
            [update.format(f"at = '{value}'", f"id = {one}")],
            [update.format("v = concat(v, '+')", f"id IN ({one}, {odd}) AND length(v) < 90")],
            [update.format("at = '2026-02-01'", f"id = {odd}")],
            [f"DELETE FROM odd WHERE id = {odd}"],
            [f"DELETE FROM odd WHERE id = {two}", insert.format(two, value, "new")],
            [insert.format(one, "2026-03-01", "back")],
        )
        self._sql(*self._random.choice(actions))

    def mend(self) -> None:
        """Every value fits again."""
        self._sql(
            f"UPDATE odd SET at = '2026-04-01', version = {self._version} WHERE "
            f"{self._source.is_odd}"
        )
