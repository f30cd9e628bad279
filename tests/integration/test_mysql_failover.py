"""Fail-over: the source's address leads to a promoted replica. The log goes on there by its GTIDs,
or the position is lost and it is said why. One pair of servers a flavour lives through all of it,
in this file's order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest

from replicators.connectors.log import DecodedTable, LogBlock
from replicators.connectors.model.positions import Position
from replicators.connectors.problems.errors import ReplicationError, Retry
from replicators.sources.mysql.continuity import LACKS, PURGED
from replicators.sources.mysql.control import LogControl
from replicators.sources.mysql.log import LogReader
from replicators.sources.mysql.offsets import MysqlGtids
from replicators.sources.mysql.snapshot import ChunkReader, SnapshotSession
from tests.harness import until
from tests.integration.mysql_source import (
    NAME,
    Follower,
    decode_all,
    following,
    params_of,
    read_until,
)
from tests.mysql_servers import (
    ADMIN,
    HOST,
    PASSWORD,
    MariadbServer,
    MysqlServer,
    SqlDatabase,
    SqlServer,
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@dataclass
class Pair:
    """A primary and its replica with one table, `follower` at the primary. `before` is what it read
    up to `position`; rows 20 to 39 came after it; `ahead` is a place that only the primary ever
    reached."""

    primary: SqlServer
    replica: SqlServer
    follower: Follower
    before: list[LogBlock] = field(default_factory=list)
    position: Position = field(default_factory=lambda: Position(0))
    ahead: Position | None = None

    @property
    def here(self) -> SqlDatabase:
        return SqlDatabase(self.primary, "shop")

    @property
    def there(self) -> SqlDatabase:
        return SqlDatabase(self.replica, "shop")

    def fail_over(self) -> None:
        """The primary writes what the replica never gets, and ends; the replica takes writes from
        then on."""
        if self.ahead is not None:
            return
        word = "SLAVE" if self.replica.flavour == "mariadb" else "REPLICA"
        self.replica.execute(f"STOP {word}")
        insert(self.here, 50, 53)
        self.follower.blocks()
        self.ahead = reached(self.follower.reader)
        self.follower.close()
        self.primary.kill()
        self.replica.execute(f"RESET {word} ALL")
        insert(self.there, 100, 110)


def _attach(primary: SqlServer, replica: SqlServer) -> None:
    if primary.flavour == "mariadb":
        where = (
            f"MASTER_HOST='{HOST}', MASTER_PORT={primary.port}, MASTER_USER='{ADMIN}', "
            f"MASTER_PASSWORD='{PASSWORD}'"
        )
        replica.execute(f"CHANGE MASTER TO {where}, MASTER_USE_GTID=slave_pos", "START SLAVE")
        return
    where = (
        f"SOURCE_HOST='{HOST}', SOURCE_PORT={primary.port}, SOURCE_USER='{ADMIN}', "
        f"SOURCE_PASSWORD='{PASSWORD}'"
    )
    replica.execute(
        f"CHANGE REPLICATION SOURCE TO {where}, SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1",
        "START REPLICA",
    )


@pytest.fixture(scope="module", params=[MariadbServer, MysqlServer])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Both servers, level. The primary has more binlog files than the replica, so that what goes by
    the numbers of files goes wrong; in MySQL some transactions have tags."""
    kind: type[SqlServer] = request.param
    logs = {"log-slave-updates" if kind is MariadbServer else "log-replica-updates": "ON"}
    with kind(options=logs) as primary, kind(options={**logs, "server-id": "2"}) as replica:
        _attach(primary, replica)
        here, there = SqlDatabase(primary, "shop"), SqlDatabase(replica, "shop")
        primary.execute("CREATE DATABASE shop")
        here.execute("CREATE TABLE t (id int PRIMARY KEY, v varchar(50))")
        here.execute(*["FLUSH BINARY LOGS"] * 5)
        with following(here, "t") as follower:
            made = Pair(primary, replica, follower)
            insert(here, 0, 20)
            made.before = follower.blocks()
            made.position = reached(follower.reader)
            insert(here, 20, 40)
            count = "SELECT count(*), sum(id) FROM t"
            is_there = (
                "SELECT 1 FROM information_schema.tables"
                " WHERE table_schema = 'shop' AND table_name = 't'"
            )
            until(lambda: replica.execute(is_there) or None, "the table is there")
            until(lambda: there.execute(count) == here.execute(count), "the replica is level")
            yield made


def insert(database: SqlDatabase, first: int, last: int) -> None:
    """Rows, each in a transaction; in MySQL every third one with a tag."""
    has_tags = database.server.flavour == "mysql"
    with database.connect() as connection, connection.cursor() as cursor:
        for i in range(first, last):
            if has_tags:
                tag = f"AUTOMATIC:tag_{i % 2}" if i % 3 == 0 else "AUTOMATIC"
                cursor.execute(f"SET gtid_next = '{tag}'")
            cursor.execute(f"INSERT INTO t VALUES ({i}, 'v')")


def rows(blocks: list[LogBlock], follower: Follower) -> list[tuple[int, int]]:
    """Operations and ids."""
    found = []
    for part in decode_all(blocks, follower.tables):
        assert isinstance(part, DecodedTable), part
        changes = part.changes
        found += list(zip(changes["_op"].to_pylist(), changes["id"].to_pylist(), strict=True))
    return found


def places(blocks: list[LogBlock], follower: Follower) -> list[int]:
    """The positions of decoded changes."""
    parts = [d for d in decode_all(blocks, follower.tables) if isinstance(d, DecodedTable)]
    return [p for d in parts for p in d.changes["_position"].to_pylist()]


def reached(reader: LogReader) -> Position:
    """Where a reader is, as it is kept."""
    position = reader.idle_position()
    assert position is not None
    return Position.from_json(position.to_json())


def read_on(pair: Pair, position: Position) -> tuple[list[LogBlock], Position]:
    """What a process reads of the replica that starts at `position`, up to the log's end, and where
    it stopped."""
    params = params_of(pair.there)
    with LogReader(params, NAME) as reader:
        reader.prepare(pair.follower.tables, position)
        reader.start(position, pair.follower.tables)
        first: list[LogBlock] = []

        def has_moved() -> bool:
            block = reader.read(wait_seconds=0.1, max_bytes=1 << 20)
            first.extend([block] if block is not None else [])
            return reader.idle_position() is not None

        until(has_moved, "the stream is at the server")
        with LogControl(params, NAME, reached(reader)) as control:
            mark = control.heartbeat()
        blocks = first + read_until(reader, mark)
        return blocks, reached(reader)


def why_lost(pair: Pair, position: Position) -> str:
    """The reason that the replica gives."""
    with (
        LogReader(params_of(pair.there), NAME) as reader,
        pytest.raises(ReplicationError) as caught,
    ):
        reader.prepare(pair.follower.tables, position)
    assert caught.value.code == "source:position-lost"
    return str(caught.value.facts["reason"])


def test_the_position_knows_every_transaction_that_was_read(pair: Pair) -> None:
    """Guards the set that all of it goes by, with the tags of MySQL 8.3 and newer: what is left out
    would come again."""
    assert rows(pair.before, pair.follower) == [(0, i) for i in range(20)]
    parts = [
        d for d in decode_all(pair.before, pair.follower.tables) if isinstance(d, DecodedTable)
    ]
    times = [t for d in parts for t in d.changes["_committed_at"].to_pylist()]
    assert times == sorted(times)
    assert all(t.microsecond for t in times[:3]) or pair.primary.flavour == "mariadb"
    session = SnapshotSession(params_of(pair.here), NAME, pair.position)
    reported = str(session.point.position.detail["gtids"])
    if pair.primary.flavour == "mysql":
        assert ":tag_1:" in pair.position.detail["gtids"]
        executed = pair.here.execute("SELECT @@global.gtid_executed")[0][0]
        assert str(MysqlGtids(reported)) == str(MysqlGtids(executed))
    pair.follower.blocks()
    now = str(reached(pair.follower.reader).detail["gtids"])
    assert str(MysqlGtids(reported)) == now if pair.primary.flavour == "mysql" else reported == now


def test_a_copy_and_the_figures_wait_while_the_stream_is_at_another_server(pair: Pair) -> None:
    """Guards numbers that say nothing of each other, and copies put together from two servers."""
    there, table = params_of(pair.there), pair.follower.tables[0]
    (chunk,) = pair.follower.session.plan(table, rows_per_chunk=100)
    token = pair.follower.session.point.token

    def control() -> None:
        with LogControl(there, NAME, pair.position) as made:
            made.heartbeat()

    def view() -> None:
        SnapshotSession(there, NAME, pair.position)

    def copy() -> None:
        list(ChunkReader(there, token)(chunk, table))

    def stream() -> None:
        with LogReader(there, NAME) as reader:
            reader.prepare([table], None)
            reader.start(pair.position, [table])

    assert sum(b.num_rows for b in ChunkReader(pair.follower.params, token)(chunk, table)) == 40
    for act in (control, view, copy, stream):
        with pytest.raises(ReplicationError) as caught:
            act()
        assert (caught.value.code, caught.value.retry) == ("source:server-changed", Retry.AUTO)


def test_without_gtids_another_server_is_a_lost_position(pair: Pair) -> None:
    """Guards a position without GTIDs: there is no saying what the other server has."""
    bare = replace(pair.position, detail={**pair.position.detail, "gtids": ""})
    assert why_lost(pair, bare) == "this is another server"


def test_the_log_goes_on_at_a_promoted_replica(pair: Pair) -> None:
    """Guards CORRECTNESS 26 over a fail-over: nothing is lost and nothing doubled, also by a
    process that starts again in the middle, and positions stay in order though the files of the two
    servers have numbers of their own."""
    pair.fail_over()
    follower = pair.follower
    pair.there.execute("FLUSH BINARY LOGS", "UPDATE t SET v = 'w' WHERE id = 7")
    after, stopped = read_on(pair, pair.position)
    expected = [*range(20, 40), *range(100, 110)]
    assert rows(after, follower) == [*((0, i) for i in expected), (1, 7)]
    assert max(places(pair.before, follower)) < pair.position.ordinal < min(places(after, follower))
    assert pair.position.ordinal < pair.ahead.ordinal < stopped.ordinal  # type: ignore[union-attr]
    for n, block in enumerate(after):
        if block.ends_closed:
            again, _ = read_on(pair, Position.from_json(block.position.to_json()))
            assert rows(after[: n + 1], follower) + rows(again, follower) == rows(after, follower)
    pair.there.execute("DELETE FROM t WHERE id = 1")
    assert rows(read_on(pair, stopped)[0], follower) == [(2, 1)]


def test_a_server_that_lacks_what_was_copied_is_reported(pair: Pair) -> None:
    """Guards against a replica that was behind when it was promoted: what it never had is in the
    target for ever."""
    pair.fail_over()
    assert pair.ahead is not None
    assert why_lost(pair, pair.ahead) == LACKS


def test_a_server_that_purged_what_was_not_copied_is_reported(pair: Pair) -> None:
    """Guards against a hole: the replica has everything, but no longer in its log. And what begins
    again there stands behind all that came before, or old changes would count as new ones."""
    pair.fail_over()
    pair.there.execute("FLUSH BINARY LOGS", "DELETE FROM t WHERE id = 2", "FLUSH BINARY LOGS")
    last = pair.there.execute("SHOW BINARY LOGS")[-1][0]

    def is_purged() -> bool:
        """A file that a connection still reads is kept, without a word."""
        pair.there.execute(f"PURGE BINARY LOGS TO '{last}'")
        return bool(pair.there.execute("SHOW BINARY LOGS")[0][0] == last)

    until(is_purged, "the old files are gone", 60)
    assert why_lost(pair, pair.position) == PURGED
    with LogReader(params_of(pair.there), NAME) as reader:
        with pytest.raises(ReplicationError):
            reader.prepare(pair.follower.tables, pair.position)
        session = SnapshotSession(params_of(pair.there), NAME, lost=reader.lost)
    assert session.point.position.ordinal > pair.position.ordinal
