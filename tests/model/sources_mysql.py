"""What the adversary needs of a MariaDB or MySQL."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable
from typing import Any

import pymysql

from tests.harness import World
from tests.model import tables_mysql as tables
from tests.model.ddl_mysql import MysqlAlterations
from tests.model.history import Image
from tests.model.past import Change
from tests.model.reading_mysql import MysqlTable
from tests.model.sources import ACCOUNTS, CLICKS, FILL, NOTES
from tests.model.tables import KEYS, MODES, ROWS
from tests.model.verify import SourceTable
from tests.mysql_servers import SqlDatabase

ALONE = frozenset({"TRUNCATE", "ALTER", "CREATE", "DROP", "RENAME"})
"""First words of statements that end the transaction before them."""
SQL_MODE = "SET sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'"
"""In which days without month or day may be written."""


class MysqlSource:
    """A MariaDB or MySQL with triggers that keep what happened from the first change on. `SET @act`
    numbers transactions for them."""

    next = "uuid_short() % 9007199254740991"
    alterations = MysqlAlterations
    odd_values = ("0000-00-00", "2026-00-01", "2026-02-00")
    is_odd = "month(at) * day(at) = 0"

    def __init__(self, world: World, server: Any) -> None:
        self.world, self.server = world, server
        self.database: Any = world.database
        self.kind: str = self.database.server.flavour
        self._history = tables.history_of(self.database)
        self._actions = itertools.count(1)

    @classmethod
    def prepare(cls, database: SqlDatabase) -> None:
        """The tables and their rows."""
        history = tables.history_of(database)
        database.execute(*tables.PLAIN, *(s.format(history=history) for s in tables.HISTORY))
        words = {"next": cls.next, "json": "json_object('i', i)", "big": "repeat(sha2(i, 256), 50)"}
        counts = {"accounts": ACCOUNTS, "notes": NOTES, "clicks": CLICKS}
        lists = {name: tables.numbers(1, count) for name, count in counts.items()}
        database.execute(*(fill.format(**words, **lists) for fill in FILL))
        for table in KEYS:
            database.execute(*tables.keys_and_version(history, table))
        for table in MODES:
            database.execute(tables.KEPT.format(table=table))
            database.execute(
                *tables.whole_rows(history, table, tuple(tables.columns_of(database, table)))
            )
            kept = {"table": table, "next": cls.next, "numbers": tables.numbers(1, ROWS)}
            database.execute(tables.FILL_KEPT.format(**kept))
        for statement in (*tables.REST, tables.ALTERED, tables.FILL_ALTERED):
            database.execute(statement.format(next=cls.next, numbers=tables.numbers(1, 200)))

    def run(self, statements: Iterable[str], *, commits: bool = True) -> None:
        word = "max_recursive_iterations" if self.kind == "mariadb" else "cte_max_recursion_depth"
        with (
            self.database.connect(autocommit=False, charset="utf8mb4") as connection,
            connection.cursor() as cursor,
        ):
            for statement in (f"SET {word} = 100000", SQL_MODE, self._action(), *statements):
                for part in self._with_notes(statement):
                    cursor.execute(part)
            connection.commit() if commits else connection.rollback()

    def _action(self) -> str:
        return f"SET @act = {next(self._actions)}"

    def _with_notes(self, statement: str) -> Iterable[str]:
        """The statement with what is noted beside it, where no trigger does; one that ends a
        transaction begins another."""
        words = statement.split()
        if words[0] not in ALONE:
            yield statement
            return
        if words[0] == "TRUNCATE":
            yield from (self._action(), *tables.emptied(self._history, words[1]))
        yield statement
        if words[0] == "ALTER" and words[2] in MODES:
            columns = tuple(tables.columns_of(self.database, words[2]))
            yield from tables.whole_rows(self._history, words[2], columns)
        yield self._action()

    def series(self, first: int, last: int) -> str:
        return tables.numbers(first, last)

    def one(self, table: str, condition: str) -> str:
        return f"{condition} LIMIT 1"

    def cut(self) -> None:
        with self.database.connect() as connection, connection.cursor() as cursor:
            own = connection.thread_id()
            cursor.execute("SHOW PROCESSLIST")
            for row in list(cursor.fetchall()):
                if row[1] not in ("system user", "event_scheduler") and row[0] != own:
                    # One that ended by itself in between is as good.
                    with contextlib.suppress(pymysql.Error):
                        cursor.execute(f"KILL {row[0]}")

    def restart(self, is_crash: bool) -> None:
        self.server.kill() if is_crash else self.server.stop()
        self.server.start()

    def table(self, name: str, where: str = "") -> SourceTable:
        world: Any = self.world
        return MysqlTable(world.driver, world.schema, name, where=where)

    def events(self, after: int) -> list[Any]:
        sql = (
            f"SELECT n, act, tab, op, gone, come, version FROM {self._history}.events WHERE n "
            f"> {after} ORDER BY n"
        )  # noqa: S608
        return list(self.database.execute(sql))

    def images(self, table: str, after: int) -> dict[int, tuple[Image | None, Image | None]]:
        return {}

    def changes(self, table: str, after: int) -> list[Change]:
        return tables.changes_since(self.database, table, after)

    def past_number(self, table: str) -> int:
        sql = f"SELECT coalesce(max(n), 0) FROM {self._history}.images WHERE tab = '{table}'"  # noqa: S608
        return int(self.database.execute(sql)[0][0])
