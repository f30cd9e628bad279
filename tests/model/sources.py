"""What the adversary needs of a kind of source server: its tables, how SQL runs there, restarts and cut connections."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, Protocol

import pymysql

from tests.harness import World
from tests.model.history import INSTALL, WATCH, Event, source_events
from tests.model.past import Change
from tests.model.reading import PostgresTable
from tests.model.reading_mysql import MysqlTable
from tests.model.tables import changes_since, make_further
from tests.model.verify import SourceTable
from tests.mysql_servers import SqlDatabase
from tests.servers import Database

TABLES = ("accounts", "ledger", "notes", "clicks")
ACCOUNTS, NOTES, CLICKS = 400, 200, 100
FILL = (
    "INSERT INTO accounts SELECT i, 100, {next}, concat('m', i), {json} FROM {accounts}",
    "INSERT INTO notes SELECT concat('n', i), {next}, {big}, 'o' FROM {notes}",
    "INSERT INTO clicks (n, version, page) SELECT i, {next}, concat('p', i) FROM {clicks}",
)


class Source(Protocol):
    """One kind of server. `next`: an expression for a row's own version; `has_history`: triggers note what happens.
    Numbers only grow, in the order of commits: there is one writer."""

    next: str
    has_history: bool

    def run(self, statements: Iterable[str], *, commits: bool = True) -> None:
        """In one transaction, as far as the server has one around such statements; tables without their schema."""

    def series(self, first: int, last: int) -> str:
        """What stands after FROM to give the numbers `i` from first to last."""

    def cut(self) -> None:
        """End every connection but one's own."""

    def restart(self, is_crash: bool) -> None:
        """The server ends, in order or at once, and comes back with everything that was committed."""

    def table(self, name: str, where: str = "") -> SourceTable:
        """A table, to be compared; `where`: the rows for which this SQL holds."""

    def history(self, table: str, after: int) -> list[tuple[int, Event]]:
        """What happened to a table, by number, after that number, where it is noted."""

    def events(self, after: int) -> list[Any]:
        """(number, table, operation, old key, new key, version) of everything that is noted after that number."""

    def changes(self, table: str, after: int) -> list[Change]:
        """The same with images, for tables that keep the past."""

    def past_number(self, table: str) -> int:
        """The number of the last of these."""


class PostgresSource:
    """A PostgreSQL with triggers that keep what happened from the first change on."""

    next = "nextval('shop.versions')"
    has_history = True
    SCHEMA = """
    CREATE SCHEMA shop;
    CREATE SEQUENCE shop.versions;
    CREATE TABLE shop.accounts (id bigint PRIMARY KEY, balance numeric(14,2), version bigint, memo text, extra jsonb);
    CREATE TABLE shop.ledger (account text, day int, amount numeric(14,2), version bigint, PRIMARY KEY (account, day));
    CREATE TABLE shop.notes (id text PRIMARY KEY, version bigint, big text, other text);
    ALTER TABLE shop.notes ALTER big SET STORAGE EXTERNAL;
    CREATE TABLE shop.clicks (n bigint, version bigint, page text);
    """

    def __init__(self, world: World, server: Any) -> None:
        self.database, self.server = world.database, server

    @classmethod
    def prepare(cls, database: Database) -> None:
        """The tables and their rows."""
        database.execute(cls.SCHEMA)
        words = {
            "next": cls.next,
            "json": "jsonb_build_object('i', i)",
            "big": "repeat(md5(i::text), 100)",
        }
        for fill in FILL:
            counts = {"accounts": ACCOUNTS, "notes": NOTES, "clicks": CLICKS}
            lists = {n: f"generate_series(1, {c}) i" for n, c in counts.items()}
            database.execute(f"SET search_path = shop; {fill.format(**words, **lists)}")
        database.execute(INSTALL)
        for table, key in (("accounts", "id"), ("notes", "id"), ("ledger", "day")):
            database.execute(WATCH.format(table=f"shop.{table}", key=key))
        make_further(database)

    def run(self, statements: Iterable[str], *, commits: bool = True) -> None:
        with self.database.connect(autocommit=False) as connection:
            connection.execute("SET LOCAL search_path = shop")
            for statement in statements:
                connection.execute(statement.encode())
            connection.commit() if commits else connection.rollback()

    def series(self, first: int, last: int) -> str:
        return f"generate_series({first}, {last}) i"

    def cut(self) -> None:
        self.database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )

    def restart(self, is_crash: bool) -> None:
        self.server.restart("immediate" if is_crash else "fast")

    def table(self, name: str, where: str = "") -> SourceTable:
        return PostgresTable(self.database.dsn, "shop", name, where=where)

    def history(self, table: str, after: int) -> list[tuple[int, Event]]:
        found = [e for e in self.events(after) if e[1] == table]
        return list(zip((e[0] for e in found), source_events(e[2:] for e in found), strict=True))

    def events(self, after: int) -> list[Any]:
        sql = "SELECT n, tab, op, old, new, version FROM history.events WHERE n > %s ORDER BY n"
        return list(self.database.execute(sql, [after]))

    def changes(self, table: str, after: int) -> list[Change]:
        return changes_since(self.database, table, after)

    def past_number(self, table: str) -> int:
        sql = "SELECT coalesce(max(n), 0) FROM history.images WHERE tab = %s"
        return int(self.database.execute(sql, [table])[0][0])


class MysqlSource:
    """A MariaDB or MySQL. Nothing is noted beside the tables: a trigger's rows would come through the same log."""

    next = "uuid_short() % 9007199254740991"
    has_history = False
    SCHEMA = (
        "CREATE TABLE accounts (id bigint PRIMARY KEY, balance decimal(14,2), version bigint, memo text, extra json)",
        "CREATE TABLE ledger (account varchar(40), day int, amount decimal(14,2), version bigint,"
        " PRIMARY KEY (account, day))",
        "CREATE TABLE notes (id varchar(40) PRIMARY KEY, version bigint, big mediumtext, other text)",
        "CREATE TABLE clicks (n bigint, version bigint, page text, k bigint AUTO_INCREMENT PRIMARY KEY)",
    )

    def __init__(self, world: World, server: Any) -> None:
        self.world, self.server = world, server
        self.database: Any = world.database

    @classmethod
    def prepare(cls, database: SqlDatabase) -> None:
        """The tables and their rows."""
        database.execute(*cls.SCHEMA)
        words = {"next": cls.next, "json": "json_object('i', i)", "big": "repeat(sha2(i, 256), 50)"}
        counts = {"accounts": ACCOUNTS, "notes": NOTES, "clicks": CLICKS}
        lists = {name: _numbers(1, count) for name, count in counts.items()}
        database.execute(*(fill.format(**words, **lists) for fill in FILL))

    def run(self, statements: Iterable[str], *, commits: bool = True) -> None:
        word = (
            "max_recursive_iterations"
            if self.server.flavour == "mariadb"
            else "cte_max_recursion_depth"
        )
        with (
            self.database.connect(autocommit=False, charset="utf8mb4") as connection,
            connection.cursor() as cursor,
        ):
            for statement in (f"SET {word} = 100000", *statements):
                cursor.execute(statement)
            connection.commit() if commits else connection.rollback()

    def series(self, first: int, last: int) -> str:
        return _numbers(first, last)

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
        return MysqlTable(world.driver, world.schema, name)

    def history(self, table: str, after: int) -> list[tuple[int, Event]]:
        return []

    def events(self, after: int) -> list[Any]:
        return []

    def changes(self, table: str, after: int) -> list[Change]:
        return []

    def past_number(self, table: str) -> int:
        return 0


def _numbers(first: int, last: int) -> str:
    rest = f"WITH RECURSIVE g AS (SELECT {first} i UNION ALL SELECT i + 1 FROM g WHERE i < {last})"
    return f"({rest} SELECT i FROM g) AS numbers"
