"""Writes to the tables that every kind of source has: money that moves, keys that change places,
values that are not sent."""

from __future__ import annotations

import random

from tests.model.sources import ACCOUNTS, Source

MOST_COLUMNS = 6


class Writes:
    """Each act is one transaction (where the server has them around such statements)."""

    def __init__(self, source: Source, rng: random.Random) -> None:
        self.source = source
        self.random = rng
        self.next = 10_000
        self.added = 0
        self.columns: list[str] = []

    def _sql(self, *statements: str) -> None:
        self.source.run(statements)

    def _id(self) -> int:
        return self.random.randint(1, ACCOUNTS)

    def transfer(self) -> None:
        """Money moves between accounts, with a line in the ledger: the sum stays."""
        one, two, cents = self._id(), self._id(), self.random.randint(1, 900)
        self.next += 1
        move = "UPDATE accounts SET balance = balance {} {}, version = {} WHERE id = {}"
        self._sql(
            move.format("-", cents / 100, self.source.next, one),
            move.format("+", cents / 100, self.source.next, two),
            f"INSERT INTO ledger VALUES ('a{one}', {self.next}, {cents / 100}, {self.source.next})",
        )

    def swap(self) -> None:
        """Two keys change places within one transaction."""
        one, two = self._id(), self._id()
        take = "UPDATE accounts SET id = {}, version = {} WHERE id = {}"
        self._sql(
            take.format(-1, self.source.next, one),
            take.format(one, self.source.next, two),
            take.format(two, self.source.next, -1),
        ) if one != two else self.transfer()

    def chain(self) -> None:
        """A key changes twice, and its old row comes back new."""
        one = self._id()
        take = "UPDATE accounts SET id = {}, version = {} WHERE id = {}"
        self._sql(
            take.format(-1, self.source.next, one),
            take.format(-2, self.source.next, -1),
            f"INSERT INTO accounts (id, balance, version, memo, extra) VALUES ({one}, 7, "
            f"{self.source.next}, 'again', NULL)",
            "DELETE FROM accounts WHERE id = -2",
        )

    def toast(self) -> None:
        """Updates that do not send the large value, before and after one that does."""
        key = f"n{self.random.randint(1, 200)}"
        self._sql(
            f"UPDATE notes SET other = 'u{self.next}', version = {self.source.next} WHERE id = "
            f"'{key}'",
            f"UPDATE notes SET big = concat(big, 'x'), version = {self.source.next} WHERE id = "
            f"'{key}' AND length(big) < 6000",
            f"UPDATE notes SET other = 'v', version = {self.source.next} WHERE id = '{key}'",
        )

    def rename(self) -> None:
        """A key of a row with a large value that is not sent changes."""
        key = self.random.randint(1, 200)
        self._sql(
            f"UPDATE notes SET id = 'r{key}', version = {self.source.next} WHERE id = 'n{key}'",
            f"UPDATE notes SET id = 'n{key}', version = {self.source.next} WHERE id = 'r{key}'",
        )

    def come_and_go(self) -> None:
        """Insert, update and delete; delete and insert again; in one batch."""
        self.next += 2
        new, old = self.next, self._id()
        self._sql(
            f"INSERT INTO accounts (id, balance, version, memo, extra) VALUES ({new}, 1, "
            f"{self.source.next}, NULL, '{{}}')",
            f"UPDATE accounts SET memo = 'é ''q''', version = {self.source.next} WHERE id = {new}",
            f"DELETE FROM accounts WHERE id = {new}",
            f"DELETE FROM accounts WHERE id = {old}",
            f"INSERT INTO accounts (id, balance, version, memo, extra) VALUES ({old}, 5, "
            f"{self.source.next}, 'back', '[1, null]')",
        )

    def rollback(self) -> None:
        """A savepoint and a whole transaction that never happened."""
        self._sql(
            f"INSERT INTO clicks (n, version, page) VALUES (1, {self.source.next}, 'kept')",
            "SAVEPOINT before_it",
            f"INSERT INTO clicks (n, version, page) VALUES (2, {self.source.next}, 'lost')",
            "ROLLBACK TO SAVEPOINT before_it",
        )
        self.source.run(["DELETE FROM accounts"], commits=False)

    def burst(self) -> None:
        """One transaction with thousands of rows."""
        first, self.next = self.next + 1, self.next + 3000
        self._sql(
            f"INSERT INTO clicks (n, version, page) SELECT i, {self.source.next}, 'b' FROM "
            f"{self.source.series(first, self.next)}",
            f"UPDATE accounts SET balance = balance, version = {self.source.next} WHERE id % 2 = 0",
        )

    def clear(self) -> None:
        """The table without a key is emptied."""
        self._sql("TRUNCATE clicks")

    def truncate(self) -> None:
        """A table is emptied between two inserts of the same transaction."""
        self.next += 2
        self._sql(
            f"INSERT INTO ledger VALUES ('gone', {self.next - 1}, 1, {self.source.next})",
            "TRUNCATE ledger",
            f"INSERT INTO ledger VALUES ('kept', {self.next}, 1, {self.source.next})",
        )

    def add_column(self) -> None:
        """A new column, used at once in the same transaction."""
        if len(self.columns) >= MOST_COLUMNS:
            return self.drop_column()
        self.added += 1
        self.columns.append(f"c{self.added}")
        return self._sql(
            f"ALTER TABLE accounts ADD COLUMN c{self.added} text",
            f"UPDATE accounts SET c{self.added} = 'new', version = {self.source.next} WHERE id = "
            f"{self._id()}",
        )

    def drop_column(self) -> None:
        """A column goes, and with it its values; the row it was used in changes in the same
        transaction."""
        if not self.columns:
            return self.add_column()
        name = self.columns.pop(self.random.randrange(len(self.columns)))
        return self._sql(
            f"ALTER TABLE accounts DROP COLUMN {name}",
            f"UPDATE accounts SET memo = 'less', version = {self.source.next} WHERE id = "
            f"{self._id()}",
        )
