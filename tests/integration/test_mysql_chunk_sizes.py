"""Chunks of tables whose rows are not alike, or whose statistics are old: how many bytes and rows
each of them holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from replicators.sources.mysql import lengths, snapshot
from replicators.sources.mysql.snapshot import ChunkReader
from tests.integration.mysql_source import Follower, following
from tests.mysql_servers import SqlDatabase, fresh_sql_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
LIMIT = 256 << 10
LONG_BYTES = 24 << 10
KEYS = {"int": "i", "varchar(20)": "concat('k', lpad(i, 6, '0'))"}


@pytest.fixture(params=["mariadb", "mysql"])
def database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """An empty database on each of the servers."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        yield made


def fill(database: SqlDatabase, key: str, first: int, last: int, value: str) -> None:
    """Rows with keys of that type."""
    database.execute(
        f"INSERT INTO t WITH RECURSIVE g AS (SELECT {first} i UNION ALL SELECT i + 1 FROM g "
        f"WHERE i < {last})"
        f" SELECT {KEYS[key]}, i, {value} FROM g"
    )


def chunks_of(follower: Follower, rows_per_chunk: int) -> list[tuple[int, int, list[int]]]:
    """Of each chunk: the estimate of its rows, its bytes, and the numbers of its rows."""
    (table,) = follower.tables
    read = ChunkReader(follower.params, "")
    found = []
    for chunk in follower.session.plan(table, rows_per_chunk=rows_per_chunk):
        rows = [r for batch in read(chunk, table) for r in batch.to_pylist()]
        size = sum(len(r["v"] or b"") + 2 * lengths.NUMBER_BYTES for r in rows)
        found.append((chunk.rows_estimated, size, [r["n"] for r in rows]))
    return found


@pytest.mark.long_with("mysql")
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("is_measured", [True, False])
def test_chunks_are_cut_by_the_bytes_that_their_rows_have(
    database: SqlDatabase, key: str, is_measured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards against a task that reads gigabytes since the table's average row is short; fails
    where parts are not measured. Where there is no time to sum up a part, the rows at its ends
    tell."""
    monkeypatch.setattr(snapshot, "CHUNK_BYTES", LIMIT)
    monkeypatch.setattr(lengths, "LEAST_SECONDS", 60.0 if is_measured else 0.0)
    monkeypatch.setattr(lengths, "MOST_SECONDS", 60.0 if is_measured else 0.0)
    database.execute(f"CREATE TABLE t (k {key}, n int, v longblob, PRIMARY KEY (k))")
    fill(database, key, 1, 1000, "'s'")
    fill(database, key, 1001, 1100, f"repeat('v', {LONG_BYTES})")
    database.execute("ANALYZE TABLE t")
    with following(database, "t") as follower:
        chunks = chunks_of(follower, 250_000)
    assert max(size for _, size, _ in chunks) <= LIMIT * (1.25 if is_measured else 1.5)
    assert sorted(n for _, _, numbers in chunks for n in numbers) == list(range(1, 1101))
    if is_measured:
        assert len(chunks) <= 1.5 * 100 * LONG_BYTES / LIMIT
        assert all(estimate == len(numbers) for estimate, _, numbers in chunks)


def test_rows_that_can_not_be_long_are_not_measured(
    database: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the start of a copy of millions of narrow rows: nothing is summed up there."""
    asked: list[str] = []
    monkeypatch.setattr(lengths, "query", lambda _connection, text: asked.append(text))
    database.execute("CREATE TABLE t (k int PRIMARY KEY, n int, v varbinary(80))")
    fill(database, "int", 1, 1000, "'s'")
    database.execute("ANALYZE TABLE t")
    with following(database, "t") as follower:
        assert len(chunks_of(follower, 100)) >= 8
    assert asked == []


@pytest.mark.long_with("mysql")
@pytest.mark.parametrize("key", KEYS)
def test_a_table_whose_statistics_are_old_is_cut_all_the_same(
    database: SqlDatabase, key: str
) -> None:
    """Guards against one chunk of the whole table after a load that the server has not counted yet;
    fails where its estimate is believed."""
    database.execute(
        f"CREATE TABLE t (k {key}, n int, v longblob, PRIMARY KEY (k)) STATS_AUTO_RECALC = 0",
        "ANALYZE TABLE t",
    )
    fill(database, key, 1, 1000, "'s'")
    # As after a restart: what was written since is not counted.
    database.execute("FLUSH TABLES t")
    with following(database, "t") as follower:
        chunks = chunks_of(follower, 100)
    assert max(len(numbers) for _, _, numbers in chunks) <= 125
    assert sorted(n for _, _, numbers in chunks for n in numbers) == list(range(1, 1001))
