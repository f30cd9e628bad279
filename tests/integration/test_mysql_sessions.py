"""Sessions of MariaDB and MySQL: what the server's settings give to everybody does not reach the
rows of a copy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from replicators.sources.mysql.control import LogControl
from replicators.sources.mysql.snapshot import SnapshotSession
from tests.integration.mysql_source import NAME, following, until
from tests.mysql_servers import SqlDatabase, fresh_sql_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
ROWS = 20_000
COMMON = {"sql_select_limit": "7"}
OF_FLAVOUR = {
    "mariadb": {"max_statement_time": "0.001", "tx_isolation": "'READ-UNCOMMITTED'"},
    "mysql": {"max_execution_time": "1", "transaction_isolation": "'READ-UNCOMMITTED'"},
}


@pytest.fixture(params=["mariadb", "mysql"])
def filled(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """A table whose copy takes longer than a millisecond, on each of the servers."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        made.execute(
            "SET SESSION max_recursive_iterations = 100000"
            if made.server.flavour == "mariadb"
            else "SET SESSION cte_max_recursion_depth = 100000",
            "CREATE TABLE t (id int PRIMARY KEY, pad varchar(200))",
            "INSERT INTO t WITH RECURSIVE g AS (SELECT 1 i UNION ALL SELECT i + 1 FROM g"
            f" WHERE i < {ROWS}) SELECT i, repeat('p', 200) FROM g",
            "ANALYZE TABLE t",
        )
        yield made


@pytest.mark.parametrize("which", [0, 1, 2], ids=["rows", "time", "isolation"])
def test_limits_that_the_server_has_for_everybody_change_no_copy(
    filled: SqlDatabase, which: int
) -> None:
    """Guards against a copy that a time for statements ends again and again, that a limit of rows
    cuts without a word, or that has rows which were never committed and so are never in the log;
    fails where the session's own settings are switched off."""
    name, value = list((COMMON | OF_FLAVOUR[filled.server.flavour]).items())[which]
    with filled.connect(autocommit=False) as other, other.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (1000000, 'undone')")
        cursor.execute(f"SELECT @@global.{name}")
        ((before,),) = cursor.fetchall()
        try:
            cursor.execute(f"SET GLOBAL {name} = {value}")
            with following(filled, "t") as follower:
                copied = follower.copy(rows_per_chunk=ROWS // 2)
        finally:
            cursor.execute(f"SET GLOBAL {name} = %s", (before,))
        other.rollback()
    assert sorted(copied["id"].to_pylist()) == list(range(1, ROWS + 1))


def test_a_chosen_server_id_stays_with_the_stream(filled: SqlDatabase) -> None:
    """Guards the stream of a replicator with a server id of its own against our own short looks
    into the log, which MariaDB would end it for; fails where a look takes the same id."""
    with following(filled, "t", server_id=4711) as follower:
        with SnapshotSession(follower.params, NAME):
            filled.execute(f"INSERT INTO t VALUES ({ROWS + 1}, 'new')")
        assert follower.changes()["t"]["id"].to_pylist() == [ROWS + 1]


def test_the_hours_that_are_left_are_those_of_the_place_that_was_reached(
    filled: SqlDatabase,
) -> None:
    """Guards the page's figure, which says how long a stream may be paused: a file goes some time
    after it was ended; fails where it is the configured time."""
    with filled.connect() as admin, admin.cursor() as cursor:
        with following(filled, "t") as follower:
            reached = follower.session.point.position
        cursor.execute("SELECT @@global.binlog_expire_logs_seconds, UNIX_TIMESTAMP()")
        ((before, now),) = cursor.fetchall()
        try:
            cursor.execute("SET GLOBAL binlog_expire_logs_seconds = 7200")
            with LogControl(follower.params, NAME) as control:
                assert control.status(reached).hours_left == 2.0
                cursor.execute(f"SET timestamp = {now - 1800}")
                cursor.execute("FLUSH BINARY LOGS")
                assert control.status(reached).hours_left == pytest.approx(1.5, abs=0.05)
                cursor.execute("SET timestamp = DEFAULT")
                cursor.execute("FLUSH BINARY LOGS")
                assert control.status(reached).hours_left == pytest.approx(1.5, abs=0.05)
                files = [row[0] for row in filled.execute("SHOW BINARY LOGS")]

                def is_purged() -> bool:
                    # Not while the server thinks that the reader is still there.
                    cursor.execute(f"PURGE BINARY LOGS TO '{files[-1]}'")
                    return len(filled.execute("SHOW BINARY LOGS")) == 1

                until(is_purged, "the files before the last are gone")
                assert control.status(reached).hours_left == 0.0
                cursor.execute("SET GLOBAL binlog_expire_logs_seconds = 0")
                assert control.status(reached).hours_left is None
        finally:
            cursor.execute(f"SET GLOBAL binlog_expire_logs_seconds = {before}")
