"""What goes wrong around a MySQL or MariaDB: each a clear error or a clean recovery. Wrong logins,
rights and settings are in `test_mysql_checks`, purged and reset logs in `test_mysql_log`."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pymysql
import pytest

from replicators.connectors.log import LogBlock
from replicators.connectors.problems.errors import ReplicationError, Retry
from replicators.sources.mysql.checks import MysqlChecks
from replicators.sources.mysql.continuity import LACKS
from replicators.sources.mysql.dump import COM_REGISTER_SLAVE
from replicators.sources.mysql.log import LogControl, LogReader
from replicators.sources.mysql.params import MysqlParams
from tests.integration.mysql_source import (
    NAME,
    connection_problems,
    decode_all,
    decoded,
    following,
    params_of,
    until,
)
from tests.mysql_servers import (
    HOST,
    MariadbServer,
    MysqlServer,
    SqlDatabase,
    SqlServer,
    fresh_sql_database,
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
CUTS = {"source:connection-lost", "source:unreachable", "source:timeout"}


@pytest.fixture(params=["mariadb", "mysql"])
def any_database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """A database on each of the servers, with a table `t`."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        made.execute("CREATE TABLE t (id int PRIMARY KEY, v varchar(50), w int)")
        yield made


class CuttingProxy:
    """A way to a server on which no connection lives longer than `seconds`."""

    def __init__(self, port: int, seconds: float) -> None:
        self._to, self._seconds = port, seconds
        self._listener = socket.create_server((HOST, 0))
        self.port = int(self._listener.getsockname()[1])
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection((HOST, self._to))
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()
            threading.Timer(self._seconds, self._cut, (near, far)).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(1 << 14):
                other.sendall(data)
        except OSError:
            pass

    def _cut(self, near: socket.socket, far: socket.socket) -> None:
        self.cuts += 1
        for end in (near, far):
            try:
                # As a cable that is pulled and put back: a reset, not an orderly end.
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def close(self) -> None:
        """Accept no more."""
        self._listener.close()


@contextmanager
def cutting(database: SqlDatabase, seconds: float) -> Iterator[CuttingProxy]:
    """A proxy that is closed at the end."""
    proxy = CuttingProxy(database.server.port, seconds)
    try:
        yield proxy
    finally:
        proxy.close()


def test_a_connection_that_is_cut_again_and_again_loses_and_doubles_nothing(
    any_database: SqlDatabase,
) -> None:
    """Guards that every cut, also within a login, is an error that is tried again, and that reading
    goes on from the last whole transaction."""
    with following(any_database, "t") as follower, cutting(any_database, 0.6) as proxy:
        writing = threading.Thread(target=_write, args=(any_database, 300))
        writing.start()
        cut = params_of(any_database, port=proxy.port)
        position, rows, waiting = follower.session.point.position, [], list[LogBlock]()
        reported = set[str]()
        deadline = time.monotonic() + 60
        while len(rows) < 300:
            assert time.monotonic() < deadline, f"{len(rows)} rows, {proxy.cuts} cuts"
            try:
                with LogReader(cut, NAME) as reader:
                    reader.prepare(follower.tables, position)
                    reader.start(position, follower.tables)
                    waiting.clear()
                    while len(rows) < 300:
                        block = reader.read(wait_seconds=0.1, max_bytes=2048)
                        waiting += [block] if block is not None else []
                        if block is not None and block.ends_closed:
                            rows += decoded(waiting, follower.tables)["t"][0]["id"].to_pylist()
                            position = block.position
                            waiting.clear()
            except ReplicationError as err:
                reported.add(err.code)
        writing.join()
        assert rows == list(range(300))
        assert proxy.cuts > 2
        assert reported <= CUTS
        assert all(ReplicationError(code).retry is Retry.AUTO for code in reported)


def _write(database: SqlDatabase, count: int) -> None:
    with database.connect() as connection, connection.cursor() as cursor:
        for i in range(count):
            cursor.execute(f"INSERT INTO t VALUES ({i}, 'v', 1)")
            time.sleep(0.01)


def test_a_table_altered_between_its_description_and_its_copy(any_database: SqlDatabase) -> None:
    """Guards the gap between snapshot and log: a lost column begins the copy again, a new one waits
    for the log."""
    any_database.execute("INSERT INTO t VALUES (1, 'a', 1)")
    with following(any_database, "t") as follower:
        any_database.execute(
            "ALTER TABLE t ADD COLUMN later int", "INSERT INTO t VALUES (2, 'b', 2, 7)"
        )
        assert follower.copy().num_rows == 2
        changes = decode_all(follower.blocks(), follower.tables)
        assert [p.changes["id"].to_pylist() for p in changes] == [[2]]  # type: ignore[union-attr]
        any_database.execute("ALTER TABLE t DROP COLUMN w")
        with pytest.raises(ReplicationError) as caught:
            follower.copy()
        assert (caught.value.code, caught.value.retry) == ("source:table-altered", Retry.AUTO)
        assert str(caught.value.table) == f"{any_database.name}.t"


@contextmanager
def another_replica(database: SqlDatabase, number: int) -> Iterator[None]:
    """A replica of somebody else, as the server knows it."""
    with database.connect() as connection:
        raw: object = connection
        host = b"other.example"
        said = (
            struct.pack("<IB", number, len(host)) + host + b"\0\0" + struct.pack("<HII", 3306, 0, 0)
        )
        raw._execute_command(COM_REGISTER_SLAVE, said)  # type: ignore[attr-defined]
        raw._read_packet()  # type: ignore[attr-defined]
        yield


def test_the_server_id_of_another_replica_is_refused_before_and_at_the_start(
    any_database: SqlDatabase,
) -> None:
    """Guards two readers that would cut each other's connection for ever."""
    with following(any_database, "t") as follower, another_replica(any_database, 4242):
        params = params_of(any_database, server_id=4242)
        with MysqlChecks(params) as checks:
            (problem,) = checks.connection()
        assert problem.code == "source:server-id-in-use"
        with LogReader(params, NAME) as reader, pytest.raises(ReplicationError) as caught:
            reader.start(follower.session.point.position, follower.tables)
        assert caught.value.code == "source:server-id-in-use"


def test_a_second_reader_of_ours_with_the_same_id_is_reported_to_the_first(
    any_database: SqlDatabase,
) -> None:
    """Guards a plain word where two replicators were given one server id."""
    params = params_of(any_database, server_id=4243)
    with following(any_database, "t") as follower, LogReader(params, NAME) as first:
        start = follower.session.point.position
        first.start(start, follower.tables)
        first.read(wait_seconds=0.5, max_bytes=1 << 20)
        with LogReader(params, NAME) as second:
            second.start(start, follower.tables)
            reported: list[str] = []

            def is_reported() -> bool:
                try:
                    first.read(wait_seconds=0.2, max_bytes=1 << 20)
                except ReplicationError as err:
                    reported.append(
                        err.code
                        if err.code in CUTS | {"source:server-id-in-use"}
                        else repr(err.__cause__)
                    )
                any_database.execute("REPLACE INTO t VALUES (1, 'a', 1)")
                return bool(reported)

            until(is_reported, "the first one hears of it")
            assert reported[0] in {"source:server-id-in-use", "source:connection-lost"}


@pytest.mark.parametrize("kind", [MariadbServer, MysqlServer])
def test_another_server_and_a_replica_that_logs_nothing_of_its_source(
    kind: type[SqlServer], request: pytest.FixtureRequest
) -> None:
    """Guards CORRECTNESS 26 where a position comes to another server, and the setting without which
    a replica's own log lacks what it got from its source."""
    options = {"log-slave-updates" if kind is MariadbServer else "log-replica-updates": "OFF"}
    words = (
        "MASTER TO MASTER_HOST" if kind is MariadbServer else "REPLICATION SOURCE TO SOURCE_HOST"
    )
    usual: SqlServer = request.getfixturevalue("mariadb" if kind is MariadbServer else "mysql")
    with kind(options={**options, "server-id": "2"}) as server:
        with fresh_sql_database(usual) as here:
            here.execute("CREATE TABLE t (id int PRIMARY KEY)")
            with following(here, "t") as follower:
                position, tables = follower.session.point.position, follower.tables
        with fresh_sql_database(server) as there:
            params: MysqlParams = params_of(there)
            with LogReader(params, NAME) as reader, pytest.raises(ReplicationError) as caught:
                reader.prepare(tables, position)
            assert caught.value.code == "source:position-lost"
            assert caught.value.facts["reason"] == LACKS
            with MysqlChecks(params) as checks:
                assert connection_problems(checks) == []
                server.execute(f"CHANGE {words} = '127.0.0.1'")
                (problem,) = connection_problems(checks)
            assert problem.code == "source:setting"
            assert dict(problem.facts)["setting"] in {"log_slave_updates", "log_replica_updates"}


def test_a_server_that_is_gone_is_said_in_time(any_database: SqlDatabase) -> None:
    """Guards an answer within the test's ten seconds where nothing listens."""
    with socket.create_server((HOST, 0)) as closed:
        port = closed.getsockname()[1]
    with MysqlChecks(params_of(any_database, port=port)) as checks:
        (problem,) = checks.connection()
    assert problem.code == "source:unreachable"
    with (
        pytest.raises(ReplicationError) as caught,
        LogControl(params_of(any_database, port=port), NAME) as control,
    ):
        control.heartbeat()
    assert caught.value.code == "source:unreachable"
    assert not isinstance(caught.value, pymysql.Error)
