"""The whole data path from MariaDB or MySQL, with a shop and traffic of its own; the rest is
`tests.harness`."""

from __future__ import annotations

import random
from typing import Any, ClassVar

from replicators.connectors.model.positions import Position
from replicators.connectors.params import parse
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.mysql.control import LogControl
from replicators.sources.mysql.params import MysqlParams
from runners.models import Progress
from tests.harness import World, until
from tests.mysql_servers import SqlDatabase

SHOP = (
    "CREATE TABLE items (id bigint PRIMARY KEY, n int unsigned, price decimal(12,2), note text, "
    "code varchar(20)"
    " character set latin1, ok bit(1), at timestamp(6) NULL, wall datetime(3), day date, raw "
    "varbinary(40),"
    " mood enum('calm','busy','so-so'), share double)",
    "CREATE TABLE pairs (word varchar(40) COLLATE utf8mb4_bin, part int, v text, PRIMARY KEY "
    "(word, part))",
    "CREATE TABLE others (id int PRIMARY KEY)",
)
NUMBERS = "WITH RECURSIVE g AS (SELECT {first} i UNION ALL SELECT i + 1 FROM g WHERE i < {last})"
FILL_ITEMS = (
    "INSERT INTO items (id, n, price, note, code, ok, at, wall, day, raw, mood, share) "
    + NUMBERS
    + " SELECT i, i % 100, i / 7, concat('row ', i), concat('ü', i), i % 2,"
    " now(6), now(3), date_add('2024-01-01', interval i % 900 day), unhex(sha2(i, 256)),"
    " elt(1 + i % 3, 'calm', 'busy', 'so-so'), i / 3 FROM g"
)
FILL_PAIRS = (
    "INSERT INTO pairs "
    + NUMBERS
    + " SELECT concat('w', i div 10), i % 10, repeat(sha2(i, 256), 2) FROM g"
)
SHOP_TABLES = ("items", "pairs")
ROWS = 2000


def make_shop(database: SqlDatabase) -> None:
    """Two tables that are copied and one that is not."""
    database.execute(*SHOP)
    with database.connect() as connection, connection.cursor() as cursor:
        word = (
            "max_recursive_iterations"
            if database.server.flavour == "mariadb"
            else "cte_max_recursion_depth"
        )
        cursor.execute(f"SET {word} = 100000")
        for fill in (FILL_ITEMS, FILL_PAIRS):
            cursor.execute(fill.format(first=1, last=ROWS))


class MysqlWorld(World):
    """A world whose source is a MariaDB or MySQL."""

    kind: ClassVar[str] = "mysql"
    database: SqlDatabase  # type: ignore[assignment]

    @property
    def schema(self) -> str:
        return self.database.name

    @property
    def driver(self) -> dict[str, Any]:
        """How the driver reaches the server."""
        found = self.database.params
        return {name: found[name] for name in ("host", "port", "user", "password")}

    def mark(self) -> int:
        """The log's end in the stream's order; waits until the stream is at the server."""
        return int(until(self._mark, "the stream is at its server", 120))

    def _mark(self) -> int:
        known = Progress.objects.filter(replicator=self.replicator).first()
        reached = Position.from_json(known.position) if known and known.position else None
        try:
            with LogControl(parse(MysqlParams, self.database.params), "mark", reached) as control:
                return control.heartbeat()
        except ReplicationError as err:
            if err.code != "source:server-changed":
                raise
        return 0

    def source_rows(self, name: str) -> list[dict[str, Any]]:
        """The table's rows as the driver reads them, in the forms that the lakehouse has."""
        with self.database.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(f"SELECT * FROM `{name}`")
            names = [d[0] for d in cursor.description or ()]
            return [_neutral(dict(zip(names, row, strict=True))) for row in cursor.fetchall()]


def _neutral(row: dict[str, Any]) -> dict[str, Any]:
    import datetime as dt

    if isinstance(row.get("ok"), bytes):
        row["ok"] = row["ok"] == b"\1"
    if row.get("at") is not None:
        row["at"] = row["at"].replace(tzinfo=dt.UTC)
    return row


class MysqlTraffic:
    """Random transactions: inserts, updates, key changes, deletes, and deletes followed by an
    insert of the same key."""

    def __init__(self, database: SqlDatabase, seed: int = 1) -> None:
        self._database = database
        self._random = random.Random(seed)
        self._next = 1_000_000

    def move(self, database: SqlDatabase) -> None:
        """Write to another server from now on, which has all that was written."""
        self._database = database

    def write(self, transactions: int) -> None:
        """So many transactions now."""
        with self._database.connect(autocommit=False) as connection, connection.cursor() as cursor:
            for _ in range(transactions):
                for statement in self._statements():
                    cursor.execute(statement)
                if self._next % 11 == 0:
                    connection.rollback()
                else:
                    connection.commit()

    def _statements(self) -> list[str]:
        self._next += 1
        one, two, three = (self._random.randint(1, ROWS) for _ in range(3))
        new = FILL_ITEMS.format(first=self._next, last=self._next)
        return [
            new,
            f"INSERT INTO others VALUES ({self._next})",
            f"UPDATE items SET n = n + 1, note = 'u{one}' WHERE id = {one}",
            f"UPDATE items SET id = id + 10000000 WHERE id = {two}",
            f"DELETE FROM items WHERE id IN ({three}, {self._next})",
            new,
            f"UPDATE pairs SET v = 'u' WHERE word = 'w{one // 10}' AND part = {one % 10}",
            f"UPDATE pairs SET word = 'm{self._next}' WHERE word = 'w{two // 10}' AND part = "
            f"{two % 10}",
            f"DELETE FROM pairs WHERE word = 'w{three // 10}' AND part = {three % 10}",
        ]
