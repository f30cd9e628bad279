"""Commits that are in the log before anybody sees their rows: a copy waits for them, and a restart
takes them for what they are."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from replicators.connectors.model.positions import Position
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.mysql import visibility
from replicators.sources.mysql.log import LogControl, LogReader
from replicators.sources.mysql.offsets import MysqlGtids
from replicators.sources.mysql.snapshot import SnapshotSession
from tests.integration.mysql_source import (
    NAME,
    Follower,
    decoded,
    following,
    params_of,
    read_until,
    until,
)
from tests.mysql_servers import SqlDatabase, SqlServer, fresh_sql_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SLOW = {
    "mariadb": (
        "rpl_semi_sync_master_timeout = 1000",
        "rpl_semi_sync_master_wait_point = 'AFTER_SYNC'",
        "rpl_semi_sync_master_enabled = ON",
    ),
    "mysql": ("binlog_group_commit_sync_delay = 1000000",),
}
QUICK = {
    "mariadb": (
        "rpl_semi_sync_master_enabled = OFF",
        "rpl_semi_sync_master_wait_point = 'AFTER_COMMIT'",
        "rpl_semi_sync_master_timeout = 10000",
    ),
    "mysql": ("binlog_group_commit_sync_delay = 0",),
}


@pytest.fixture(params=["mariadb", "mysql"])
def database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """A database on each of the servers, with a table `t`."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        made.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
        yield made


@contextmanager
def hanging_commit(database: SqlDatabase, follower: Follower) -> Iterator[None]:
    """The row 2 is in the log, and seen about a second later."""
    server = database.server
    with LogControl(follower.params, NAME) as control:
        before = control.heartbeat()
        writing = threading.Thread(target=database.execute, args=("INSERT INTO t VALUES (2)",))
        server.execute(*(f"SET GLOBAL {s}" for s in SLOW[server.flavour]))
        try:
            writing.start()
            until(lambda: control.heartbeat() > before, "the log has the commit")
            yield
        finally:
            writing.join()
            server.execute(*(f"SET GLOBAL {s}" for s in QUICK[server.flavour]))


def rows_at(follower: Follower, point: Position) -> list[int]:
    """A copy of the table now, with the inserts that the log has behind the point."""
    rows = follower.copy()["id"].to_pylist()
    for part in decoded(follower.blocks(), follower.tables).get("t", []):
        rows += [row["id"] for row in part.to_pylist() if row["_position"] >= point.ordinal]
    return rows


def test_a_commit_that_nobody_sees_yet_is_waited_for(database: SqlDatabase) -> None:
    """Guards rows that are before the copy's point in the log, and that its chunks would not
    find."""
    with following(database, "t") as follower, hanging_commit(database, follower):
        with SnapshotSession(follower.params, NAME) as session:
            assert sorted(set(rows_at(follower, session.point.position))) == [1, 2]
        if database.server.flavour == "mysql":
            assert session.point.position.detail["gtids"] == gtids_before(
                database, session.point.position
            )


def gtids_before(database: SqlDatabase, position: Position) -> str:
    """As MySQL shows its log."""
    file, offset = position.detail["file"], position.detail["offset"]
    found = MysqlGtids()
    for _, at, kind, _, _, info in database.execute(f"SHOW BINLOG EVENTS IN '{file}'"):
        if at >= offset or kind not in ("Gtid", "Previous_gtids"):
            continue
        text = info.split("'")[1] if kind == "Gtid" else info
        found = MysqlGtids(f"{found},{text}")
    return str(found)


@contextmanager
def many_commits(database: SqlDatabase) -> Iterator[None]:
    """Four writers that never rest."""
    ended = threading.Event()

    def write(number: int) -> None:
        with database.connect() as connection:
            cursor = connection.cursor()
            for i in range(number, 100_000_000, 4):
                if ended.is_set():
                    return
                cursor.execute(f"INSERT INTO t VALUES ({i})")

    writers = [threading.Thread(target=write, args=(100 + n,)) for n in range(4)]
    for writer in writers:
        writer.start()
    try:
        yield
    finally:
        ended.set()
        for writer in writers:
            writer.join()


def test_a_point_tells_the_gtids_before_it_and_no_others(mysql: SqlServer) -> None:
    """Guards a stream that would miss a GTID for ever and lose its place once the server purges it,
    or skip one at another server: the server tells place and GTIDs of different moments."""
    with fresh_sql_database(mysql) as database:
        database.execute("CREATE TABLE t (id int PRIMARY KEY)")
        with many_commits(database):
            points: list[Position] = []
            end = time.monotonic() + 60
            while len(points) < 5 or points[0].ordinal == points[-1].ordinal:
                assert time.monotonic() < end, "no commit came"
                with SnapshotSession(params_of(database), NAME) as session:
                    points.append(session.point.position)
        assert [p.detail["gtids"] for p in points] == [gtids_before(database, p) for p in points]
        assert points[0].ordinal < points[-1].ordinal


def test_a_commit_that_is_sent_before_it_is_counted_is_no_lost_place(mysql: SqlServer) -> None:
    """Guards a restart in that moment: the stream has what `gtid_executed` lacks, which looked like
    a server that was restored."""
    with fresh_sql_database(mysql) as database:
        database.execute("CREATE TABLE t (id int PRIMARY KEY)")
        with following(database, "t") as follower, hanging_commit(database, follower):
            with LogControl(follower.params, NAME) as control:
                (block,) = read_until(follower.reader, control.heartbeat())
            with LogReader(follower.params, NAME) as reader:
                reader.prepare(follower.tables, block.position)
                gtids = str(block.position.detail["gtids"])
                source = gtids.split(",")[0].split(":")[0]
                more = {**block.position.detail, "gtids": f"{gtids},{source}:999999999"}
                with pytest.raises(ReplicationError) as caught:
                    reader.prepare(follower.tables, replace(block.position, detail=more))
                assert caught.value.code == "source:position-lost"


@pytest.fixture
def without_gtids(mysql: SqlServer) -> Iterator[SqlServer]:
    """The session's MySQL without GTIDs."""
    modes = ["ON", "ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"]
    mysql.execute(*(f"SET GLOBAL gtid_mode = {m}" for m in modes[1:]))
    yield mysql
    mysql.execute(*(f"SET GLOBAL gtid_mode = {m}" for m in modes[-2::-1]))


def test_without_gtids_a_copy_waits_as_long_as_commits_may_be_held_back(
    without_gtids: SqlServer,
) -> None:
    """Guards a MySQL that does not tell what is being committed."""
    with fresh_sql_database(without_gtids) as database:
        database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
        with (
            following(database, "t") as follower,
            hanging_commit(database, follower),
            SnapshotSession(follower.params, NAME) as session,
        ):
            assert sorted(set(rows_at(follower, session.point.position))) == [1, 2]


def test_a_transaction_that_never_ends_is_named(
    mysql: SqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the end of the wait, and that it can be heard: a transaction with a GTID of its own
    may be in the log or not."""
    with fresh_sql_database(mysql) as database, database.connect() as connection:
        monkeypatch.setattr(visibility, "LIMIT_SECONDS", 0.1)
        monkeypatch.setattr(visibility, "SAY_SECONDS", 0.1)
        cursor = connection.cursor()
        cursor.execute("SET gtid_next = '11111111-1111-1111-1111-111111111111:9'")
        cursor.execute("BEGIN")
        try:
            with pytest.raises(ReplicationError) as caught:
                SnapshotSession(params_of(database), NAME)
            process = f"process {connection.thread_id()}"
            assert (caught.value.code, caught.value.facts["holder"]) == (
                "source:snapshot-waits",
                process,
            )
            heard = []

            def wait(waited_seconds: float, holders: object) -> None:
                heard.append(holders)
                cursor.execute("ROLLBACK")

            SnapshotSession(params_of(database), NAME, wait=wait).close()
            assert [[str(h) for h in holders] for holders in heard] == [[process]]
        finally:
            cursor.execute("ROLLBACK")
            cursor.execute("SET gtid_next = 'AUTOMATIC'")
