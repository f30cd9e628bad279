"""Chunks that are read while rows change, and the log from the position before them, make every row equal."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from replicators.connectors.errors import ReplicationError
from replicators.sources.mysql.snapshot import ChunkReader
from runners.engine.fold import fold
from tests.integration.mysql_source import decoded, describe, following
from tests.mysql_servers import SqlDatabase, fresh_sql_database
from tests.mysql_world import ROWS, SHOP_TABLES, MysqlTraffic, make_shop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture(params=["mariadb", "mysql"])
def shop(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """A shop on each of the servers."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        make_shop(made)
        yield made


@pytest.fixture(params=["mariadb", "mysql"])
def database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """An empty database on each of the servers."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        yield made


def applied(rows: dict[Any, Any], folded: pa.Table, key: tuple[str, ...]) -> None:
    """What a MERGE does: deletes and upserts by key."""
    for row in folded.to_pylist():
        place = tuple(row[k] for k in key)
        if row["_delete"]:
            rows.pop(place, None)
        else:
            rows[place] = {k: v for k, v in row.items() if not k.startswith("_")}


def test_chunks_converge_with_the_log(shop: SqlDatabase) -> None:
    """Guards CORRECTNESS 19 (position first): read without a lock, under traffic, with keys that move between chunks."""
    traffic = MysqlTraffic(shop)
    with following(shop, *SHOP_TABLES) as follower:
        writing = threading.Thread(target=traffic.write, args=(60,))
        copies: list[dict[Any, Any]] = []
        read = ChunkReader(follower.params, "")
        chunk_counts = []
        writing.start()
        for table in follower.tables:
            rows: dict[Any, Any] = {}
            chunks = follower.session.plan(table, rows_per_chunk=ROWS // 10)
            chunk_counts.append(len(chunks))
            for chunk in chunks:
                for batch in read(chunk, table):
                    for row in batch.to_pylist():
                        rows[tuple(row[k] for k in table.key)] = row
            copies.append(rows)
        writing.join()
        changes = decoded(follower.blocks(), follower.tables)
        point = follower.session.point.position.value
        for number, table in enumerate(follower.tables):
            for part in changes[table.id.name]:
                later = part.filter(pa.compute.greater_equal(part.column("_position"), point))
                applied(copies[number], fold(later, table).rows, table.key)
            expected = follower.copy(number).to_pylist()
            found = list(copies[number].values())
            order = [repr(sorted(r.items(), key=lambda i: i[0])) for r in found]
            assert sorted(order) == sorted(
                repr(sorted(r.items(), key=lambda i: i[0])) for r in expected
            )
        assert min(chunk_counts) > 5


@pytest.mark.parametrize(
    "key",
    [
        "bigint unsigned",
        "varchar(30)",
        "binary(8)",
        "decimal(20,4)",
        "datetime(6)",
        "time(3)",
        "date",
        "uuid",
    ],
)
def test_chunks_of_any_key_cover_the_table_once(mariadb_database: SqlDatabase, key: str) -> None:
    """Guards the boundaries of chunks, whatever the key's type: nothing twice, nothing left out."""
    makes = {
        "bigint unsigned": "18446744073709551615 - i * 7919", "varchar(30)": "concat('k''\\\\', i % 7, left(md5(i), 20))",
        "binary(8)": "unhex(substr(md5(i), 1, 16))", "decimal(20,4)": "i / 16 - 20",
        "datetime(6)": "date_add('2024-01-01', interval i * 12345 microsecond)",
        "uuid": "concat(left(md5(i), 8), '-', substr(md5(i), 9, 4), '-4', substr(md5(i), 14, 3), '-8', substr(md5(i), 18, 3), '-', right(md5(i), 12))",
        "time(3)": "sec_to_time(i * 13.013 - 5000)", "date": "date_add('1900-01-01', interval i day)",
    }  # fmt: skip
    mariadb_database.execute(
        f"CREATE TABLE t (k {key}, part int, PRIMARY KEY (k, part))",
        f"INSERT INTO t WITH RECURSIVE g AS (SELECT 1 i UNION ALL SELECT i + 1 FROM g WHERE i < 900)"
        f" SELECT {makes[key]}, i % 3 FROM g",
        "ANALYZE TABLE t",
    )
    with following(mariadb_database, "t") as follower:
        (table,) = describe(mariadb_database, "t")
        chunks = follower.session.plan(table, rows_per_chunk=100)
        assert len(chunks) >= 9
        copied = follower.copy(rows_per_chunk=100)
        assert copied.num_rows == 900
        assert len({tuple(r.values()) for r in copied.to_pylist()}) == 900


@pytest.mark.parametrize("kind", ["enum('z','m','a','')", "set('z','m','a')"])
def test_chunks_follow_the_servers_order_of_labels(database: SqlDatabase, kind: str) -> None:
    """Guards keys that sort by the place of a label and compare as text: chunks would overlap and leave rows out."""
    value = "elt(1 + i % 4, 'z', 'm', 'a', '')" if kind.startswith("enum") else "i % 8"
    database.execute(
        f"CREATE TABLE t (k {kind}, n int, PRIMARY KEY (k, n))",
        f"INSERT INTO t WITH RECURSIVE g AS (SELECT 1 i UNION ALL SELECT i + 1 FROM g WHERE i < 900)"
        f" SELECT {value}, i FROM g",
        "ANALYZE TABLE t",
    )
    with following(database, "t") as follower:
        assert len(follower.session.plan(follower.tables[0], rows_per_chunk=70)) >= 9
        copied = follower.copy(rows_per_chunk=70)
        assert sorted(copied["n"].to_pylist()) == list(range(1, 901))


def test_a_table_without_a_key_is_refused(mariadb_database: SqlDatabase) -> None:
    """Guards CORRECTNESS 19: without a key nothing converges."""
    mariadb_database.execute("CREATE TABLE t (a int)")
    with following(mariadb_database, "t") as follower, pytest.raises(ReplicationError) as caught:
        follower.copy()
    assert caught.value.code == "source:key-needed"
