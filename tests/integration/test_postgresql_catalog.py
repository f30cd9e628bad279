"""The catalog against a real server: which tables are listed, and what is said of their schemas."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.connectors.model.types import Decimal, Enum, Int, String, Unsupported
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.schema.diff import ChangeKind, compare
from replicators.sources.postgresql import catalog as catalog_module
from replicators.sources.postgresql.catalog import PostgresqlCatalog
from tests.integration.postgresql_source import describe, params_of
from tests.servers import Database

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(120),
    pytest.mark.oldest_postgresql(is_long=True),
]


def listed(database: Database) -> dict[str, object]:
    with PostgresqlCatalog(params_of(database)) as catalog:
        return {str(t.id): t for t in catalog.list_tables()}


class TestList:
    def test_only_tables_that_could_be_copied_are_listed(self, database):
        """Guards the conditions of `catalog.LIST`: without them a view, an unlogged table, or a
        partition beside the table that it is a part of could be chosen, whose own changes never
        come."""
        database.execute("CREATE SCHEMA shop")
        database.execute("CREATE TABLE shop.orders (id int PRIMARY KEY)")
        database.execute("CREATE TABLE parts (id int) PARTITION BY LIST (id)")
        database.execute("CREATE TABLE part_one PARTITION OF parts FOR VALUES IN (1)")
        database.execute("CREATE VIEW seen AS SELECT 1 AS one")
        database.execute("CREATE MATERIALIZED VIEW kept AS SELECT 1 AS one")
        database.execute("CREATE UNLOGGED TABLE fast (id int)")
        assert list(listed(database)) == ["public.parts", "shop.orders"]

    def test_estimates_come_without_counting(self, database):
        """Guards the sums over `pg_partition_tree` in `catalog.LIST`: autovacuum analyses
        partitions, never the table above them, whose own figures say nothing; `count(*)` would read
        every row."""
        database.execute("CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id)")
        database.execute("CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (500)")
        database.execute("CREATE TABLE high PARTITION OF parts FOR VALUES FROM (500) TO (1000)")
        database.execute("CREATE TABLE plain (a int, b int)")
        database.execute("INSERT INTO parts SELECT generate_series(0, 999)")
        database.execute("INSERT INTO plain SELECT g, g FROM generate_series(1, 300) g")
        database.execute("ANALYZE low, high, plain")
        tables = listed(database)
        parts, plain = tables["public.parts"], tables["public.plain"]
        assert (parts.rows_estimated, parts.has_key, parts.columns) == (1000, True, 1)
        assert (plain.rows_estimated, plain.has_key, plain.columns) == (300, False, 2)
        assert plain.size_bytes >= 8192

    def test_a_table_that_was_never_analysed_has_no_estimate(self, database):
        """Guards `reltuples >= 0` in `catalog.LIST`: -1, the server's word for "never looked",
        would be shown as a number of rows."""
        database.execute("CREATE TABLE fresh (id int) WITH (autovacuum_enabled = false)")
        fresh = listed(database)["public.fresh"]
        assert (fresh.rows_estimated, fresh.size_bytes) == (None, None)

    def test_a_table_that_was_never_analysed_has_the_rows_that_came(self, database):
        """Guards `pg_stat_get_live_tuples` in `catalog.LIST`: a small table that nothing looked at
        yet would be shown without a number of rows."""
        database.execute("CREATE TABLE small (id int) WITH (autovacuum_enabled = false)")
        database.execute("INSERT INTO small SELECT generate_series(1, 50)")
        deadline = time.monotonic() + 30  # the server adds up what ended connections did
        while listed(database)["public.small"].rows_estimated != 50:
            assert time.monotonic() < deadline

    def test_two_thousand_tables_are_listed_in_a_second(self, database):
        """Guards the form of `catalog.LIST`: fails where it looks through a whole catalog for each
        table instead of asking by an index."""
        database.execute(
            "DO $$ BEGIN FOR i IN 1..2000 LOOP "
            "EXECUTE format('CREATE TABLE t%s (id int PRIMARY KEY, a text)', i); "
            "IF i % 100 = 0 THEN COMMIT; END IF; END LOOP; END $$"
        )
        with PostgresqlCatalog(params_of(database)) as catalog:
            started = time.monotonic()
            assert len(catalog.list_tables()) == 2000
            assert time.monotonic() - started < 15


class TestDescribe:
    def test_a_schema_names_columns_types_and_keys(self, database):
        """Guards `catalog._table` and `TypeBook`: domains and enums down to what they are made of,
        and `attnum` as the ordinal, with the hole that a dropped column leaves; counted anew,
        columns would be taken for their neighbours (CORRECTNESS 21)."""
        database.execute("CREATE TYPE mood AS ENUM ('b', 'a')")
        database.execute("CREATE DOMAIN price AS numeric(10,2)")
        database.execute(
            "CREATE TABLE orders (gone int, id bigint PRIMARY KEY, cost price NOT NULL, feel mood,"
            " twice bigint GENERATED ALWAYS AS (id * 2) STORED, short varchar(7))"
        )
        database.execute("ALTER TABLE orders DROP COLUMN gone")
        (orders,) = describe(database, "orders")
        found = {c.name: c for c in orders.columns}
        assert [c.ordinal for c in orders.columns] == [2, 3, 4, 5, 6]
        assert orders.native_id == database.execute("SELECT 'orders'::regclass::oid::int")[0][0]
        assert (orders.key, orders.primary_key, orders.full_before) == (("id",), ("id",), False)
        assert found["id"].type == Int(64)
        assert found["cost"].type == Decimal(10, 2)
        assert not found["cost"].nullable
        assert found["feel"].type == Enum(("b", "a"))
        assert found["twice"].generated
        assert found["short"].type == String(7)
        assert found["short"].native == "character varying(7)"

    @pytest.mark.parametrize(
        ("change", "key", "full_before"),
        [
            ("SELECT 1", ("id", "k"), False),
            ("ALTER TABLE t REPLICA IDENTITY FULL", ("id", "k"), True),
            ("ALTER TABLE t REPLICA IDENTITY NOTHING", (), False),
            ("ALTER TABLE t REPLICA IDENTITY USING INDEX other", ("mail",), False),
            ("ALTER TABLE t DROP CONSTRAINT t_pkey", (), False),
            ("ALTER TABLE t DROP CONSTRAINT t_pkey, REPLICA IDENTITY FULL", (), True),
        ],
    )
    def test_the_key_is_the_replica_identity(self, database, change, key, full_before):
        """Guards CORRECTNESS 10 in `catalog._table`: with the primary key whatever the identity
        says, rows that the log names by another index would be looked for by columns that it does
        not send."""
        database.execute("CREATE TABLE t (k int, mail text NOT NULL, id int, PRIMARY KEY (id, k))")
        database.execute("CREATE UNIQUE INDEX other ON t (mail) INCLUDE (id)")
        database.execute(change)
        (table,) = describe(database, "t")
        assert (table.key, table.full_before) == (key, full_before)

    @pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
    def test_a_deferrable_primary_key_identifies_no_row(self, database, identity):
        """Guards `indimmediate` in `catalog._table`: within a statement two rows may have such a
        key; known by it, `UPDATE t SET id = id + 1` would leave one row."""
        database.execute("CREATE TABLE t (id int PRIMARY KEY DEFERRABLE)")
        database.execute(f"ALTER TABLE t REPLICA IDENTITY {identity}")
        (table,) = describe(database, "t")
        assert (table.key, table.primary_key) == ((), ("id",))
        assert table.full_before is (identity == "FULL")

    def test_columns_that_a_primary_key_only_includes_are_not_of_it(self, database):
        """Guards the cut at `indnkeyatts` in `catalog.TABLES`: the log marks the key's own columns;
        with others in it, the first change would stop the table."""
        database.execute("CREATE TABLE t (name text, id int, PRIMARY KEY (id) INCLUDE (name))")
        (table,) = describe(database, "t")
        assert (table.key, table.primary_key) == (("id",), ("id",))

    def test_before_images_are_whole_where_those_of_all_partitions_are(self, database):
        """Guards the look at every partition's identity in `catalog.TABLES`: a partition sends what
        its own says, so the root's FULL alone promises no whole old rows."""
        database.execute("CREATE TABLE p (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)")
        database.execute("CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (10)")
        database.execute("ALTER TABLE p REPLICA IDENTITY FULL")
        assert not describe(database, "p")[0].full_before
        database.execute("ALTER TABLE p_1 REPLICA IDENTITY FULL")
        (table,) = describe(database, "p")
        assert (table.key, table.full_before) == (("id",), True)

    def test_a_selection_keeps_the_key_and_leaves_out_missing_tables(self, database):
        """Guards the key that `catalog._table` adds to the chosen columns: without it no update or
        delete would find its row. What is gone is left out, for the caller to say."""
        database.execute("CREATE TABLE t (id int PRIMARY KEY, a int, b int)")
        wanted = TableSelection(TableId("public", "t"), ("b",))
        with PostgresqlCatalog(params_of(database)) as catalog:
            found = catalog.describe([wanted, TableSelection(TableId("public", "none"))])
        assert [c.name for c in found[wanted.id].columns] == ["id", "b"]
        assert len(found) == 1

    def test_a_generated_column_that_the_log_does_not_carry_can_not_be_copied(self, database):
        """Guards `catalog._column`'s look at `publish_generated_columns`: copied by the snapshot,
        such a column would vanish from the copy with the first change, which comes without it."""
        is_newer = int(database.execute("SHOW server_version_num")[0][0]) >= 180000
        never = ", never int GENERATED ALWAYS AS (id + 1) VIRTUAL" if is_newer else ""
        database.execute(
            f"CREATE TABLE t (id int PRIMARY KEY, kept int GENERATED ALWAYS AS (id) STORED{never})"
        )
        (table,) = describe(database, "t")
        assert table.column("kept").generated
        assert isinstance(table.column("kept").type, Unsupported) is not is_newer
        if is_newer:
            assert table.column("never").type == Unsupported("integer")

    def test_a_type_that_can_not_be_copied_stays_in_as_unsupported(self, database):
        """Guards that `types.column_type` has no default: what it does not know is reported as
        `Unsupported` and left out of `supported`, never copied as some text."""
        database.execute("CREATE TYPE pair AS (a int, b int)")
        database.execute("CREATE TABLE t (id int PRIMARY KEY, p pair, ps pair[])")
        (table,) = describe(database, "t")
        assert isinstance(table.column("p").type, Unsupported)
        assert isinstance(table.column("ps").type, Unsupported)
        assert [c.name for c in table.supported] == ["id"]

    def test_comments_are_read_and_make_no_other_schema(self, database):
        """A copy is not made again, and no column is changed, because somebody explained it."""
        database.execute("CREATE TABLE t (id int PRIMARY KEY, plain text)")
        before = describe(database, "t")[0]
        database.execute("COMMENT ON TABLE t IS 'all''s here'")
        database.execute("COMMENT ON COLUMN t.id IS 'the number'")
        (after,) = describe(database, "t")
        assert (after.comment, [c.comment for c in after.columns]) == (
            "all's here",
            ["the number", ""],
        )
        assert after == before
        assert TableSchema.from_json(after.to_json()).to_json() == after.to_json()

    def test_the_number_of_queries_does_not_grow_with_the_tables(self, database):
        """Guards `catalog.describe` asking for all tables at once; fails where one more query is
        asked for each of them."""
        for number in range(20):
            database.execute(f"CREATE TABLE t{number} (id int PRIMARY KEY)")

        class Counting:
            def __init__(self, connection):
                self.connection = connection
                self.queries = 0
                self.info = connection.info

            def execute(self, *args):
                self.queries += 1
                return self.connection.execute(*args)

        with database.connect() as connection:
            counting = Counting(connection)
            names = [TableSelection(TableId("public", f"t{n}")) for n in range(20)]
            assert len(catalog_module.describe(counting, names)) == 20
        assert counting.queries == 3

    def test_a_dead_server_is_reported(self, database):
        """Guards the translation in `connections.connect`: without it psycopg's own exception, with
        the address in its text, would go up in place of a code."""
        with pytest.raises(ReplicationError) as caught:
            PostgresqlCatalog(params_of(database, port=1))
        assert caught.value.code == "source:unreachable"


class TestWhatTheLogDoesNotTell:
    def test_dropped_columns_leave_their_numbers_and_defaults_their_values(self, database):
        """Guards CORRECTNESS 21: without the dropped ones, the order of the log's columns would not
        say which is which."""
        database.execute("CREATE TABLE t (id int PRIMARY KEY, a text, b text)")
        database.execute("INSERT INTO t VALUES (1, 'a', 'b')")
        database.execute("ALTER TABLE t DROP a, ADD c text DEFAULT 'it''s \"{,}\\ ü', ADD d int")
        found = describe(database, "t")[0]
        numbers = [(n, name) for n, name, _ in found.layout]
        assert numbers == [(1, "id"), (2, ""), (3, "b"), (4, "c"), (5, "d")]
        assert found.column("c").missing == "it's \"{,}\\ ü"
        assert (found.column("d").missing, found.column("b").missing) == (None, None)

    def test_rows_that_are_written_again_are_seen_by_their_storage(self, database):
        """Guards `TableSchema.storage` (CORRECTNESS 21): a plain default is kept beside the old
        rows and can be filled in, a volatile one writes them all again, which the log does not
        tell; only the other file does."""
        database.execute("CREATE TABLE t (id int PRIMARY KEY, a int)")
        database.execute("INSERT INTO t VALUES (1, 2)")
        before = describe(database, "t")[0]
        database.execute("ALTER TABLE t ADD b int DEFAULT 5")
        added = describe(database, "t")[0]
        database.execute("ALTER TABLE t ADD c float8 DEFAULT random()")
        volatile = describe(database, "t")[0]
        assert before.storage == added.storage != volatile.storage
        assert volatile.column("c").missing is None

    def test_a_column_that_is_no_longer_generated_brings_values_that_no_log_carried(self, database):
        """Guards the generated columns in `TableSchema.storage`: no row is written again, and no
        default says what old rows have; as a new column it would be NULL in all of them."""
        is_sent = int(database.execute("SHOW server_version_num")[0][0]) >= 180000
        database.execute(
            "CREATE TABLE t (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (n * 2) STORED, n "
            "int)"
        )
        before = describe(database, "t")[0]
        database.execute("ALTER TABLE t ALTER twice DROP EXPRESSION")
        after = describe(database, "t")[0]
        kinds = [c.kind for c in compare(replace(before, columns=before.supported), after)]
        assert kinds == ([] if is_sent else [ChangeKind.ADDED, ChangeKind.REWRITTEN])

    def test_the_parts_know_what_old_rows_have_in_a_new_column(self, database):
        """Guards the fill of old rows: PostgreSQL keeps it where rows are, never at a partitioned
        table. Where parts differ, as after one was attached, only a fresh copy is right."""
        database.execute("CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id)")
        for n in range(2):
            database.execute(
                f"CREATE TABLE p_{n} PARTITION OF p FOR VALUES FROM ({n * 10}) TO ({n * 10 + 10})"
            )
        database.execute("INSERT INTO p VALUES (1), (11)")
        before = describe(database, "p")[0]
        database.execute("ALTER TABLE p ADD v int DEFAULT 7, ADD w text DEFAULT 'it''s', ADD n int")
        after = describe(database, "p")[0]
        assert [c.kind for c in compare(before, after)] == [ChangeKind.ADDED] * 3
        database.execute("CREATE TABLE p_2 PARTITION OF p FOR VALUES FROM (20) TO (30)")
        for found in (after, describe(database, "p")[0]):
            assert [c.missing for c in found.columns] == [None, "7", "it's", None]
        database.execute(
            "CREATE TABLE other (id int PRIMARY KEY); INSERT INTO other VALUES (31);"
            "ALTER TABLE other ADD v int DEFAULT 8, ADD w text DEFAULT 'it''s', ADD n int;"
            "ALTER TABLE p ATTACH PARTITION other FOR VALUES FROM (30) TO (40)"
        )
        differing = replace(describe(database, "p")[0], partitions=())
        assert ChangeKind.REWRITTEN in [c.kind for c in compare(before, differing)]

    @pytest.mark.parametrize(
        ("statement", "is_reported"),
        [
            ("VACUUM FULL t", False),
            ("CLUSTER t USING t_pkey", False),
            ("TRUNCATE t", False),
            ("ALTER TABLE t ALTER a SET NOT NULL, ALTER n SET DEFAULT 1", False),
            ("ALTER TABLE t ALTER a TYPE varchar(90)", False),
            ("ALTER TABLE t ALTER a TYPE varchar(9) USING left(a, 1)", True),
            ("ALTER TABLE t ALTER n TYPE numeric(60,2)", True),
            ("TRUNCATE p_1", True),
            ("ALTER TABLE p ALTER a TYPE text USING upper(a)", True),
            ("CREATE TABLE p_2 PARTITION OF p FOR VALUES FROM (10) TO (20)", False),
            ("UPDATE p SET a = 'z'; VACUUM p; ANALYZE p; REINDEX TABLE p_1", False),
        ],
    )
    def test_rows_that_are_changed_while_no_column_looks_otherwise_are_seen(
        self, database, statement, is_reported
    ):
        """Guards the marks: the log carries none of these rows. What only moves rows, or is
        reported by the log, is none."""
        database.execute("CREATE TABLE t (id int PRIMARY KEY, a varchar(9), n numeric(60,4))")
        database.execute("CREATE TABLE p (id int PRIMARY KEY, a text) PARTITION BY RANGE (id)")
        database.execute("CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (10)")
        database.execute("INSERT INTO t VALUES (1, 'aa', 1); INSERT INTO p VALUES (1, 'a')")
        tables = describe(database, "t", "p")
        for one in statement.split("; "):
            database.execute(one)
        changes = [compare(o, n) for o, n in zip(tables, describe(database, "t", "p"), strict=True)]
        reported = [c.kind for c in (*changes[0], *changes[1]) if c.kind is not ChangeKind.WIDENED]
        assert reported == [ChangeKind.REWRITTEN] * is_reported

    def test_a_partition_that_was_attached_differs_from_one_that_was_made(self, database):
        """Guards the sign of `TableSchema.partitions`, from the `xmin`s in `catalog.TABLES`: an
        attached one came with rows; one made in place, as a job does each day, did not."""
        database.execute("CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id)")
        database.execute("CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (10)")
        database.execute("CREATE TABLE p_2 (id int PRIMARY KEY)")
        database.execute("ALTER TABLE p ATTACH PARTITION p_2 FOR VALUES FROM (10) TO (20)")
        database.execute("ALTER TABLE p_1 RENAME TO other")
        parts = describe(database, "p")[0].partitions
        assert [n > 0 for n in parts] == [True, True, False]

    def test_a_partition_made_filled_and_attached_at_once_is_an_attached_one(self, database):
        """Guards the look at `cmin` in `catalog.TABLES`: no publication sends its rows, for when
        they came it was not yet a part. One made in place stays what it is whatever becomes of its
        columns, and one that was away is another one afterwards."""
        database.execute(
            "CREATE TABLE p (id int DEFAULT 1, v text DEFAULT 'v', PRIMARY KEY (id)) PARTITION "
            "BY RANGE (id)"
        )
        database.execute(
            "BEGIN; CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (10); INSERT INTO p "
            "VALUES (1); COMMIT"
        )
        database.execute(
            "BEGIN; CREATE TABLE p_2 (LIKE p INCLUDING ALL); INSERT INTO p_2 VALUES (11);"
            " ALTER TABLE p ATTACH PARTITION p_2 FOR VALUES FROM (10) TO (20); COMMIT"
        )
        before = describe(database, "p")[0]
        assert [n > 0 for n in before.partitions] == [True, True, False]
        database.execute("ALTER TABLE p RENAME v TO w; ALTER TABLE p RENAME id TO no")
        renamed = describe(database, "p")[0]
        assert ChangeKind.PARTITIONS_CHANGED not in [c.kind for c in compare(before, renamed)]
        database.execute("ALTER TABLE p DETACH PARTITION p_1; INSERT INTO p_1 VALUES (2)")
        database.execute("ALTER TABLE p ATTACH PARTITION p_1 FOR VALUES FROM (0) TO (10)")
        changes = compare(renamed, describe(database, "p")[0])
        assert [c.kind for c in changes] == [ChangeKind.PARTITIONS_CHANGED]

    def test_a_table_is_found_by_its_number(self, database):
        """Guards `Catalog.find` going by OID: looked for by its name, a table that was renamed or
        moved to another schema would count as gone (CORRECTNESS 21)."""
        database.execute("CREATE TABLE t (id int PRIMARY KEY)")
        number = describe(database, "t")[0].native_id
        database.execute("CREATE SCHEMA away")
        database.execute("ALTER TABLE t SET SCHEMA away")
        with PostgresqlCatalog(params_of(database)) as catalog:
            assert catalog.find([number, 1]) == {number: TableId("away", "t")}
