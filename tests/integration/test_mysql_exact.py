"""Tables without a key: a view of their own at one place of the log, whole old rows after it, and
each row as often as at the source."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from replicators.connectors.model.changes import Op
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.mysql import exact
from replicators.sources.mysql.snapshot import ChunkReader
from tests.integration.mysql_source import decoded, following
from tests.mysql_servers import SqlDatabase, fresh_sql_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
Row = tuple[Any, ...]
COLUMNS = ("a", "b", "c")


@pytest.fixture(params=["mariadb", "mysql"])
def keyless(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """A table without a key on each of the servers, with rows that are there several times."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        made.execute("CREATE TABLE t (a int, b varchar(20), c decimal(8,2))")
        made.execute(
            "INSERT INTO t VALUES " + ", ".join(f"({i % 50}, 'v', 1.5)" for i in range(300))
        )
        yield made


def rows_of(tables: Sequence[pa.Table]) -> Counter[Row]:
    return Counter(tuple(r[c] for c in COLUMNS) for t in tables for r in t.to_pylist())


def applied(rows: Counter[Row], changes: pa.Table) -> None:
    """Each change takes away its whole old row and brings its new one."""
    for row in changes.to_pylist():
        if row["_op"] != Op.INSERT:
            assert row["_before"] is not None
            rows[tuple(row["_before"][c] for c in COLUMNS)] -= 1
        if row["_op"] != Op.DELETE:
            rows[tuple(row[c] for c in COLUMNS)] += 1


def source_rows(database: SqlDatabase) -> Counter[Row]:
    return Counter(tuple(r) for r in database.execute("SELECT a, b, c FROM t"))


def write(database: SqlDatabase, stop: threading.Event, wrote: threading.Event) -> None:
    number = 0
    with database.connect() as connection, connection.cursor() as cursor:
        while not stop.is_set():
            number += 1
            cursor.execute(
                f"INSERT INTO t VALUES ({number % 40}, 'w', 2), ({number % 40}, NULL, NULL)"
            )
            cursor.execute(f"UPDATE t SET c = coalesce(c, 0) + 1 WHERE a = {number % 7} LIMIT 2")
            cursor.execute(f"DELETE FROM t WHERE a = {number % 11} LIMIT 1")
            wrote.set()


def test_a_view_of_its_own_and_the_log_after_it_are_every_row_as_often_as_it_is_there(
    keyless: SqlDatabase,
) -> None:
    """Guards CORRECTNESS 19 without a key: nothing converges, so one change before or after the
    view too many is a row too many; and whole old rows, without which nobody knows which row an
    update meant."""
    stop, wrote = threading.Event(), threading.Event()
    writing = threading.Thread(target=write, args=(keyless, stop, wrote))
    with following(keyless, "t") as follower:
        (table,) = follower.tables
        assert table.full_before and not table.key
        read = ChunkReader(follower.params, "")
        writing.start()
        try:
            for _ in range(3):
                assert wrote.wait(60)
                point = follower.session.point_of(table, is_exact=False)
                chunks = follower.session.plan(table, rows_per_chunk=100)
                copied = pa.Table.from_batches(
                    [b for chunk in chunks for b in read(chunk, table)], table.arrow_schema()
                )
                wrote.clear()
            assert wrote.wait(60)
        finally:
            stop.set()
            writing.join()
        rows = rows_of([copied])
        for part in decoded(follower.blocks(), follower.tables)["t"]:
            later = pa.compute.greater_equal(part.column("_position"), point.position.ordinal)
            applied(rows, part.filter(later))
        assert +rows == source_rows(keyless)
        assert min(rows.values()) >= 0
        follower.session.close()


def test_a_lock_that_is_not_granted_is_refused_where_one_is_needed(
    keyless: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards against a view whose place in the log is only guessed."""
    monkeypatch.setattr(exact, "LOCK_SECONDS", 1)
    with following(keyless, "t") as follower, keyless.connect(autocommit=False) as other:
        (table,) = follower.tables
        with other.cursor() as cursor:
            cursor.execute("INSERT INTO t VALUES (1, 'open', 1)")
        if keyless.server.flavour == "mariadb":
            follower.session.point_of(table, is_exact=True)
        else:
            with pytest.raises(ReplicationError) as caught:
                follower.session.point_of(table, is_exact=True)
            assert caught.value.code == "source:lock-refused"
        follower.session.close()


def test_a_table_with_a_key_gets_a_view_of_its_own_where_that_is_asked_for(
    keyless: SqlDatabase,
) -> None:
    """Guards modes that keep every change: rows of their copy are those of one moment."""
    keyless.execute("CREATE TABLE k (a int PRIMARY KEY)", "INSERT INTO k VALUES (1)")
    with following(keyless, "k") as follower:
        (table,) = follower.tables
        read = ChunkReader(follower.params, "")
        assert follower.session.point_of(table, is_exact=False) == follower.session.point
        point = follower.session.point_of(table, is_exact=True)
        keyless.execute("INSERT INTO k VALUES (2)")
        (chunk,) = follower.session.plan(table, rows_per_chunk=100)
        assert [b.to_pydict() for b in read(chunk, table)] == [{"a": [1]}]
        (changes,) = decoded(follower.blocks(), follower.tables)["k"]
        assert min(changes["_position"].to_pylist()) >= point.position.ordinal
        follower.session.close()
        with pytest.raises(OSError, match="No such file"):
            list(read(chunk, table))
