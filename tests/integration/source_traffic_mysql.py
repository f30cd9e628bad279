"""Makes the tables of `source_cases_mysql`, and what happens to them in a round."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.integration.source_cases import NOT_CHOSEN
from tests.integration.source_cases_mysql import MYSQL, MysqlCase
from tests.model.tables_mysql import numbers
from tests.mysql_servers import SqlDatabase, SqlServer

SCHEMAS = ("shop", "other one")
LOADED_ROWS, TINY = 3000, 700
Connection = Any


@contextmanager
def session(database: SqlDatabase, *settings: str) -> Iterator[Connection]:
    """A connection that begins transactions by itself."""
    recursion = "max_recursive_iterations" if database.server.flavour != MYSQL else "cte_max_recursion_depth"  # fmt: skip  # noqa: E501
    with database.connect(autocommit=False, charset="utf8mb4") as connection:
        run(connection, (f"SET {recursion} = 100000", "SET time_zone = '+00:00'", *settings))
        yield connection


def run(connection: Connection, statements: Iterable[str]) -> None:
    """One transaction."""
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    connection.commit()


def make_cases(database: SqlDatabase, cases: Sequence[MysqlCase]) -> None:
    """The tables, with the rows they begin with."""
    drop_cases(database.server)
    with session(database) as connection:
        run(connection, [f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4" for name in SCHEMAS])
        run(connection, [f"CREATE TABLE shop.{NOT_CHOSEN} (id int PRIMARY KEY)"])
        for case in cases:
            made = (f"CREATE TABLE {{t}} ({case.columns}){case.rest}", case.after, case.rows)
            run(connection, [case.filled(s) for s in made if s])


def drop_cases(server: SqlServer) -> None:
    """The databases belong to the server, not to a test's own one."""
    server.execute(*(f"DROP DATABASE IF EXISTS `{name}`" for name in SCHEMAS))


def one_round(database: SqlDatabase, number: int, cases: Sequence[MysqlCase]) -> None:
    """Everything that happens to the tables in one round."""
    names = {c.name for c in cases}
    with session(database) as connection:
        for case in cases:
            for transaction in case.work:
                run(connection, [case.filled(s, number) for s in transaction])
        for name, act in _ACTIONS.items():
            if name in names:
                act(database, connection, number)
        run(connection, [f"UPDATE shop.{NOT_CHOSEN} SET id = 0 WHERE false"])
        run(connection, [f"INSERT INTO shop.{NOT_CHOSEN} VALUES ({number})"])


def _savepoints(database: SqlDatabase, connection: Connection, number: int) -> None:
    """Parts of a transaction that never happened, one inside another, a part that did after one
    that did not, and a whole one that did not."""
    first = number * 100
    statements = (
        f"INSERT INTO shop.x_saved VALUES ({first}, 'kept')",
        "SAVEPOINT one",
        f"INSERT INTO shop.x_saved VALUES ({first + 1}, 'lost')",
        "SAVEPOINT two",
        f"UPDATE shop.x_saved SET v = 'lost' WHERE id = {first}",
        "RELEASE SAVEPOINT two",
        "ROLLBACK TO SAVEPOINT one",
        f"INSERT INTO shop.x_saved VALUES ({first + 1}, 'second try')",
    )
    run(connection, statements)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM shop.x_saved")
    connection.rollback()


def _loaded(database: SqlDatabase, connection: Connection, number: int) -> None:
    """Rows that come from a file, which the server writes itself."""
    file = f"{database.server.folder}/loaded-{uuid.uuid4().hex}.txt"
    rows = numbers(number * 10_000, number * 10_000 + LOADED_ROWS - 1)
    run(connection, [
        f"SELECT i, concat('loaded ', i) INTO OUTFILE '{file}' FROM {rows}",
        f"LOAD DATA INFILE '{file}' INTO TABLE shop.x_loaded",
    ])  # fmt: skip


def _tiny(database: SqlDatabase, connection: Connection, number: int) -> None:
    for i in range(TINY):
        run(connection, [f"INSERT INTO shop.x_tiny VALUES ({number * 10_000 + i}, 'tiny')"])


def _packed(database: SqlDatabase, connection: Connection, number: int) -> None:
    """Transactions that MySQL compresses, between those that it does not."""
    packing = "SET binlog_transaction_compression = ON"
    settings = [packing] if database.server.flavour == MYSQL else []
    with session(database, *settings) as packed:
        for i in range(3):
            first = number * 10_000 + i * 1000
            run(packed, [
                "INSERT INTO shop.x_packed SELECT i, repeat('p', 90) FROM "
                f"{numbers(first, first + 400)}",
                f"UPDATE shop.x_packed SET id = id + 500 WHERE id BETWEEN {first} AND {first + 9}",
            ])  # fmt: skip
            run(connection, [f"UPDATE shop.x_packed SET v = 'plain{i}' WHERE id >= {first + 390}"])


def _prepared(database: SqlDatabase, connection: Connection, number: int) -> None:
    """One that is prepared while others commit and is committed after them, one that is prepared
    and never was, and one that is committed at once."""
    first = number * 100
    with session(database) as other:
        xa(other, f"late{number}", f"INSERT INTO shop.x_prepared VALUES ({first}, 'late')",
            "UPDATE shop.x_prepared SET v = 'xa' WHERE id = 3")  # fmt: skip
        run(connection, [f"INSERT INTO shop.x_prepared VALUES ({first + 1}, 'between')"])
        run(other, [f"XA COMMIT 'late{number}'"])
        run(connection, [f"UPDATE shop.x_prepared SET v = 'after{number}' WHERE id IN (3, "
                         f"{first})"])  # fmt: skip
        xa(other, f"lost{number}", "DELETE FROM shop.x_prepared")
        run(other, [f"XA ROLLBACK 'lost{number}'"])
        run(other, [f"XA START 'once{number}'", "INSERT INTO shop.x_prepared VALUES "
                                                f"({first + 2}, 'once')",
                    f"XA END 'once{number}'", f"XA COMMIT 'once{number}' ONE PHASE"])  # fmt: skip


def xa(connection: Connection, name: str, *statements: str) -> None:
    """A transaction that is prepared."""
    with connection.cursor() as cursor:
        for statement in (f"XA START '{name}'", *statements, f"XA END '{name}'",
            f"XA PREPARE '{name}'"):  # fmt: skip
            cursor.execute(statement)


def _interleaved(database: SqlDatabase, connection: Connection, number: int) -> None:
    """A long transaction that begins before and ends after short ones, over rows beside theirs."""
    first = number * 1000
    with session(database) as long, long.cursor() as cursor:
        cursor.execute("INSERT INTO shop.x_long SELECT i, 'long' FROM "
                       f"{numbers(first, first + 300)}")  # fmt: skip
        cursor.execute("UPDATE shop.x_long SET v = concat(v, '!') WHERE id BETWEEN 1 AND 30")
        for i in range(30):
            run(connection, [f"UPDATE shop.x_long SET v = 'short{number}' WHERE id = {40 + i}"])
            run(connection, [f"INSERT INTO shop.x_long VALUES ({first + 500 + i}, 'short')"])
        cursor.execute(f"UPDATE shop.x_long SET v = 'late' WHERE id >= {first}")
        long.commit()
        run(long, [f"DELETE FROM shop.x_long WHERE id = {30 + number}"])


_ACTIONS = {
    "x_saved": _savepoints,
    "x_loaded": _loaded,
    "x_tiny": _tiny,
    "x_packed": _packed,
    "x_prepared": _prepared,
    "x_long": _interleaved,
}
