"""XA transactions: the log has their rows at PREPARE, the copy gets them at COMMIT, and never after
a ROLLBACK."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql
import pytest

from replicators.connectors.log import DecodedTable, LogBlock, Poison
from replicators.connectors.model.positions import Position
from replicators.sources.mysql import blocks as blocks_module
from replicators.sources.mysql.log import LogControl, LogReader
from tests.integration.mysql_source import NAME, decode_all, describe, following, read_until
from tests.mysql_servers import SqlDatabase, fresh_sql_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture(params=["mariadb", "mysql"])
def any_database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """A database on each of the servers, with a table `t`."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        made.execute("CREATE TABLE t (id int PRIMARY KEY, v varchar(50))")
        yield made


@contextmanager
def prepared(database: SqlDatabase, xid: str, *statements: str) -> Iterator[Any]:
    """A transaction that is prepared; the cursor is of another session, which ends it."""
    with database.connect() as connection, connection.cursor() as cursor:
        for statement in (
            f"XA START '{xid}'",
            *statements,
            f"XA END '{xid}'",
            f"XA PREPARE '{xid}'",
        ):
            cursor.execute(statement)
    with database.connect() as other, other.cursor() as cursor:
        try:
            yield cursor
        finally:
            # One that is left over holds its tables for ever.
            with contextlib.suppress(pymysql.Error):
                cursor.execute(f"XA ROLLBACK '{xid}'")


def reported(found: list[DecodedTable | Poison]) -> list[Any]:
    """(operation, id) of each row, or the code of what stops the table."""
    rows: list[Any] = []
    for part in found:
        if isinstance(part, Poison):
            rows.append(part.code)
            continue
        rows += zip(part.changes["_op"].to_pylist(), part.changes["id"].to_pylist(), strict=True)
    return rows


def position_of(reader: LogReader) -> Position:
    found = reader.idle_position()
    assert found is not None
    return found


def test_rows_come_at_the_commit_with_its_place(any_database: SqlDatabase) -> None:
    """Guards CORRECTNESS 25: what is prepared waits, and takes its place where it is committed."""
    with following(any_database, "t") as follower:
        with prepared(any_database, "one", "INSERT INTO t VALUES (1, 'a'), (2, 'b')") as cursor:
            any_database.execute("INSERT INTO t VALUES (9, 'between')")
            assert reported(decode_all(follower.blocks(), follower.tables)) == [(0, 9)]
            between = position_of(follower.reader)
            cursor.execute("XA COMMIT 'one'")
        found = decode_all(follower.blocks(), follower.tables)
        assert reported(found) == [(0, 1), (0, 2)]
        assert isinstance(found[0], DecodedTable)
        assert min(found[0].changes["_position"].to_pylist()) >= between.ordinal
        assert "prepared" in between.detail
        assert "prepared" not in position_of(follower.reader).detail


def test_rows_that_are_rolled_back_or_of_other_tables_never_come(any_database: SqlDatabase) -> None:
    """Guards the drop at ROLLBACK, one phase, and XIDs that come again."""
    any_database.execute("CREATE TABLE other (id int PRIMARY KEY)")
    with following(any_database, "t") as follower:
        with prepared(any_database, "x", "INSERT INTO t VALUES (1, 'a')") as cursor:
            cursor.execute("XA ROLLBACK 'x'")
        with prepared(any_database, "x", "INSERT INTO other VALUES (1)") as cursor:
            cursor.execute("XA COMMIT 'x'")
        # MariaDB has rolled back by itself what changed nothing.
        with (
            prepared(any_database, "empty", "SELECT * FROM t") as cursor,
            contextlib.suppress(pymysql.Error),
        ):
            cursor.execute("XA COMMIT 'empty'")
        assert reported(decode_all(follower.blocks(), follower.tables)) == []
        with any_database.connect() as connection, connection.cursor() as cursor:
            for statement in ("XA START 'x'", "INSERT INTO t VALUES (3, 'c')", "XA END 'x'",
                              "XA COMMIT 'x' ONE PHASE"):  # fmt: skip
                cursor.execute(statement)
        with prepared(any_database, "x", "UPDATE t SET v = 'd' WHERE id = 3") as cursor:
            cursor.execute("XA COMMIT 'x'")
        assert reported(decode_all(follower.blocks(), follower.tables)) == [(0, 3), (1, 3)]


def after(follower: Any, position: Position, tables: Any) -> list[LogBlock]:
    """What another process reads after a position."""
    with LogControl(follower.params, NAME) as control:
        mark = control.heartbeat()
    with LogReader(follower.params, NAME) as reader:
        reader.prepare(tables, position)
        reader.start(position, tables)
        return read_until(reader, mark)


def test_a_prepared_transaction_outlives_a_restart_and_a_new_choice_of_tables(
    any_database: SqlDatabase,
) -> None:
    """Guards the durable half: the position names where the group lies, and it is read from there
    again."""
    any_database.execute("CREATE TABLE late (id int PRIMARY KEY)")
    rows = ("INSERT INTO t VALUES (1, 'a')", "INSERT INTO late VALUES (7)")
    with following(any_database, "t") as follower:
        with prepared(any_database, "kept", *rows) as cursor:
            follower.blocks()
            position = Position.from_json(position_of(follower.reader).to_json())
            both = describe(any_database, "t", "late")
            follower.reader.follow(both)
            any_database.execute("FLUSH BINARY LOGS")
            cursor.execute("XA COMMIT 'kept'")
        assert reported(decode_all(follower.blocks(), both)) == [(0, 1), (0, 7)]
        follower.reader.close()
        assert reported(decode_all(after(follower, position, both), both)) == [(0, 1), (0, 7)]


def test_what_nobody_saw_being_prepared_stops_the_tables(any_database: SqlDatabase) -> None:
    """Guards against rows that are lost in silence: prepared before the first position, or too
    large to be set aside."""
    with (
        prepared(any_database, "early", "INSERT INTO t VALUES (1, 'a')") as cursor,
        following(any_database, "t") as follower,
    ):
        cursor.execute("XA COMMIT 'early'")
        assert reported(decode_all(follower.blocks(), follower.tables)) == [
            "source:transaction-unsure"
        ]
        any_database.execute("INSERT INTO t VALUES (2, 'b')")
        assert reported(decode_all(follower.blocks(), follower.tables)) == [(0, 2)]


def test_a_group_that_is_too_large_to_be_set_aside_stops_its_tables(
    any_database: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the bound of memory: such rows stay in the stream, and their tables are reported at
    the PREPARE."""
    monkeypatch.setattr(blocks_module, "HELD_BYTES", 2048)
    values = ", ".join(f"({i}, repeat('v', 50))" for i in range(200))
    statements = [f"INSERT INTO t VALUES ({i}, repeat('v', 50))" for i in range(1000, 1100)]
    with following(any_database, "t") as follower:
        with prepared(any_database, "big", f"INSERT INTO t VALUES {values}", *statements) as cursor:
            found = reported(decode_all(follower.blocks(max_bytes=4096), follower.tables))
            assert "source:transaction-unsure" in found
            cursor.execute("XA COMMIT 'big'")
        assert reported(decode_all(follower.blocks(), follower.tables)) == []
