"""The binlog as it comes: what is kept of it, what DDL and odd sessions do, cuts, and a log that
does not continue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from replicators.connectors.log import DecodedTable, Poison
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.mysql.log import LogControl, LogReader
from tests.harness import until
from tests.integration.mysql_source import (
    NAME,
    decode_all,
    decoded,
    describe,
    following,
    params_of,
    read_until,
)
from tests.mysql_servers import (
    MariadbServer,
    MysqlServer,
    SqlDatabase,
    SqlServer,
    fresh_sql_database,
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TABLE = "CREATE TABLE t (id int PRIMARY KEY, v varchar(50))"


@pytest.fixture(params=["mariadb", "mysql"])
def any_database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """A database on each of the servers, with a table `t`."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        made.execute(TABLE)
        yield made


@pytest.fixture(params=[MariadbServer, MysqlServer])
def private_server(request: pytest.FixtureRequest) -> Iterator[SqlServer]:
    """A server of the test's own, to be reset or configured badly."""
    with request.param(options={"max-allowed-packet": "64M"}) as server:
        yield server


def ids(found: Sequence[DecodedTable | Poison]) -> list[tuple[int, int]]:
    """Operations and ids of decoded changes."""
    rows = []
    for part in found:
        assert isinstance(part, DecodedTable), part
        rows += zip(part.changes["_op"].to_pylist(), part.changes["id"].to_pylist(), strict=True)
    return rows


def read_on(reader: LogReader) -> None:
    """Read until something ends it."""
    while True:
        reader.read(wait_seconds=1, max_bytes=1 << 20)


def codes(found: Sequence[DecodedTable | Poison]) -> set[str]:
    return {p.code if isinstance(p, Poison) else "" for p in found}


def test_other_tables_leave_nothing_and_their_place_is_passed(any_database: SqlDatabase) -> None:
    """Guards the filter: a busy table that nobody chose may not fill the change log."""
    any_database.execute("CREATE TABLE other (id int PRIMARY KEY, pad text)")
    with following(any_database, "t") as follower:
        before = follower.reader.idle_position()
        assert before is not None
        for i in range(20):
            any_database.execute(f"INSERT INTO other VALUES ({i}, repeat('p', 10000))")
        assert follower.blocks() == []
        after = follower.reader.idle_position()
        assert after is not None
        assert after.ordinal > before.ordinal + 200_000


def test_a_table_made_with_its_rows_is_one_transaction(any_database: SqlDatabase) -> None:
    """Guards CREATE TABLE ... SELECT: its rows follow the statement in the same transaction, where
    no position may lie."""
    with following(any_database, "t") as follower:
        made = replace(follower.tables[0], id=TableId(any_database.name, "made"))
        both = [*follower.tables, made]
        follower.reader.follow(both)
        any_database.execute(
            "INSERT INTO t VALUES (1, 'a')", "CREATE TABLE made AS SELECT * FROM t"
        )
        blocks = follower.blocks()
        found = decoded(blocks, both)
        assert found["made"][0]["id"].to_pylist() == [1]
        positions = {p for table in found.values() for p in table[0]["_position"].to_pylist()}
        assert len(positions) == 2


def test_a_table_that_is_chosen_later_is_followed_from_then_on(any_database: SqlDatabase) -> None:
    """Guards CORRECTNESS 18: nothing that was committed after `follow` returned may be missing."""
    any_database.execute("CREATE TABLE late (id int PRIMARY KEY)", "INSERT INTO late VALUES (1)")
    with following(any_database, "t") as follower:
        follower.blocks()
        both = describe(any_database, "t", "late")
        follower.reader.follow(both)
        any_database.execute("INSERT INTO late VALUES (2)", "INSERT INTO t VALUES (1, 'a')")
        found = decoded(follower.blocks(), both)
        assert found["late"][0]["id"].to_pylist() == [2]
        assert found["t"][0]["id"].to_pylist() == [1]


def test_a_table_that_was_read_past_before_it_is_chosen_is_in_open_blocks_too(
    any_database: SqlDatabase,
) -> None:
    """Guards its map in the context of a block that begins inside of a transaction: without it
    nothing of the block can be read, of no table."""
    any_database.execute("CREATE TABLE late (id int PRIMARY KEY, v varchar(50))")
    with following(any_database, "t") as follower:
        any_database.execute("INSERT INTO late VALUES (1, 'a')", "INSERT INTO t VALUES (1, 'a')")
        follower.blocks()
        both = describe(any_database, "t", "late")
        follower.reader.follow(both)
        with any_database.connect(autocommit=False) as connection:
            cursor = connection.cursor()
            for i in range(200):
                cursor.execute(f"INSERT INTO late VALUES ({1000 + i}, repeat('v', 50))")
            connection.commit()
        blocks = follower.blocks(max_bytes=4096)
        assert not blocks[0].ends_closed
        rows = [r for b in blocks for r in ids(decode_all([b], both))]
        assert rows == [(0, 1000 + i) for i in range(200)]


def test_a_transaction_larger_than_a_block_comes_in_open_blocks(any_database: SqlDatabase) -> None:
    """Guards the context of an open block: its maps and the transaction's begin."""
    with (
        following(any_database, "t") as follower,
        any_database.connect(autocommit=False) as connection,
    ):
        cursor = connection.cursor()
        for i in range(300):
            cursor.execute(f"INSERT INTO t VALUES ({i}, repeat('v', 50))")
        connection.commit()
        blocks = follower.blocks(max_bytes=4096)
        assert [b.ends_closed for b in blocks].count(False) > 3
        assert blocks[-1].ends_closed
        whole = ids(decode_all(blocks, follower.tables))
        parts = [r for b in blocks for r in ids(decode_all([b], follower.tables))]
        assert whole == parts == [(0, i) for i in range(300)]
        positions = {
            p
            for b in blocks
            for d in decode_all([b], follower.tables)
            if isinstance(d, DecodedTable)
            for p in d.changes["_position"].to_pylist()
        }
        assert len(positions) == 1


def test_a_cut_in_the_middle_of_anything_loses_and_doubles_nothing(
    any_database: SqlDatabase,
) -> None:
    """Guards reading again from a block's position, wherever the connection was cut (a few bytes
    are read at a time, so that most cuts fall into an event): transactions come whole, once."""
    with following(any_database, "t") as follower:
        values = ", ".join(f"({i}, repeat('v', 50))" for i in range(1000, 1400))
        for i in range(20):
            any_database.execute(f"INSERT INTO t VALUES ({i}, 'small')")
        any_database.execute(f"INSERT INTO t VALUES {values}", "DELETE FROM t WHERE id < 10")
        with LogControl(follower.params, NAME) as control:
            mark = control.heartbeat()
        position, rows, cuts = follower.session.point.position, [], 0
        while position.ordinal < mark:
            with LogReader(follower.params, NAME) as reader:
                reader.start(position, follower.tables)
                reader._input = np.zeros(300, np.uint8)
                waiting = []
                for _ in range(1 + cuts):
                    block = reader.read(wait_seconds=0.2, max_bytes=2048)
                    if block is None:
                        break
                    waiting.append(block)
                    if block.ends_closed:
                        rows += ids(decode_all(waiting, follower.tables))
                        waiting, position = [], block.position
            cuts += 1
            assert cuts < 40
        assert cuts > 2
        assert rows[:420] == [*((0, i) for i in range(20)), *((0, i) for i in range(1000, 1400))]
        assert sorted(rows[420:]) == [(2, i) for i in range(10)]


def test_a_truncation_stands_in_its_place(any_database: SqlDatabase) -> None:
    """Guards CORRECTNESS 6: rows before and after a TRUNCATE in one segment."""
    with following(any_database, "t") as follower:
        any_database.execute(
            "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
            "TRUNCATE TABLE t",
            "INSERT INTO t VALUES (3, 'c')",
        )
        (found,) = decode_all(follower.blocks(), follower.tables)
        assert ids([found]) == [(0, 1), (0, 2), (3, None), (0, 3)]
        assert isinstance(found, DecodedTable)
        sequences = found.changes["_sequence"].to_pylist()
        assert sequences == sorted(set(sequences))
        any_database.execute("TRUNCATE t")
        assert ids(decode_all(follower.blocks(), follower.tables)) == [(3, None)]


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ("binlog_row_image = 'MINIMAL'", "source:row-image"),
        ("binlog_row_image = 'NOBLOB'", ""),
        ("binlog_format = 'STATEMENT'", "source:statement-logged"),
    ],
)
def test_a_session_with_settings_of_its_own_is_seen(
    any_database: SqlDatabase, setting: str, code: str
) -> None:
    """Guards CORRECTNESS 25: row_image and binlog_format are per session."""
    any_database.execute("INSERT INTO t VALUES (1, 'a')")
    with following(any_database, "t") as follower, any_database.connect() as connection:
        cursor = connection.cursor()
        cursor.execute(f"SET SESSION {setting}")
        cursor.execute("UPDATE t SET v = 'b' WHERE id = 1")
        assert codes(decode_all(follower.blocks(), follower.tables)) == {code}


def test_rolled_back_rows_never_come_and_myisam_rows_do(any_database: SqlDatabase) -> None:
    """Guards non-transactional tables, whose rows a rollback does not undo."""
    any_database.execute("CREATE TABLE m (id int PRIMARY KEY) ENGINE = MyISAM")
    with (
        following(any_database, "t", "m") as follower,
        any_database.connect(autocommit=False) as connection,
    ):
        cursor = connection.cursor()
        cursor.execute("INSERT INTO t VALUES (1, 'a')")
        cursor.execute("SAVEPOINT s")
        cursor.execute("INSERT INTO t VALUES (2, 'a')")
        cursor.execute("ROLLBACK TO SAVEPOINT s")
        connection.commit()
        cursor.execute("INSERT INTO t VALUES (3, 'a')")
        connection.rollback()
        cursor.execute("INSERT INTO m VALUES (9)")
        connection.commit()
        found = decoded(follower.blocks(), follower.tables)
        assert found["t"][0]["id"].to_pylist() == [1]
        assert found["m"][0]["id"].to_pylist() == [9]


def test_compressed_transactions_and_rows_are_the_same(any_database: SqlDatabase) -> None:
    """Guards TRANSACTION_PAYLOAD (zstd) and MariaDB's compressed events (zlib)."""
    is_mariadb = any_database.server.flavour == "mariadb"
    with following(any_database, "t") as follower, any_database.connect() as connection:
        cursor = connection.cursor()
        if is_mariadb:
            any_database.server.execute(
                "SET GLOBAL log_bin_compress = 1", "SET GLOBAL log_bin_compress_min_len = 10"
            )
        else:
            cursor.execute("SET SESSION binlog_transaction_compression = ON")
        try:
            values = ", ".join(f"({i}, repeat('v', 50))" for i in range(500))
            cursor.execute(f"INSERT INTO t VALUES {values}")
            cursor.execute("UPDATE t SET v = repeat('w', 50), id = id + 1000 WHERE id < 100")
            cursor.execute("DELETE FROM t WHERE id < 200")
            cursor.execute("TRUNCATE TABLE t")
        finally:
            if is_mariadb:
                any_database.server.execute("SET GLOBAL log_bin_compress = 0")
        blocks = follower.blocks()
        rows = ids(decode_all(blocks, follower.tables))
        assert sum(len(b.data) for b in blocks) < 20_000
        assert [r for r in rows if r[0] == 0] == [(0, i) for i in range(500)]
        assert sorted(r[1] for r in rows if r[0] == 1) == list(range(1000, 1100))
        assert sorted(r[1] for r in rows if r[0] == 2) == list(range(100, 200))
        assert rows[-1] == (3, None)


def test_an_event_larger_than_a_packet(private_server: SqlServer) -> None:
    """Guards events of 16 MB and more, which come in several packets, by log and by snapshot."""
    with fresh_sql_database(private_server) as database:
        database.execute("CREATE TABLE t (id int PRIMARY KEY, v longtext)")
        with following(database, "t") as follower:
            database.execute(
                "INSERT INTO t VALUES (1, 'small')",
                "INSERT INTO t VALUES (2, repeat('x', 17 * 1024 * 1024))",
                "INSERT INTO t VALUES (3, 'after')",
            )
            log = follower.changes()["t"]
            assert [len(v) for v in log["v"].to_pylist()] == [5, 17 << 20, 5]
            assert log.select(["id", "v"]).equals(follower.copy().sort_by("id"))


@pytest.mark.long_with("MysqlServer")
def test_the_log_goes_on_through_files_and_restarts(private_server: SqlServer) -> None:
    """Guards positions across FLUSH LOGS and a restart of the server, and reading again after a
    cut."""
    with fresh_sql_database(private_server) as database:
        database.execute(TABLE)
        with following(database, "t") as follower:
            database.execute(
                "INSERT INTO t VALUES (1, 'a')",
                "FLUSH BINARY LOGS",
                "INSERT INTO t VALUES (2, 'b')",
            )
            assert ids(decode_all(follower.blocks(), follower.tables)) == [(0, 1), (0, 2)]
            reached = follower.reader.idle_position()
            assert reached is not None
            private_server.stop()
            with pytest.raises(ReplicationError) as caught:
                read_on(follower.reader)
            assert caught.value.code == "source:connection-lost"
            private_server.start()
            database.execute("INSERT INTO t VALUES (3, 'c')")
            with (
                LogReader(follower.params, NAME) as reader,
                LogControl(follower.params, NAME) as control,
            ):
                reader.prepare(follower.tables, reached)
                reader.start(reached, follower.tables)
                assert ids(
                    decode_all(read_until(reader, control.heartbeat()), follower.tables)
                ) == [(0, 3)]


def test_a_log_that_does_not_continue_is_said_plainly(private_server: SqlServer) -> None:
    """Guards CORRECTNESS 26: purged, reset and restored servers; never "0 rows, all fine"."""
    reset = "RESET MASTER" if private_server.flavour == "mariadb" else "RESET BINARY LOGS AND GTIDS"
    with fresh_sql_database(private_server) as database:
        database.execute(TABLE)
        with following(database, "t") as follower:
            database.execute("INSERT INTO t VALUES (1, 'a')")
            follower.blocks()
            reached = follower.reader.idle_position()
            assert reached is not None

            def reason() -> str:
                with (
                    LogReader(follower.params, NAME) as reader,
                    pytest.raises(ReplicationError) as caught,
                ):
                    reader.prepare(follower.tables, reached)
                assert caught.value.code == "source:position-lost"
                return caught.value.facts["reason"]

            with LogReader(follower.params, NAME) as reader:
                reader.prepare(follower.tables, reached)
                other = replace(
                    reached, detail={**reached.detail, "stamp": reached.detail["stamp"] - 1}
                )
                with pytest.raises(ReplicationError) as caught:
                    reader.prepare(follower.tables, other)
                assert caught.value.facts["reason"] == "the server's binlog was reset"
            database.execute(
                "FLUSH BINARY LOGS", "INSERT INTO t VALUES (2, 'b')", "FLUSH BINARY LOGS"
            )
            last = database.execute("SHOW BINARY LOGS")[-1][0]
            follower.close()

            def is_purged() -> bool:
                """A file that a replica's connection still reads is kept, without a word."""
                database.execute(f"PURGE BINARY LOGS TO '{last}'")
                return bool(database.execute("SHOW BINARY LOGS")[0][0] == last)

            until(is_purged, "the old files are gone", 60)
            assert "no longer has the binlog file" in reason()
            begun = reached.detail["stamp"]
            until(lambda: database.execute("SELECT unix_timestamp()")[0][0] > begun, "a new second")
            database.execute(reset, *["INSERT INTO t VALUES (3, repeat('x', 50))"])
            database.execute(
                "DELETE FROM t",
                *[f"INSERT INTO t VALUES ({i}, repeat('x', 50))" for i in range(30)],
            )
            assert reason() in {
                "the server lacks transactions that were already copied",
                "the server's binlog was reset",
                "the server's binlog file binlog.000001 ends before it, as after a restore",
            }


def test_a_server_id_of_ones_own_must_be_free(any_database: SqlDatabase) -> None:
    """Guards two readers that would cut each other's connection for ever."""
    with LogReader(params_of(any_database, server_id=1), NAME) as reader:
        start = following(any_database, "t")
        with start as follower, pytest.raises(ReplicationError) as caught:
            reader.start(follower.session.point.position, follower.tables)
    assert caught.value.code == "source:server-id-in-use"
