"""The way between a MySQL or MariaDB and its reader: silence, damage, checksums, encryption."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.mysql import dump as dump_module
from replicators.sources.mysql import log as log_module
from replicators.sources.mysql.checks import MysqlChecks
from replicators.sources.mysql.log import LogControl, LogReader
from tests.integration.mysql_source import (
    DEADLINE_SECONDS,
    NAME,
    Follower,
    decoded,
    following,
    params_of,
    read_until,
)
from tests.mysql_servers import SqlDatabase, SqlServer, fresh_sql_database
from tests.proxies import CuttingProxy

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SILENT_SECONDS, HEARTBEAT_SECONDS = 4.0, 0.1


@pytest.fixture(params=["mariadb", "mysql"])
def any_database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """A database on each of the servers, with a table `t`."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        made.execute("CREATE TABLE t (id int PRIMARY KEY, v varchar(50))")
        yield made


def new_ids(follower: Follower) -> list[int]:
    """The ids of the rows that came since the last call."""
    return read_on(follower.reader, follower)


def read_for(reader: LogReader, seconds: float) -> None:
    """Read all that time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        reader.read(wait_seconds=0.1, max_bytes=1 << 20)


def another(follower: Follower) -> LogReader:
    """A second reader of the same log, under a name of its own."""
    return LogReader(follower.params, f"{NAME} again")


def read_on(reader: LogReader, follower: Follower) -> list[int]:
    """The ids that it reads up to the log's end."""
    with LogControl(follower.params, NAME) as control:
        mark = control.heartbeat()
    parts = decoded(read_until(reader, mark), follower.tables).get("t", [])
    return [i for part in parts for i in part["id"].to_pylist()]


@pytest.mark.long_with("mysql")
@pytest.mark.long
def test_silence_is_an_idle_server_or_a_lost_connection(
    any_database: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the server's heartbeats: with them a log in which nothing happens goes on, and a
    connection on which nothing comes any more, though nobody cut it, is one that was lost."""
    monkeypatch.setattr(dump_module, "HEARTBEAT_SECONDS", HEARTBEAT_SECONDS)
    monkeypatch.setattr(log_module, "SILENT_SECONDS", SILENT_SECONDS)
    with (
        CuttingProxy(any_database.server.port) as proxy,
        following(any_database, "t", port=proxy.port) as follower,
    ):
        any_database.execute("INSERT INTO t VALUES (1, 'a')")
        assert new_ids(follower) == [1]
        read_for(follower.reader, 1.5 * SILENT_SECONDS)
        any_database.execute("INSERT INTO t VALUES (2, 'b')")
        assert new_ids(follower) == [2]
        proxy.stall()
        began = time.monotonic()
        with pytest.raises(ReplicationError) as caught:
            read_for(follower.reader, DEADLINE_SECONDS)
        assert caught.value.code == "source:connection-lost"
        assert time.monotonic() - began > SILENT_SECONDS / 2


def test_an_event_that_was_damaged_on_its_way_is_never_decoded(any_database: SqlDatabase) -> None:
    """Guards the checksum of each event: its place is reported, nothing of it becomes a row, and
    read again it is whole."""
    with (
        CuttingProxy(any_database.server.port) as proxy,
        following(any_database, "t", port=proxy.port, tls="disable") as follower,
    ):
        any_database.execute("INSERT INTO t VALUES (1, 'before')")
        assert new_ids(follower) == [1]
        reached = follower.reader.idle_position()
        assert reached is not None
        proxy.damage(b"a marker")
        any_database.execute("INSERT INTO t VALUES (2, 'a marker')")
        with pytest.raises(ReplicationError) as caught:
            read_for(follower.reader, DEADLINE_SECONDS)
        assert caught.value.code == "source:log-damaged"
        file, _, offset = str(caught.value.facts["position"]).partition(":")
        (event,) = any_database.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {offset} LIMIT 1")
        assert event[2].startswith("Write_rows")
        follower.reader.prepare(follower.tables, reached)
        follower.reader.start(reached, follower.tables)
        (row,) = follower.changes()["t"].to_pylist()
        assert (row["id"], row["v"]) == (2, "a marker")


def test_a_server_that_changes_its_checksums_meanwhile(any_database: SqlDatabase) -> None:
    """Guards each file of the log being read in its own form, by a reader that goes on and by one
    that begins in it."""
    with following(any_database, "t") as follower, another(follower) as second:
        start = follower.session.point.position
        try:
            any_database.execute(
                "INSERT INTO t VALUES (1, 'with')",
                "SET GLOBAL binlog_checksum = NONE",
                "INSERT INTO t VALUES (2, 'without')",
            )
            blocks = follower.blocks()
            bare = follower.reader.idle_position()
            assert bare is not None
            second.start(bare, follower.tables)
            any_database.execute(
                "INSERT INTO t VALUES (3, 'without')",
                "SET GLOBAL binlog_checksum = CRC32",
                "INSERT INTO t VALUES (4, 'with')",
            )
            blocks += follower.blocks()
            rows = [r for p in decoded(blocks, follower.tables)["t"] for r in p.to_pylist()]
            assert [(r["id"], r["v"]) for r in rows] == [
                (1, "with"), (2, "without"), (3, "without"), (4, "with"),
            ]  # fmt: skip
            assert [b.context["has_checksums"] for b in blocks] == [True, False, False, True]
            assert read_on(second, follower) == [3, 4]
            for setting in ("NONE", "CRC32"):
                any_database.execute(f"SET GLOBAL binlog_checksum = {setting}")
                for position, expected in ((start, [1, 2, 3, 4]), (bare, [3, 4])):
                    second.prepare(follower.tables, position)
                    second.start(position, follower.tables)
                    assert read_on(second, follower) == expected
        finally:
            any_database.execute("SET GLOBAL binlog_checksum = CRC32")


DUMPS = """
SELECT connection_type FROM performance_schema.threads
WHERE processlist_command LIKE 'Binlog Dump%'
"""


@pytest.mark.parametrize(("tls", "kind"), [("require", "SSL/TLS"), ("disable", "TCP/IP")])
def test_the_log_comes_as_encrypted_as_was_asked(mysql: SqlServer, tls: str, kind: str) -> None:
    """Guards the stream itself, which is read past the driver: its bytes are those of the encrypted
    connection."""
    with fresh_sql_database(mysql) as database:
        database.execute(
            "CREATE TABLE t (id int PRIMARY KEY, v varchar(50))",
            "CREATE TABLE big (id int PRIMARY KEY, v mediumtext)",
        )
        with following(database, "t", "big", tls=tls) as follower:
            database.execute(
                "INSERT INTO t VALUES (1, 'a')",
                "INSERT INTO big VALUES (1, repeat('x', 1000000))",
                "INSERT INTO t VALUES (2, 'b')",
            )
            found = follower.changes()
            assert found["t"]["id"].to_pylist() == [1, 2]
            assert found["big"]["v"].to_pylist() == ["x" * 1_000_000]
            assert {row[0] for row in database.execute(DUMPS)} == {kind}


def test_a_certificate_that_is_not_trusted_ends_every_connection(
    any_database: SqlDatabase, tmp_path: Path
) -> None:
    """Guards against a person's mistake, or another server in between, being taken for a server
    that is away for a while and tried for ever: no such connection is used, and what to mend is
    said. The MariaDB here offers no TLS."""
    text = tmp_path / "no-certificate.pem"
    text.write_text("not a certificate")
    wrong = [
        {"tls": "verify-full"},
        {"tls": "verify-full", "tls_ca": str(tmp_path / "missing.pem")},
        {"tls": "verify-full", "tls_ca": str(text)},
    ]
    if any_database.server.flavour == "mariadb":
        wrong.append({"tls": "require"})
    for given in wrong:
        params = params_of(any_database, **given)
        with MysqlChecks(params) as checks:
            (problem,) = checks.connection()
        code = "source:tls-file" if "tls_ca" in given else "source:tls"
        assert problem.code == code, given
        with pytest.raises(ReplicationError) as caught, LogReader(params, NAME) as reader:
            reader.prepare([], None)
        assert caught.value.code == code, given
