"""Chunks that are read while rows change, and the log from the position before them, make every row
equal."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.mysql.snapshot import ChunkReader, SnapshotSession
from runners.engine.fold.mirror import fold
from tests.integration.mysql_source import NAME, decoded, describe, following, params_of
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
    """Guards CORRECTNESS 19 (position first): read without a lock, under traffic, with keys that
    move between chunks."""
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
        point = follower.session.point.position.ordinal
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


HEX = "left(sha2(i, 256), 32)"
DASHED = (
    f"concat(left({HEX}, 8), '-', substr({HEX}, 9, 4), '-4', substr({HEX}, 14, 3), '-8', "
    f"substr({HEX}, 18, 3),"
    f" '-', right({HEX}, 12))"
)
MIXED = (
    "concat(elt(1 + i % 4, '', 'E', 'É', 'e'), elt(1 + i % 3, '', '''', '\\\\'), lpad(i, 4, "
    "'0'), elt(1 + i % 2, '', '  '))"
)
KEYS = {
    "bigint unsigned": "18446744073709551615 - i * 7919",
    "bigint": "(i - 150) * 46116860184273879",
    "int": "-2147483648 + i * i",
    "smallint unsigned, part int": "i % 7, i",
    "bit(40)": "i * 2147483",
    "float": "16777216 + i * 2",
    "double": "i / 7 - 20",
    "decimal(20,4)": "i / 16 - 20",
    "decimal(60,2)": "concat(repeat('9', 40), i, '.5')",
    "year, part int": "1901 + i % 150, i",
    "varchar(40)": MIXED,
    "char(40) COLLATE utf8mb4_general_ci": MIXED,
    "varchar(40) COLLATE utf8mb4_general_ci": MIXED,
    "varchar(40) COLLATE utf8mb4_bin": MIXED,
    "varchar(40) CHARACTER SET latin1": MIXED,
    "char(36)": DASHED,
    "binary(16)": f"unhex({HEX})",
    "varbinary(20)": f"concat(char(i % 256), unhex(left({HEX}, 2 * (2 + i % 10))))",
    "varchar(9), part int": "elt(1 + i % 3, 'a', 'B', 'ä '), i",
    "int, part varchar(40)": f"i % 5, {HEX}",
    "datetime(6)": "date_add('2024-01-01', interval i * 12345 microsecond)",
    "timestamp(3)": "date_add('2024-01-01', interval i * 12345000 microsecond)",
    "time(3)": "sec_to_time(i * 13.013 - 2000)",
    "date": "date_add('1900-01-01', interval i day)",
}
OF_MARIADB = {"uuid": DASHED, "inet6": f"concat('fe80::', right({HEX}, 4), ':', i)"}
KEY_ROWS = 300


@pytest.mark.long_with("mysql")
def test_chunks_of_any_key_cover_the_table_once(database: SqlDatabase) -> None:
    """Guards the boundaries of chunks, whatever the key's type, collation and length: nothing
    twice, nothing left out; fails where an end is compared otherwise than the server sorts it."""
    keys = KEYS | (OF_MARIADB if database.server.flavour == "mariadb" else {})
    names = {f"t{number}": key for number, key in enumerate(keys)}
    for name, key in names.items():
        database.execute(
            f"CREATE TABLE {name} (k {key}, n int, PRIMARY KEY "
            f"({'k, part' if ', part' in key else 'k'}))",
            f"INSERT INTO {name} WITH RECURSIVE g AS (SELECT 1 i UNION ALL SELECT i + 1 FROM g"
            f" WHERE i < {KEY_ROWS}) SELECT {keys[key]}, i FROM g",
            f"ANALYZE TABLE {name}",
        )
    params = params_of(database)
    read = ChunkReader(params, "")
    with SnapshotSession(params, NAME) as session:
        for table in describe(database, *names):
            chunks = session.plan(table, rows_per_chunk=KEY_ROWS // 15)
            copied = [b for chunk in chunks for b in read(chunk, table)]
            found = sorted(n for batch in copied for n in batch["n"].to_pylist())
            assert len(chunks) >= 6, names[table.id.name]
            assert found == list(range(1, KEY_ROWS + 1)), names[table.id.name]


@pytest.mark.parametrize("kind", ["enum('z','m','a','')", "set('z','m','a')"])
def test_chunks_follow_the_servers_order_of_labels(database: SqlDatabase, kind: str) -> None:
    """Guards keys that sort by the place of a label and compare as text: chunks would overlap and
    leave rows out."""
    value = "elt(1 + i % 4, 'z', 'm', 'a', '')" if kind.startswith("enum") else "i % 8"
    database.execute(
        f"CREATE TABLE t (k {kind}, n int, PRIMARY KEY (k, n))",
        "INSERT INTO t WITH RECURSIVE g AS (SELECT 1 i UNION ALL SELECT i + 1 FROM g WHERE i < "
        "900)"
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
