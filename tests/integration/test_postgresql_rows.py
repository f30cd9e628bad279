"""Rows read by key: the rows that are there, in the values the snapshot gives, with a position that
covers them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.postgresql.rows import RowReader
from tests.integration.postgresql_source import begin, describe, params_of, snapshot
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

KEYS = {
    "bigint": ["-5", "9223372036854775807"],
    "text": ["'it''s'", "'back\\slash \"q\" é🙂'", "''"],
    "uuid": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
    "timestamptz": ["'2024-02-29 23:59:59.999999+05:30'"],
    "timestamp": ["'1969-12-31 23:59:59.999'"],
    "date": ["'0001-01-01'", "'2024-02-29'"],
    "time": ["'23:59:59.999999'"],
    "numeric(12,2)": ["-1.50", "0"],
    "bytea": ["'\\x00ff'"],
    "boolean": ["true", "false"],
    "mood": ["'very ok'"],
    "float8": ["0.1", "1e-300"],
}


@pytest.mark.parametrize("native", KEYS)
def test_every_type_of_key_is_found(database: Database, native: str) -> None:
    """Guards `sql.any_key`, whose literals take their column's type, and `select_list` (CORRECTNESS
    9): a key printed otherwise finds nothing, and its row would count as gone."""
    database.execute("CREATE TYPE mood AS ENUM ('sad', 'very ok')")
    database.execute(f"CREATE TABLE keyed (part int, k {native}, v text, PRIMARY KEY (part, k))")
    database.execute(f"CREATE TABLE single (k {native} PRIMARY KEY, v text)")
    for value in KEYS[native]:
        database.execute(f"INSERT INTO keyed VALUES (1, {value}, 'v')")  # noqa: S608
        database.execute(f"INSERT INTO single VALUES ({value}, 'v')")  # noqa: S608
    for table in describe(database, "keyed", "single"):
        reader, session = begin(database, f"rows_{table.id.name}", [table])
        with reader, session:
            whole = snapshot(session, database, table)
        with RowReader(params_of(database)) as rows:
            found, _ = rows.read(table, whole.select(list(table.key)))
        assert found.schema == table.arrow_schema()
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, whole.to_pylist()))


def test_rows_that_are_gone_are_left_out_and_the_position_covers_what_was_read(
    database: Database,
) -> None:
    """Guards ONLY in `RowReader.read`, which leaves out the rows of tables that inherit, the
    portions of many keys, and the end of the server's log as position; a table that is gone is no
    empty answer."""
    database.execute("CREATE TABLE parted (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)")
    database.execute("CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (5000)")
    database.execute("INSERT INTO parted SELECT i, 'v' || i FROM generate_series(1, 2500) i")
    database.execute("CREATE TABLE plain (id int PRIMARY KEY, v text)")
    database.execute("CREATE TABLE child () INHERITS (plain)")
    database.execute("INSERT INTO plain VALUES (1, 'own'); INSERT INTO child VALUES (2, 'other')")
    parted, plain = describe(database, "parted", "plain")
    with RowReader(params_of(database)) as rows:
        keys = pa.table({"id": pa.array(range(2000, 4000), pa.int32())})
        found, first = rows.read(parted, keys)
        assert sorted(found.column("id").to_pylist()) == list(range(2000, 2501))
        found, _ = rows.read(plain, pa.table({"id": pa.array([1, 2], pa.int32())}))
        assert found.to_pylist() == [{"id": 1, "v": "own"}]
        database.execute("UPDATE parted SET v = 'new' WHERE id = 2000")
        end = int(database.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")[0][0])
        found, second = rows.read(parted, pa.table({"id": pa.array([2000], pa.int32())}))
        assert found.to_pylist() == [{"id": 2000, "v": "new"}]
        assert first < end <= second
        database.execute("DROP TABLE parted")
        with pytest.raises(ReplicationError) as caught:
            rows.read(parted, keys)
        assert caught.value.code == "source:table-missing"


def test_the_position_covers_a_change_that_only_the_last_rows_show(database: Database) -> None:
    """Guards the order in `RowReader.read`: the log's end is asked after the rows. Asked before
    them, it would not cover a commit in between, which rows of a later query show already: they
    would be taken for older than they are."""
    database.execute("CREATE TABLE busy (id int PRIMARY KEY, v text)")
    database.execute("INSERT INTO busy SELECT i, 'v' FROM generate_series(1, 2000) i")
    (table,) = describe(database, "busy")
    keys = pa.table({"id": pa.array(range(1, 2001), pa.int32())})
    with ThreadPoolExecutor(1) as pool, RowReader(params_of(database)) as rows:
        with database.connect() as writer, writer.transaction():
            writer.execute("LOCK TABLE busy")
            reading = pool.submit(rows.read, table, keys)
            until_waiting(database, "busy")
            writer.execute("UPDATE busy SET v = 'new' WHERE id = 2000")
            end = writer.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").fetchone()
        found, position = reading.result(30)
    assert found.filter(pc.equal(found["id"], 2000))["v"].to_pylist() == ["new"]
    assert end is not None
    assert position > end[0]


def until_waiting(database: Database, table: str) -> None:
    """Poll until somebody waits for a lock of the table."""
    waiting = f"SELECT 1 FROM pg_locks WHERE relation = '{table}'::regclass AND NOT granted"  # noqa: S608
    deadline = time.monotonic() + 30
    while not database.execute(waiting):
        assert time.monotonic() < deadline, "nobody waits"


def make_hidden(database: Database) -> None:
    database.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.docs (id int PRIMARY KEY, n int, big text)"
    )
    database.execute("ALTER TABLE shop.docs ALTER big SET STORAGE EXTERNAL")
    database.execute(
        "INSERT INTO shop.docs SELECT i, 0, repeat(md5(i::text), 200) FROM generate_series(1, 20) i"
    )


def hide(database: Database) -> None:
    """Insert two rows that the log does not carry: the table is out of the publication for a moment
    that nobody can see."""
    with database.connect() as connection, connection.transaction():
        rows = connection.execute("SELECT pubname FROM pg_publication WHERE pubname ~ '_full$'")
        ((publication,),) = rows.fetchall()
        connection.execute(f"ALTER PUBLICATION {publication} DROP TABLE shop.docs")
        connection.execute(
            "INSERT INTO shop.docs SELECT i, 0, repeat(md5(i::text), 200) FROM "
            "generate_series(21, 22) i"
        )
        connection.execute(f"ALTER PUBLICATION {publication} ADD TABLE ONLY shop.docs")


def test_a_row_that_only_the_source_has_arrives_whole_with_its_next_update(
    twin_maker: MakeWorld,
) -> None:
    """Guards CORRECTNESS 9's last resort in a whole run: two rows are not in the copy; their
    updates do not carry the long column. NULL there would be a silent loss."""
    with twin_maker(prepare=make_hidden, tables=("docs",)) as world:
        world.start()
        world.until_states("replicating", "docs")
        hide(world.database)
        assert len(world.differences("docs")) >= 1, "nothing was hidden from the copy"
        world.database.execute("UPDATE shop.docs SET n = n + 1 WHERE id IN (4, 21)")
        world.database.execute("UPDATE shop.docs SET id = 60, n = 7 WHERE id = 22")
        world.assert_equal()
        world.until(lambda: "Read rows at the source" in world.log_text(), "it is said")
        assert world.stop() == 0
