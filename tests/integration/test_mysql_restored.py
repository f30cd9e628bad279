"""Servers that look like the one whose log was read, and are not: put back to an older state, or
another one with its number. The names of files, offsets and GTIDs go on there as if nothing had
happened; only the time at which a file was begun differs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from replicators.connectors.model.positions import Position
from replicators.connectors.problems.errors import ReplicationError, Retry
from replicators.sources.mysql import continuity as continuity_module
from replicators.sources.mysql.continuity import BEHIND
from replicators.sources.mysql.log import LogReader
from tests.harness import until
from tests.integration.mysql_source import MEGABYTE, NAME, Follower, following, params_of
from tests.mysql_servers import (
    MariadbServer,
    MysqlServer,
    SqlDatabase,
    SqlServer,
    fresh_sql_database,
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TABLE = "CREATE TABLE t (id int PRIMARY KEY, v longtext)"
RESET = "the server's binlog was reset"


@pytest.fixture(params=[MariadbServer, MysqlServer])
def private_server(request: pytest.FixtureRequest) -> Iterator[SqlServer]:
    """A server of the test's own, to be put back."""
    with request.param() as server:
        yield server


@pytest.fixture(params=["mariadb", "mysql"])
def any_database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """A database on each of the servers, with a table `t`."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        made.execute(TABLE)
        yield made


def insert(database: SqlDatabase, first: int, last: int, text: str) -> None:
    """Rows, each in a transaction."""
    database.execute(*(f"INSERT INTO t VALUES ({i}, '{text}')" for i in range(first, last)))


def reached(follower: Follower) -> Position:
    """Read to the log's end: where that is."""
    follower.blocks()
    position = follower.reader.idle_position()
    assert position is not None
    return Position.from_json(position.to_json())


def refused(follower: Follower, position: Position, **changes: object) -> str:
    """Why a process that starts at this position may not go on."""
    params = params_of(follower.database, **changes)
    with LogReader(params, NAME) as reader, pytest.raises(ReplicationError) as caught:
        reader.prepare(follower.tables, position)
    assert caught.value.code == "source:position-lost"
    return str(caught.value.facts["reason"])


def changed(position: Position, **detail: object) -> Position:
    """The position with other details."""
    return replace(position, detail={**position.detail, **detail})


def assert_looks_like_ours(follower: Follower, position: Position, **changes: object) -> None:
    """But for the file's time, everything fits."""
    with LogReader(params_of(follower.database, **changes), NAME) as reader:
        reader.prepare(follower.tables, changed(position, stamp=0))


def wait_for_another_second(database: SqlDatabase, position: Position) -> None:
    """Files tell the second in which they were begun."""
    begun = position.detail["stamp"]
    until(lambda: database.execute("SELECT unix_timestamp()")[0][0] > begun, "a new second")


@pytest.mark.long_with("MysqlServer")
def test_a_server_that_was_put_back_is_reported(private_server: SqlServer, tmp_path: Path) -> None:
    """Guards CORRECTNESS 26 against "0 rows, all fine": after a restore other transactions have the
    GTIDs and the places of those that were copied."""
    server = private_server
    with fresh_sql_database(server) as database:
        database.execute(TABLE)
        server.stop()
        assert server.folder is not None
        data, kept = server.folder / "data", server.folder / "kept"
        shutil.copytree(data, kept)
        for copy, original in zip(sorted(kept.rglob("*")), sorted(data.rglob("*")), strict=True):
            shutil.chown(copy, original.owner(), original.group())
        shutil.chown(kept, data.owner(), data.group())
        server.start()
        with following(database, "t") as follower:
            insert(database, 0, 10, "first")
            position = reached(follower)
            begun = follower.session.point.position
            wait_for_another_second(database, position)
        server.stop()
        shutil.rmtree(data)
        kept.rename(data)
        server.start()
        insert(database, 100, 140, "another")
        assert database.execute("SHOW BINARY LOGS")[-1][0] == position.detail["file"]
        assert_looks_like_ours(follower, position)
        assert refused(follower, position) == RESET
        assert refused(follower, begun) == RESET
        followed = changed(position, by_gtids=True)
        assert refused(follower, followed) == RESET
        assert refused(follower, changed(followed, file="binlog.000099")) == BEHIND


def test_another_server_with_the_same_number_is_reported(mariadb: SqlServer) -> None:
    """Guards MariaDB's identity, which is a number that is 1 wherever nobody chose another one."""
    with fresh_sql_database(mariadb) as here, MariadbServer() as other:
        here.execute(TABLE)
        with following(here, "t") as follower:
            insert(here, 0, 3, "here")
            position = reached(follower)
        with fresh_sql_database(other) as there:
            there.execute(TABLE)
            while there.execute("SHOW BINARY LOGS")[-1][0] != position.detail["file"]:
                there.execute("FLUSH BINARY LOGS")
            domain, server, number = position.detail["gtids"].split("-")
            assert (domain, server) == ("0", position.detail["server"])
            rows = range(1, int(position.detail["offset"]) // MEGABYTE + 2)
            values = ", ".join(f"({i}, repeat('x', {MEGABYTE}))" for i in rows)
            there.execute(
                f"SET SESSION gtid_seq_no = {int(number) + 1}", f"INSERT INTO t VALUES {values}"
            )
            assert_looks_like_ours(follower, position, port=other.port)
            assert refused(follower, position, port=other.port) == RESET


def test_a_file_s_time_that_does_not_come_is_asked_for_again(
    any_database: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards against a slow answer being taken for another file: every table would be copied
    again."""
    with following(any_database, "t") as follower, LogReader(follower.params, NAME) as reader:
        position = follower.session.point.position
        reader.prepare(follower.tables, position)
        monkeypatch.setattr(continuity_module, "LOOK_SECONDS", 0.0)
        with pytest.raises(ReplicationError) as caught:
            reader.prepare(follower.tables, position)
    assert (caught.value.code, caught.value.retry) == ("source:connection-lost", Retry.AUTO)
