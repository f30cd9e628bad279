"""What the adversary needs of a kind of source server: its tables, how SQL runs there, restarts and
cut connections."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from tests.harness import World
from tests.model.ddl import Alterations
from tests.model.history import INSTALL, WATCH, Image, kept_image
from tests.model.past import Change
from tests.model.reading import PostgresTable
from tests.model.tables import changes_since, make_further
from tests.model.verify import SourceTable
from tests.servers import Database

TABLES = ("accounts", "ledger", "notes", "clicks")
ACCOUNTS, NOTES, CLICKS = 400, 200, 100
FILL = (
    "INSERT INTO accounts SELECT i, 100, {next}, concat('m', i), {json} FROM {accounts}",
    "INSERT INTO notes SELECT concat('n', i), {next}, {big}, 'o' FROM {notes}",
    "INSERT INTO clicks (n, version, page) SELECT i, {next}, concat('p', i) FROM {clicks}",
)


class Source(Protocol):
    """One kind of server. `kind`: its name in reports; `next`: an expression for a row's own
    version; `alterations`: how schemas change there; `odd_values`: what `odd.at` may be that no
    target holds, and `is_odd`: whether it is, in SQL. Triggers note what happens. Numbers only
    grow, in the order of commits: there is one writer."""

    kind: str
    database: Any
    next: str
    alterations: type[Alterations]
    odd_values: tuple[str, ...]
    is_odd: str

    def run(self, statements: Iterable[str], *, commits: bool = True) -> None:
        """In one transaction, as far as the server has one around such statements; tables without
        their schema."""

    def series(self, first: int, last: int) -> str:
        """What stands after FROM to give the numbers `i` from first to last."""

    def one(self, table: str, condition: str) -> str:
        """What ends a statement behind WHERE, so that it is about one of the rows for which the
        condition holds."""

    def cut(self) -> None:
        """End every connection but one's own."""

    def restart(self, is_crash: bool) -> None:
        """The server ends, in order or at once, and comes back with everything that was
        committed."""

    def table(self, name: str, where: str = "") -> SourceTable:
        """A table, to be compared; `where`: the rows for which this SQL holds."""

    def events(self, after: int) -> list[Any]:
        """(number, transaction, table, operation, old key, new key, version) of everything that is
        noted after that number."""

    def images(self, table: str, after: int) -> dict[int, tuple[Image | None, Image | None]]:
        """By number, the rows of one table before and after each of these changes; empty where they
        are not kept."""

    def changes(self, table: str, after: int) -> list[Change]:
        """The same with images, for tables that keep the past."""

    def past_number(self, table: str) -> int:
        """The number of the last of these."""


class PostgresSource:
    """A PostgreSQL with triggers that keep what happened from the first change on."""

    kind = "postgresql"
    next = "nextval('shop.versions')"
    alterations = Alterations
    odd_values = ("infinity", "-infinity")
    is_odd = "NOT isfinite(at)"
    SCHEMA = """
    CREATE SCHEMA shop;
    CREATE SEQUENCE shop.versions;
    CREATE TABLE shop.accounts (id bigint PRIMARY KEY, balance numeric(14,2), version bigint, memo text, extra jsonb);
    CREATE TABLE shop.ledger (account text, day int, amount numeric(14,2), version bigint, PRIMARY KEY (account, day));
    CREATE TABLE shop.notes (id text PRIMARY KEY, version bigint, big text, other text);
    ALTER TABLE shop.notes ALTER big SET STORAGE EXTERNAL;
    CREATE TABLE shop.clicks (n bigint, version bigint, page text);
    """  # noqa: E501

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

    def one(self, table: str, condition: str) -> str:
        return f"ctid = ANY(ARRAY(SELECT ctid FROM {table} WHERE {condition} LIMIT 1))"  # noqa: S608

    def cut(self) -> None:
        self.database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )

    def restart(self, is_crash: bool) -> None:
        self.server.restart("immediate" if is_crash else "fast")

    def table(self, name: str, where: str = "") -> SourceTable:
        return PostgresTable(self.database.dsn, "shop", name, where=where)

    def events(self, after: int) -> list[Any]:
        sql = (
            "SELECT n, transaction, tab, op, old, new, version FROM history.events WHERE n > "
            "%s ORDER BY n"
        )
        return list(self.database.execute(sql, [after]))

    def images(self, table: str, after: int) -> dict[int, tuple[Image | None, Image | None]]:
        sql = "SELECT n, before::text, after::text FROM history.events WHERE tab = %s AND n > %s"
        rows = self.database.execute(sql, [table, after])
        return {n: (kept_image(old), kept_image(new)) for n, old, new in rows}

    def changes(self, table: str, after: int) -> list[Change]:
        return changes_since(self.database, table, after)

    def past_number(self, table: str) -> int:
        sql = "SELECT coalesce(max(n), 0) FROM history.images WHERE tab = %s"
        return int(self.database.execute(sql, [table])[0][0])
