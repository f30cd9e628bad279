"""Snapshots against a real server: chunks cover a table once, in one view, with the values the log
gives."""

from __future__ import annotations

import pickle

import pytest

from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.postgresql import slots
from replicators.sources.postgresql import snapshot as snapshot_module
from replicators.sources.postgresql.log import LogControl
from replicators.sources.postgresql.snapshot import ChunkReader, snapshot_again
from tests.integration.postgresql_source import (
    begin,
    changes,
    describe,
    params_of,
    read_all,
    snapshot,
)
from tests.servers import Database

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(120),
    pytest.mark.oldest_postgresql(is_long=True),
]
SLOT = "r_snap"

COLUMNS = {
    "flag boolean": "true",
    "small smallint": "-7",
    "whole int": "2147483647",
    "big bigint": "-9223372036854775808",
    "exact numeric(12,2)": "-1234567890.12",
    "wide numeric(38,10)": "1234567890123456789012345678.0123456789",
    "loose numeric": "1e40",
    "single real": "0.1",
    "double double precision": "1e-300",
    "note text": "'zwölf 🐘 \\ \"quoted\"'",
    "short varchar(5)": "'abc'",
    "padded char(5)": "'ab'",
    "label name": "'a name'",
    "at timestamptz": "'2024-02-29 23:59:59.999999+05:30'",
    "wall timestamp(3)": "'1969-12-31 23:59:59.999'",
    "day date": "'0001-01-01'",
    "clock time": "'23:59:59.999999'",
    "doc json": '\'{"b":  1, "a": [null]}\'',
    "docb jsonb": '\'{"b":  1, "a": [null, 1.50]}\'',
    "ident uuid": "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
    "raw bytea": "'\\x00ff10'",
    "mood mood": "'very ok'",
    "price money_like": "12.50",
    "ints int[]": "array[1, null, 3]",
    "texts text[]": "array['a', null, '', '\"x\"', 'null']",
    "exacts numeric(6,2)[]": "array[1.5, null, -0.01]",
    "days date[]": "array['2024-02-29'::date]",
    "idents uuid[]": "array['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid]",
    "moods mood[]": "array['sad'::mood, null]",
    "paddeds char(5)[]": "array['ab', null, ' c ']",
    "code code": "'ab'",
    "codes code[]": "array['ab'::code]",
    "loosely bpchar": "'ab  '",
    "none int[]": "'{}'",
}
TEXT_COLUMNS = {
    "address inet": "'10.1.2.3/8'",
    "host inet": "'10.0.0.1'",
    "hosts inet[]": "array['10.0.0.1'::inet, null, '::1']",
    "named_host host": "'10.0.0.1'",
    "net cidr": "'10.0.0.1/32'",
    'one "char"': "'x'",
    "span interval": "'1 year 2 months 3 days 04:05:06.7'",
    "bits bit(5)": "'10101'",
    "range int4range": "'[1,5)'",
    "place point": "'(1.5,2)'",
    "later timetz": "'12:00:00+02'",
}


def make_types(database: Database, columns: dict[str, str], name: str) -> None:
    database.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, {', '.join(columns)})")
    database.execute(f"INSERT INTO {name} VALUES (1, {', '.join(columns.values())})")
    database.execute(f"INSERT INTO {name} (id) VALUES (2)")


@pytest.fixture
def typed(database: Database) -> Database:
    database.execute("CREATE TYPE mood AS ENUM ('sad', 'very ok')")
    database.execute("CREATE DOMAIN money_like AS numeric(10,2)")
    database.execute("CREATE DOMAIN code AS char(5); CREATE DOMAIN host AS inet")
    make_types(database, COLUMNS, "binary_types")
    make_types(database, {**COLUMNS, **TEXT_COLUMNS}, "text_types")
    return database


class TestValues:
    @pytest.mark.parametrize(("name", "is_binary"), [("binary_types", True), ("text_types", False)])
    def test_the_snapshot_and_the_log_give_the_same_values(self, typed, name, is_binary):
        """Guards how columns are asked for: a cast to text gives `10.0.0.1/32`, and `ab` for a
        char(5), where the log has `10.0.0.1` and `ab   `; as a key that is another row."""
        (table,) = describe(typed, name)
        reader, session = begin(typed, SLOT, [table])
        with reader, session, LogControl(params_of(typed), SLOT) as control:
            copied = snapshot(session, typed, table).sort_by("id")
            typed.execute(f"UPDATE {name} SET id = id")
            blocks = read_all(reader, control)
            control.drop()
        assert blocks[0].context["binary"] is is_binary
        (logged,) = changes(blocks, [table])[name]
        names = [c.name for c in table.columns]
        assert logged.select(names).sort_by("id").to_pylist() == copied.to_pylist()
        assert copied.num_rows == 2
        assert None not in copied.to_pylist()[0].values()

    @pytest.mark.parametrize(
        ("kind", "value", "reason"),
        [
            ("date", "'infinity'", "infinity"),
            ("date", "'-infinity'", "infinity"),
            ("timestamptz", "'infinity'", "infinity"),
            ("timestamp", "'-infinity'", "infinity"),
            ("date", "'10000-01-01'", "year"),
            ("timestamp", "'0044-03-15 BC'", "year"),
            ("time", "'24:00:00'", "24:00"),
            ("numeric(5,2)", "'NaN'", "NaN"),
            ("int[]", "'{{1,2},{3,4}}'", "dimension"),
            ("timestamptz[]", "array['infinity'::timestamptz]", "infinity"),
        ],
    )
    def test_a_value_without_place_is_named(self, database, kind, value, reason):
        """Guards `snapshot._batch`: the row comes with NULL and a mark, so that it waits; of a
        table without a key, where nothing could tell later which row was left out, nothing
        comes."""
        database.execute(f"CREATE TABLE odd (id int PRIMARY KEY, odd {kind})")
        database.execute(f"INSERT INTO odd VALUES (0, NULL), (1, {value}), (2, NULL)")
        database.execute("CREATE TABLE keyless AS SELECT odd FROM odd")
        table, keyless = describe(database, "odd", "keyless")
        with snapshot_again(params_of(database), SLOT) as session:
            (chunk,) = session.plan(table, rows_per_chunk=1000)
            (batch,) = ChunkReader(params_of(database), session.point.token)(chunk, table)
            with pytest.raises(ReplicationError) as caught:
                snapshot(session, database, keyless)
        batch.validate(full=True)
        assert batch.column("id").to_pylist() == [0, 1, 2]
        assert batch.column("odd").to_pylist() == [None] * 3
        assert batch.column("_faulty").to_pylist() == [None, bytes([0b10]), None]
        assert reason in batch.column("_fault_reason")[1].as_py()
        assert caught.value.code == "source:value-unsupported"
        assert caught.value.facts["column"] == "odd"
        assert reason in caught.value.facts["reason"]


class TestChunks:
    def test_chunks_cover_the_table_once_in_one_view(self, database):
        """Guards CORRECTNESS 16 (`SET TRANSACTION SNAPSHOT` in `ChunkReader`): each chunk read at
        its own time would bring moved rows twice or not at all, and later ones too."""
        database.execute("CREATE TABLE many (id int PRIMARY KEY, pad text)")
        database.execute(
            "INSERT INTO many SELECT g, repeat('p', 100) FROM generate_series(1, 5000) g"
        )
        database.execute("ANALYZE many")
        (table,) = describe(database, "many")
        with snapshot_again(params_of(database), SLOT) as session:
            database.execute("UPDATE many SET pad = 'moved'")
            database.execute("INSERT INTO many SELECT g FROM generate_series(5001, 9000) g")
            assert len(session.plan(table, rows_per_chunk=1000)) >= 5
            rows = snapshot(session, database, table)
        assert sorted(rows.column("id").to_pylist()) == list(range(1, 5001))
        assert set(rows.column("pad").to_pylist()) == {"p" * 100}

    def test_a_table_that_was_never_analysed_is_covered(self, database):
        """Guards the guess by pages in `snapshot._ranges`: -1 rows, as the server says then, would
        make one chunk of a table of any size."""
        database.execute("CREATE TABLE fresh (id int) WITH (autovacuum_enabled = false)")
        database.execute("INSERT INTO fresh SELECT generate_series(1, 3000)")
        (table,) = describe(database, "fresh")
        with snapshot_again(params_of(database), SLOT) as session:
            assert len(session.plan(table, rows_per_chunk=100)) > 1
            rows = snapshot(session, database, table, rows_per_chunk=100)
        assert sorted(rows.column("id").to_pylist()) == list(range(1, 3001))

    def test_a_partitioned_table_may_have_no_partitions_yet(self, database):
        """Guards `_leaves`: it was said not to exist, and stayed failing once it had some."""
        database.execute("CREATE TABLE later (id int PRIMARY KEY) PARTITION BY RANGE (id)")
        (table,) = describe(database, "later")
        with snapshot_again(params_of(database), SLOT) as session:
            assert session.plan(table, rows_per_chunk=100) == []
            first = session.layout(table)
            database.execute("CREATE TABLE one PARTITION OF later FOR VALUES FROM (0) TO (9)")
            assert first and snapshot(session, database, table).num_rows == 0
        database.execute("DROP TABLE later")
        with (
            snapshot_again(params_of(database), SLOT) as session,
            pytest.raises(ReplicationError) as caught,
        ):
            session.plan(table, rows_per_chunk=100)
        assert caught.value.code == "source:table-missing"

    def test_a_table_that_was_dropped_after_the_view_was_opened_is_missing(self, database):
        """Guards the NULL size in `SnapshotSession._leaves`: the view's catalog still lists such a
        table; without the look planning fails with an error of Python's. Found by the adversary
        (seed 201)."""
        database.execute("CREATE TABLE gone (id int PRIMARY KEY)")
        (table,) = describe(database, "gone")
        with snapshot_again(params_of(database), SLOT) as session:
            database.execute("DROP TABLE gone")
            with pytest.raises(ReplicationError) as caught:
                session.plan(table, rows_per_chunk=100)
        assert caught.value.code == "source:table-missing"

    def test_partitions_come_with_their_parent_and_children_of_plain_tables_do_not(self, database):
        """Guards `snapshot.LEAVES`, which names the partitions, and ONLY in `SnapshotSession.plan`:
        without that a child's rows would lie in the copy of a table whose log never has them."""
        database.execute("CREATE TABLE parts (id int, k int) PARTITION BY LIST (k)")
        database.execute("CREATE TABLE part_one PARTITION OF parts FOR VALUES IN (1)")
        database.execute("CREATE TABLE part_two PARTITION OF parts FOR VALUES IN (2)")
        database.execute("INSERT INTO parts VALUES (1, 1), (2, 2)")
        database.execute("CREATE TABLE plain (id int)")
        database.execute("CREATE TABLE child () INHERITS (plain)")
        database.execute("INSERT INTO plain VALUES (1)")
        database.execute("INSERT INTO child VALUES (2)")
        parts, plain = describe(database, "parts", "plain")
        with snapshot_again(params_of(database), SLOT) as session:
            assert sorted(snapshot(session, database, parts).column("id").to_pylist()) == [1, 2]
            assert snapshot(session, database, plain).column("id").to_pylist() == [1]

    def test_hostile_names_are_quoted(self, database):
        """Guards `sql.name` in publication and chunks: joined in as they are, such names end the
        statement or stand for a parameter."""
        database.execute('CREATE TABLE "a""b.c 🐘" ("select ""x" int, "%s" text)')
        database.execute("""INSERT INTO "a""b.c 🐘" VALUES (1, 'x')""")
        (table,) = describe(database, 'a"b.c 🐘')
        reader, session = begin(database, SLOT, [table])
        with reader, session, LogControl(params_of(database), SLOT) as control:
            assert snapshot(session, database, table).to_pylist() == [{'select "x': 1, "%s": "x"}]
            control.drop()

    def test_an_empty_table_gives_no_rows(self, database):
        """Guards `TRAILER` in `Copying._take_head`: without rows the trailer comes with the head,
        and would be read as one."""
        database.execute("CREATE TABLE empty (id int PRIMARY KEY)")
        (table,) = describe(database, "empty")
        with snapshot_again(params_of(database), SLOT) as session:
            assert snapshot(session, database, table).num_rows == 0


class TestGoingOn:
    """What a snapshot needs to be gone on with in a later view."""

    def test_chunks_are_cut_by_what_there_is_now_and_by_bytes(self, database, monkeypatch):
        """Guards `snapshot._ranges`: rows are counted seldom, and large values lie beside the
        pages; in one chunk, a table that was filled since or one of documents would be copied for
        longer than a step may take, again and again."""
        database.execute("CREATE TABLE grown (id int PRIMARY KEY, note text)")
        database.execute("INSERT INTO grown SELECT g, 'a' FROM generate_series(1, 100) g")
        database.execute("ANALYZE grown")
        database.execute("ALTER TABLE grown SET (autovacuum_enabled = off)")
        database.execute("INSERT INTO grown SELECT g, 'a' FROM generate_series(101, 20000) g")
        database.execute("CREATE TABLE large (id int PRIMARY KEY, body text)")
        database.execute("ALTER TABLE large ALTER body SET STORAGE EXTERNAL")
        database.execute(
            "INSERT INTO large SELECT g, repeat('x', 100000) FROM generate_series(1, 400) g"
        )
        database.execute("ANALYZE large")
        monkeypatch.setattr(snapshot_module, "BYTES_PER_CHUNK", 20 << 20)
        grown, large = describe(database, "grown", "large")
        with snapshot_again(params_of(database), SLOT) as session:
            assert 5 <= len(session.plan(grown, rows_per_chunk=1000)) <= 25
            assert len(session.plan(large, rows_per_chunk=250_000)) >= 2

    def test_the_layout_stays_until_rows_get_other_places(self, database):
        """Guards `SnapshotSession.layout` both ways (CORRECTNESS 17): blind to VACUUM FULL, a copy
        would go on by places that hold other rows; told by any update, it could never go on."""
        database.execute("CREATE TABLE kept (id int PRIMARY KEY, pad text)")
        database.execute("INSERT INTO kept SELECT g, 'p' FROM generate_series(1, 3000) g")
        (table,) = describe(database, "kept")

        def layout() -> str:
            with snapshot_again(params_of(database), SLOT) as session:
                return session.layout(table)

        first = layout()
        database.execute("UPDATE kept SET pad = repeat('q', 500)")
        database.execute("INSERT INTO kept SELECT g FROM generate_series(3001, 9000) g")
        database.execute("VACUUM kept")
        assert first == layout() != ""
        database.execute("VACUUM FULL kept")
        assert layout() != first

    def test_another_partition_is_another_layout(self, database):
        """Guards the partitions in `SnapshotSession.layout`: no chunk of the first plan covers one
        that came since, and an attached one's rows are in no log."""
        database.execute("CREATE TABLE parts (id int, k int) PARTITION BY LIST (k)")
        database.execute("CREATE TABLE part_one PARTITION OF parts FOR VALUES IN (1)")
        (parts,) = describe(database, "parts")
        with snapshot_again(params_of(database), SLOT) as session:
            first = session.layout(parts)
        database.execute("CREATE TABLE part_two PARTITION OF parts FOR VALUES IN (2)")
        with snapshot_again(params_of(database), SLOT) as session:
            assert session.layout(parts) != first

    def test_a_rewrite_is_seen_while_the_view_is_held(self, database):
        """Guards `pg_relation_filenode` in `snapshot.LEAVES`, which tells of now where `pg_class`
        tells of the view: places that change between two chunks of one view would lose rows."""
        database.execute("CREATE TABLE kept (id int PRIMARY KEY)")
        (table,) = describe(database, "kept")
        with snapshot_again(params_of(database), SLOT) as session:
            first = session.layout(table)
            database.execute("VACUUM FULL kept")
            assert session.layout(table) != first

    @pytest.mark.parametrize(
        ("columns", "values"),
        [
            ("a bigint", ["-9223372036854775808", "0", "7"]),
            ("a text", ["''", "'it''s \\ \"q\"'", "'NULL'"]),
            ("a numeric(20,4)", ["1.5", "-0.0001", "0"]),
            ("a uuid", ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "gen_random_uuid()"]),
            ("a timestamptz", ["'2024-02-29 23:59:59.999999+05:30'", "'0001-01-01 00:00+00'"]),
            ("a date, b time", ["'2024-02-29', '23:59:59.000001'", "'0001-01-01', '00:00'"]),
            ("a bytea, b boolean", ["'\\x00ff', true", "'', false", "'', true"]),
            ("a mood, b varchar(9)", ["'sad', 'x'", "'very ok', ''"]),
        ],
    )
    def test_rows_are_read_by_any_key_in_the_view(self, database, columns, values):
        """Guards `SnapshotSession.keyed_chunk` and `sql.any_key` (CORRECTNESS 17): a key printed
        otherwise than its type reads it would leave its row out of a copy that went on; so would
        another view."""
        database.execute("CREATE TYPE mood AS ENUM ('sad', 'very ok')")
        names = ", ".join(c.split()[0] for c in columns.split(", "))
        database.execute(f"CREATE TABLE keyed ({columns}, v text, PRIMARY KEY ({names}))")
        for row in values:
            database.execute(f"INSERT INTO keyed VALUES ({row}, 'v')")
        (table,) = describe(database, "keyed")
        with snapshot_again(params_of(database), SLOT) as session:
            database.execute("UPDATE keyed SET v = 'later'")
            everything = snapshot(session, database, table)
            assert everything.column("v").to_pylist() == ["v"] * len(values)
            read = ChunkReader(params_of(database), session.point.token)
            for at in range(len(values)):
                keys = everything.select(list(table.key)).slice(at, 1)
                (batch,) = list(read(session.keyed_chunk(table, 0, keys), table))
                assert batch.to_pylist() == everything.slice(at, 1).to_pylist()
            keys = everything.select(list(table.key))
            (batch,) = list(read(session.keyed_chunk(table, 0, keys), table))
            assert batch.num_rows == len(values)


class TestSession:
    def test_the_first_view_and_the_log_meet_without_gap_or_overlap(self, database, monkeypatch):
        """Guards the hand-off (CORRECTNESS 16): the view is the one that CREATE_REPLICATION_SLOT
        exported; in one opened a moment later, a commit in between would be copied and come by the
        log again."""
        database.execute("CREATE TABLE rows (id int PRIMARY KEY)")
        database.execute("INSERT INTO rows VALUES (1)")
        (table,) = describe(database, "rows")
        create_slot = slots.create_slot

        def create_and_write(*args: object, **options: object) -> tuple[int, str]:
            made = create_slot(*args, **options)
            database.execute("INSERT INTO rows VALUES (2)")
            return made

        monkeypatch.setattr(slots, "create_slot", create_and_write)
        reader, session = begin(database, SLOT, [table])
        with reader, session, LogControl(params_of(database), SLOT) as control:
            database.execute("INSERT INTO rows VALUES (3)")
            copied = snapshot(session, database, table).column("id").to_pylist()
            logged = changes(read_all(reader, control), [table])["rows"]
            control.drop()
        assert copied == [1]
        assert [i for t in logged for i in t.column("id").to_pylist()] == [2, 3]
        assert all(
            p >= session.point.position.ordinal
            for t in logged
            for p in t.column("_position").to_pylist()
        )

    def test_the_view_ends_with_its_holder(self, database):
        """Guards `SnapshotSession.is_alive` and the translation in `_leaves`: by
        `source:snapshot-lost` (`copier.CUTS`) a copy goes on in another view (CORRECTNESS 17); the
        driver's error would end it."""
        database.execute("CREATE TABLE rows (id int)")
        (table,) = describe(database, "rows")
        session = snapshot_again(params_of(database), SLOT)
        assert session.is_alive()
        database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
            "'replicator'"
        )
        assert not session.is_alive()
        with pytest.raises(ReplicationError) as caught:
            session.plan(table, rows_per_chunk=10)
        assert caught.value.code == "source:snapshot-lost"

    def test_a_reader_of_a_lost_view_says_so(self, database):
        """Guards `source:snapshot-lost` in `errors.RULES`, from a reader that was sent to a task:
        reported as another error, the copy would fail rather than go on in a new snapshot."""
        database.execute("CREATE TABLE rows (id int)")
        (table,) = describe(database, "rows")
        with snapshot_again(params_of(database), SLOT) as session:
            chunks = session.plan(table, rows_per_chunk=10)
        read = pickle.loads(pickle.dumps(ChunkReader(params_of(database), session.point.token)))
        with pytest.raises(ReplicationError) as caught:
            list(read(chunks[0], table))
        assert caught.value.code == "source:snapshot-lost"

    def test_a_temporary_slot_does_not_stay(self, database):
        """Guards TEMPORARY in `slots.create_slot` for `snapshot_again`: each re-sync would leave a
        slot that keeps the server's log."""
        with snapshot_again(params_of(database), SLOT):
            left = database.execute(
                "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
            )
        assert left[0][0] == 0
