"""What real servers write into their logs beside rows: changes as statements, notes of a gap, and
groups that a crash cut off."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from replicators.connectors.log import Poison
from replicators.sources.mysql.log import LogControl, LogReader
from tests.integration.mysql_source import (
    NAME,
    Follower,
    decode_all,
    decoded,
    following,
    params_of,
    read_until,
)
from tests.mysql_servers import MariadbServer, SqlDatabase, SqlServer, fresh_sql_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TABLE = "CREATE TABLE t (id int PRIMARY KEY, v varchar(50))"
AS_STATEMENTS = "SET SESSION binlog_format = 'STATEMENT'"


@pytest.fixture(params=["mariadb", "mysql"])
def any_database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """A database on each of the servers, with a table `t`."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        made.execute(TABLE)
        yield made


def codes(follower: Follower) -> set[str]:
    found = decode_all(follower.blocks(), follower.tables)
    return {p.code if isinstance(p, Poison) else "" for p in found}


def test_a_load_as_a_statement_is_reported(any_database: SqlDatabase) -> None:
    """Guards CORRECTNESS 25: LOAD DATA of a session without row events has an event of its own, and
    its rows were lost."""
    file = f"{any_database.server.folder}/odd-{any_database.name}.txt"
    with following(any_database, "t") as follower:
        any_database.execute(
            f"SELECT 1, 'x' INTO OUTFILE '{file}'",
            AS_STATEMENTS,
            f"LOAD DATA INFILE '{file}' INTO TABLE t",
        )
        assert codes(follower) == {"source:statement-logged"}


def test_a_function_that_changes_rows_in_a_statement_is_reported(any_database: SqlDatabase) -> None:
    """Guards CORRECTNESS 25: the log has the call of the function as a SELECT."""
    any_database.execute(
        "CREATE FUNCTION f(a int) RETURNS int MODIFIES SQL DATA"
        " BEGIN INSERT INTO t VALUES (a, 'by f'); RETURN a; END"
    )
    with following(any_database, "t") as follower:
        any_database.execute(AS_STATEMENTS, "SELECT f(1)")
        assert codes(follower) == {"source:statement-logged"}


def test_long_bytes_in_json_look_alike_in_copy_and_log(mysql: SqlServer) -> None:
    """Guards the form of binary values in documents: the server breaks them into lines."""
    with fresh_sql_database(mysql) as database:
        database.execute("CREATE TABLE j (id int PRIMARY KEY, j json)")
        follower = Follower(database, "j")
        for size in (1, 57, 58, 300):
            value = f"JSON_OBJECT('a', CAST(repeat('x', {size}) AS BINARY))"
            database.execute(f"INSERT INTO j VALUES ({size}, {value})")
        copied = follower.copy().column("j").to_pylist()
        assert follower.changes()["j"].column("j").to_pylist() == copied
        follower.close()


def test_a_note_of_a_gap_stops_the_tables_and_not_the_stream() -> None:
    """Guards an incident of MariaDB: it stands outside of any group, and the stream ended there
    again and again."""
    with MariadbServer() as server, fresh_sql_database(server) as database:
        database.execute(TABLE, "CREATE TABLE m (v text) ENGINE = MyISAM")
        server.execute(
            "SET GLOBAL max_binlog_stmt_cache_size = 4096",
            "SET GLOBAL binlog_stmt_cache_size = 4096",
        )
        with following(database, "t") as follower:
            with pytest.raises(Exception, match="max_binlog_stmt_cache_size"):
                database.execute("INSERT INTO m SELECT repeat('x', 4000) FROM seq_1_to_50")
            assert codes(follower) == {"source:log-incident"}
            database.execute("INSERT INTO t VALUES (1, 'a')")
            assert follower.changes()["t"]["id"].to_pylist() == [1]


def test_a_group_that_a_crash_cut_off_is_read_past() -> None:
    """Guards a crash of MariaDB while it wrote its log: the rest of the group stays at the file's
    end, for ever."""
    with MariadbServer() as server, fresh_sql_database(server) as database:
        database.execute(TABLE)
        with following(database, "t") as follower:
            start, tables = follower.session.point.position, follower.tables
        database.execute("INSERT INTO t VALUES (1, 'one')", "INSERT INTO t VALUES (2, 'two')")
        file = server.execute("SHOW BINARY LOGS")[-1][0]
        _, last, kind, *_ = server.execute(f"SHOW BINLOG EVENTS IN '{file}'")[-1]
        assert kind == "Xid"
        server.kill()
        os.truncate(f"{server.folder}/data/{file}", last)
        server.start()
        database.execute("INSERT INTO t VALUES (3, 'three')")
        with (
            LogReader(params_of(database), NAME) as reader,
            LogControl(params_of(database), NAME) as control,
        ):
            reader.prepare(tables, start)
            reader.start(start, tables)
            blocks = read_until(reader, control.heartbeat())
        ids = [i for part in decoded(blocks, tables)["t"] for i in part["id"].to_pylist()]
        assert ids == [1, 3]
