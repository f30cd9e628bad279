"""Copies into PostgreSQL: written by tasks, published with what hangs on the old table, and with
PostgreSQL's own types."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from demo.postgres import EmbeddedPostgres
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql.target import SqlMergeTarget
from replicators.connectors.target import DirectCopy, SnapshotPlace, TargetTable
from replicators.targets.postgresql.checks import PostgresqlTargetChecks
from tests.crash.test_snapshot_resume import TROUBLE, kill_in_the_middle
from tests.harness import Traffic, make_shop
from tests.postgres_target import ROLE, writer_of, writer_params
from tests.postgres_target_world import PostgresTargetWorld
from tests.servers import Database, fresh_database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
SCHEMA = TableSchema(
    TableId("shop", "orders"),
    (
        Column("id", Int(64), "bigint", nullable=False, ordinal=1),
        Column("note", String(), "text", ordinal=2),
    ),
    ("id",),
    ("id",),
)
TABLE = TargetTable(SCHEMA.id, "r1", 1)


@pytest.fixture
def target(database: Database, tmp_path: Path) -> Iterator[SqlMergeTarget]:
    made = writer_of(writer_params(database), tmp_path)
    yield made
    made.close()


def rows_of(*values: tuple[int, str]) -> Iterator[pa.Table]:
    yield pa.Table.from_pylist([{"id": i, "note": n} for i, n in values], SCHEMA.arrow_schema())


def direct_of(place: SnapshotPlace | None) -> DirectCopy:
    """The place's writer as a task gets it."""
    assert place is not None and place.direct is not None
    found: DirectCopy = pickle.loads(pickle.dumps(place.direct))
    return found


def copied(target: SqlMergeTarget, table: TargetTable, *values: tuple[int, str]) -> None:
    """Publish a copy of these rows."""
    target.begin_snapshot(table, SCHEMA)
    place = target.snapshot_place(table, SCHEMA)
    direct_of(place).write(0, rows_of(*values))
    target.load_snapshot_files(table, SCHEMA, [place.portion_path(0)])
    target.publish_snapshot(table, SCHEMA, 10 * table.generation)


def there(database: Database) -> list[Any]:
    return database.execute("SELECT id, note FROM shop.orders ORDER BY id")


# --- portions -------------------------------------------------------------------------------------


def test_a_portion_that_is_written_again_replaces_the_earlier_try(
    target: SqlMergeTarget, database: Database
) -> None:
    """Guards `Portions.write` and `keep`: a task whose commit was not reported runs again, and a
    portion that no list of the engine names was of a try that is over. Either would double rows."""
    target.begin_snapshot(TABLE, SCHEMA)
    place = target.snapshot_place(TABLE, SCHEMA)
    direct = direct_of(place)
    assert direct.write(0, rows_of((1, "old"), (2, "old"))) == 2
    assert direct.write(1, rows_of((3, "stays"))) == 1
    assert direct.write(2, rows_of((4, "nobody knows of it"))) == 1
    assert direct.write(0, rows_of((1, "new"))) == 1
    assert direct.rows() == {0: 1, 1: 1, 2: 1}
    paths = [place.portion_path(n) for n in (0, 1)]
    target.load_snapshot_files(TABLE, SCHEMA, paths)
    target.publish_snapshot(TABLE, SCHEMA, 10)
    assert there(database) == [(1, "new"), (3, "stays")]
    left = database.execute("SELECT relname FROM pg_class WHERE relname LIKE '%_portions'")
    assert left == []


def test_a_failed_portion_leaves_nothing_and_an_earlier_process_can_not_write(
    target: SqlMergeTarget, database: Database, tmp_path: Path
) -> None:
    """Guards the holder of a copy: a process that was thought dead would replace a portion that its
    successor read later."""
    target.begin_snapshot(TABLE, SCHEMA)
    place = target.snapshot_place(TABLE, SCHEMA)
    first = direct_of(place)

    def cut_off() -> Iterator[pa.Table]:
        yield from rows_of((1, "half"))
        raise RuntimeError("the source is gone")

    with pytest.raises(RuntimeError):
        first.write(0, cut_off())
    assert first.rows() == {}
    first.write(0, rows_of((1, "a"), (2, "b"), (3, "c")))
    other = writer_of(writer_params(database), tmp_path)
    again = direct_of(other.snapshot_place_again(TABLE, SCHEMA, place.folder))
    assert again.rows() == {0: 3}
    with pytest.raises(ReplicationError) as caught:
        first.write(0, rows_of((1, "late")))
    assert caught.value.code == "target:conflict"
    assert again.remove(pa.table({"id": [2, 7]})) == 1
    again.write(1, rows_of((2, "as it is now")))
    other.load_snapshot_files(TABLE, SCHEMA, [place.portion_path(n) for n in (0, 1)])
    other.publish_snapshot(TABLE, SCHEMA, 10)
    assert there(database) == [(1, "a"), (2, "as it is now"), (3, "c")]
    other.close()


def test_a_killed_copy_goes_on_in_the_target(
    world_maker: MakeWorld, postgres: EmbeddedPostgres
) -> None:
    """Guards CORRECTNESS 17 for copies without files: portions that were committed stay, and rows
    that changed meanwhile are read again."""
    with (
        fresh_database(postgres) as copies,
        world_maker(
            prepare=lambda d: make_shop(d, 3000), kind=PostgresTargetWorld, copies=copies
        ) as world,
    ):
        traffic = Traffic(world.database, seed=3)
        first = kill_in_the_middle(world)
        for statement in TROUBLE:
            world.database.execute(statement)
        traffic.write(20)
        second = kill_in_the_middle(world)
        assert {c.path for c in first} < {c.path for c in second}
        world.start()
        world.assert_equal()
        assert "chunks were copied before" in world.log_text()
        traffic.write(20)
        world.assert_equal()
        assert world.stop() == 0
        assert world.left_over("items") == set()


# --- publishing -----------------------------------------------------------------------------------

HANGING = """
GRANT USAGE ON SCHEMA shop TO hanging_reader;
GRANT SELECT ON shop.orders TO hanging_reader WITH GRANT OPTION;
GRANT UPDATE (note) ON shop.orders TO hanging_reader;
COMMENT ON TABLE shop.orders IS 'it''s "all" orders: 100%';
COMMENT ON COLUMN shop.orders.note IS 'a note';
CREATE INDEX "by note USING it" ON shop.orders (lower(note)) WHERE id > 0;
ALTER TABLE shop.orders ADD CONSTRAINT positive CHECK (id > 0);
ALTER TABLE shop.orders ADD CONSTRAINT short CHECK (length(note) < 2);
ALTER TABLE shop.orders ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON shop.orders FOR SELECT TO hanging_reader USING (note <> 'hidden');
CREATE VIEW shop.notes WITH (security_barrier = true) AS SELECT note FROM shop.orders;
CREATE VIEW shop.counted AS SELECT count(*) AS n FROM shop.notes;
GRANT SELECT ON shop.notes TO hanging_reader;
CREATE PUBLICATION hanging FOR TABLE shop.orders;
"""
SEEN = {
    "grants": "SELECT relacl::text FROM pg_class WHERE oid = 'shop.orders'::regclass",
    "columns": "SELECT attacl::text, col_description(attrelid, attnum) FROM pg_attribute"
    " WHERE attrelid = 'shop.orders'::regclass AND attname = 'note'",
    "comment": "SELECT obj_description('shop.orders'::regclass)",
    "index": "SELECT indexdef FROM pg_indexes WHERE indexname LIKE 'by note%'",
    "policy": "SELECT * FROM pg_policies WHERE tablename = 'orders'",
    "security": "SELECT relrowsecurity FROM pg_class WHERE oid = 'shop.orders'::regclass",
    "view": "SELECT relacl::text, reloptions, pg_get_viewdef(oid) FROM pg_class"
    " WHERE oid = 'shop.notes'::regclass",
    "published": "SELECT * FROM pg_publication_tables WHERE pubname = 'hanging'",
    "key": "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE conrelid = 'shop.orders'::regclass AND contype = 'p'",
}


@pytest.fixture
def reader(database: Database) -> Iterator[None]:
    database.execute("CREATE ROLE hanging_reader")
    yield
    database.execute("DROP OWNED BY hanging_reader CASCADE")
    database.execute("DROP ROLE hanging_reader")


def test_what_hangs_on_a_table_survives_a_re_sync(
    target: SqlMergeTarget, database: Database, reader: None
) -> None:
    """Guards `publishing._replace`: a table that comes in another one's place has none of this by
    itself, and readers would lose their rights, or a view its table."""
    copied(target, TABLE, (1, "a"), (2, "hidden"))
    with database.connect() as connection:
        connection.execute(f"SET ROLE {ROLE}")
        connection.execute(HANGING.split("CREATE PUBLICATION")[0].replace("< 2", "< 9"))
        connection.execute("RESET ROLE")
        connection.execute("CREATE PUBLICATION hanging FOR TABLE shop.orders")
        connection.execute(f"ALTER PUBLICATION hanging OWNER TO {ROLE}")
    before = {what: database.execute(query) for what, query in SEEN.items()}
    old = database.execute("SELECT 'shop.orders'::regclass::oid")
    copied(target, replace(TABLE, generation=2), (1, "a"), (3, "a longer note"))
    assert database.execute("SELECT 'shop.orders'::regclass::oid") != old
    assert {what: database.execute(query) for what, query in SEEN.items()} == before
    assert database.execute("SELECT n FROM shop.counted") == [(2,)]
    kept = "SELECT conname FROM pg_constraint WHERE conrelid = 'shop.orders'::regclass"
    assert {n for (n,) in database.execute(f"{kept} AND contype = 'c'")} == {"positive"}


def test_a_table_that_can_not_be_replaced_stays_and_gets_the_new_rows(
    target: SqlMergeTarget, database: Database
) -> None:
    """Guards `publishing._fill`: a foreign key from another table, or a materialised view, can't be
    put on another table."""
    copied(target, TABLE, (1, "a"), (2, "b"))
    database.execute("CREATE MATERIALIZED VIEW shop.m AS SELECT * FROM shop.orders")
    with PostgresqlTargetChecks(writer_params(database)) as checks:
        found = {p.code: p.message.text for p in checks.tables([SCHEMA], "r1")}
    assert "materialized view" in found["target:postgresql-bound"]
    old = database.execute("SELECT 'shop.orders'::regclass::oid")
    copied(target, replace(TABLE, generation=2), (1, "new"), (3, "c"))
    assert there(database) == [(1, "new"), (3, "c")]
    assert database.execute("SELECT 'shop.orders'::regclass::oid") == old
    database.execute("REFRESH MATERIALIZED VIEW shop.m")
    token = target.token(replace(TABLE, generation=2))
    assert token is not None and token.sequence == 20


# --- PostgreSQL's own types -----------------------------------------------------------------------

NATIVES = {
    "jsonb": ['\'{"a": [1, 2.50], "ä": null}\'', "'\"x\"'"],
    "json": ['\'{"b":1,  "b":2}\''],
    "uuid": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
    "shop.mood": ["'ok'", "'it''s \"fine\"'"],
    "shop.mood[]": ["ARRAY['ok', NULL]::shop.mood[]", "'{}'"],
    "shop.positive": ["7"],
    "uuid[]": ["ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']::uuid[]"],
    "numeric": ["'NaN'", "'-Infinity'", "123456789012345678901234567890123456789012345.000100"],
    "numeric(50,4)": ["1.5"],
    "numeric[]": ["ARRAY[1.10, NULL, 'NaN']::numeric[]"],
    "interval": ["'1 year 2 mons 3 days 04:05:06.789'", "'-1 day'"],
    "interval day to second(3)": ["'3 days 00:00:01.234'"],
    "inet": ["'10.1.2.3/24'", "'::1'"],
    "cidr": ["'10.0.0.0/8'"],
    "macaddr": ["'08:00:2b:01:02:03'"],
    "macaddr8": ["'08:00:2b:01:02:03:04:05'"],
    "int4range": ["'[1,5)'", "'empty'"],
    "tstzrange": ["'[2020-01-01 00:00+00,)'"],
    "datemultirange": ["'{[2020-01-01,2020-02-01)}'"],
    "tsvector": ["'a:1 ''b c'':2'"],
    "tsquery": ["'a & !b'"],
    "bit(5)": ["B'10110'"],
    "bit varying(7)": ["B'101'"],
    "timetz": ["'01:02:03.5+05:30'"],
    "money": ["'12.34'"],
    "xml": [],  # not every server can read a value
    "point": ["'(1.5,-2)'"],
    "polygon": ["'((0,0),(1,1),(1,0))'"],
    "pg_lsn": ["'16/B374D848'"],
    '"char"': ["'x'"],
    "citext": ["'MiXed'"],
    "hstore": ["'a=>1, b=>NULL'"],
    "bytea": ["'\\x00ff'"],
    "real": ["'NaN'", "'-Infinity'", "0.1"],
    "double precision[]": ["ARRAY[0.1, 'Infinity']::float8[]"],
    "text": ["E'tab\\tline\\nback\\\\slash \\\\N'", "''"],
    "date": ["'0001-01-01'", "'9999-12-31'"],
    "timestamptz": ["'2020-02-29 23:59:59.999999+00'"],
    "time": ["'23:59:59.999999'"],
    "boolean": ["true"],
}
"""Types of PostgreSQL, with values to keep. Each is a column with NULL too."""
EXTENSIONS = ("citext", "hstore")


def make_extensions(database: Database) -> None:
    """Not every test server has them."""
    for (name,) in database.execute("SELECT name FROM pg_available_extensions"):
        if name in EXTENSIONS:
            database.execute(f"CREATE EXTENSION {name}")


def natives(database: Database) -> dict[str, list[str]]:
    found = {n for (n,) in database.execute("SELECT extname FROM pg_extension")}
    return {k: v for k, v in NATIVES.items() if k not in EXTENSIONS or k in found}


def make_natives(database: Database) -> None:
    database.execute("CREATE SCHEMA shop")
    make_extensions(database)
    database.execute("CREATE TYPE shop.mood AS ENUM ('ok', 'it''s \"fine\"')")
    database.execute("CREATE DOMAIN shop.positive AS int CHECK (VALUE > 0)")
    columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(natives(database)))
    database.execute(f"CREATE TABLE shop.natives (id int PRIMARY KEY, {columns})")
    database.execute("INSERT INTO shop.natives (id) VALUES (0)")
    write_natives(database, 1)


def write_natives(database: Database, first: int) -> None:
    """Rows from this id on; each has a value for all columns that have so many."""
    kinds = natives(database).values()
    for number in range(max(map(len, kinds))):
        given = {f"c{at}": v[number] for at, v in enumerate(kinds) if number < len(v)}
        names, values = ", ".join(given), ", ".join(given.values())
        database.execute(
            f"INSERT INTO shop.natives (id, {names}) VALUES ({first + number}, {values})"
        )


def texts(database: Database) -> list[Any]:
    columns = ", ".join(f"c{at}::text" for at in range(len(natives(database))))
    return database.execute(f"SELECT id, {columns} FROM shop.natives ORDER BY id")


def types(database: Database) -> list[str]:
    found = database.execute(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'shop.natives'::regclass AND attnum > 1 ORDER BY attnum"
    )
    return [kind for (kind,) in found]


def test_types_of_postgresql_stay_what_they_are(
    world_maker: MakeWorld, postgres: EmbeddedPostgres
) -> None:
    """Guards `fit_column` and both forms of a COPY: by snapshot and by log, each value is the same
    text on both sides, and the types are the source's. A label that is added later is there too."""
    with fresh_database(postgres) as copies:
        make_extensions(copies)
        with world_maker(
            prepare=make_natives, tables=("natives",), kind=PostgresTargetWorld, copies=copies
        ) as world:
            world.start()
            world.settle()
            assert texts(copies) == texts(world.database)
            world.database.execute("ALTER TYPE shop.mood ADD VALUE 'new' BEFORE 'ok'")
            write_natives(world.database, 100)
            world.database.execute("UPDATE shop.natives SET c3 = 'new' WHERE id < 100")
            world.database.execute("DELETE FROM shop.natives WHERE id = 1")
            world.settle()
            assert texts(copies) == texts(world.database)
            assert world.stop() == 0
            changed = [
                (wanted, found)
                for wanted, found in zip(types(world.database), types(copies), strict=True)
                if wanted != found
            ]
            assert changed == [("shop.positive", "integer"), ('"char"', "text")]
            order = "SELECT enum_range(NULL::shop.mood)::text"
            assert len(copies.execute(order)[0][0]) == len(world.database.execute(order)[0][0])


def test_a_type_that_the_target_lacks_is_told_before(database: Database) -> None:
    """Guards `checks._extensions`: the assessment says `citext` by the source's type alone."""
    columns = (*SCHEMA.columns, Column("c", String(), "public.citext", ordinal=3))
    with PostgresqlTargetChecks(writer_params(database)) as checks:
        found = checks.tables([replace(SCHEMA, columns=columns)], "r1")
    told = [(p.code, p.column) for p in found]
    assert told == [("target:postgresql-extension", "c")]
