"""The log reader against a real server: where blocks end, what is acknowledged, and what is refused
at a start."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator

import pytest

from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSelection
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.postgresql import log, pump
from replicators.sources.postgresql.catalog import PostgresqlCatalog
from replicators.sources.postgresql.log import LogControl, LogReader
from replicators.sources.postgresql.snapshot import snapshot_again
from tests.integration.postgresql_source import (
    begin,
    changes,
    describe,
    messages,
    params_of,
    read_all,
    read_until,
    snapshot,
)
from tests.servers import Database, drop_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120), pytest.mark.oldest_postgresql]
SLOT = "r_log"


@pytest.fixture
def shop(database: Database) -> Database:
    database.execute("CREATE TABLE orders (id int PRIMARY KEY, note text)")
    database.execute("CREATE TABLE views (at int, page text)")
    return database


@pytest.fixture
def control(shop: Database) -> Iterator[LogControl]:
    with LogControl(params_of(shop), SLOT) as made:
        yield made


@pytest.fixture
def reader(shop: Database, control: LogControl) -> Iterator[LogReader]:
    made, session = begin(shop, SLOT, describe(shop, "orders", "views"))
    session.close()
    with made:
        yield made
    control.drop()


def slot_field(database: Database, field: str) -> object:
    rows = database.execute(f"SELECT {field} FROM pg_replication_slots WHERE slot_name = '{SLOT}'")
    return rows[0][0] if rows else None


def code_of_prepare(database: Database, position: Position) -> str:
    reader = LogReader(params_of(database), SLOT)
    with pytest.raises(ReplicationError) as caught:
        reader.prepare(describe(database, "orders", "views"), position)
    return caught.value.code


class TestBlocks:
    def test_a_block_holds_whole_transactions(self, shop, reader, control):
        """Guards the cut at a commit (`pump._commit`, `BlockCutter.emit_closed`): cut elsewhere, a
        position would stand inside of a transaction (CORRECTNESS 1)."""
        shop.execute("INSERT INTO orders VALUES (1, 'a'), (2, 'b')")
        blocks = read_all(reader, control)
        assert messages(blocks) == "BRIIC|"
        assert blocks[0].ends_closed
        assert blocks[0].context["transaction"] is None
        assert blocks[0].messages == 5

    def test_a_position_is_past_its_commit_and_before_the_next(self, shop, reader, control):
        """Guards CORRECTNESS 1: a position is the commit's end (`pump.CLOSED_AT`), with the server
        and timeline that `slots.verify` compares at each start."""
        shop.execute("INSERT INTO orders VALUES (1, 'a')")
        first = read_all(reader, control)[-1].position
        shop.execute("INSERT INTO orders VALUES (2, 'b')")
        second = read_all(reader, control)[-1].position
        assert first.ordinal < second.ordinal
        assert set(first.detail) == {"system_identifier", "timeline"}

    def test_a_long_transaction_comes_as_open_blocks_of_its_own(self, shop, reader, control):
        """Guards `OPEN_LIMIT` and `BlockCutter.emit_open`: held whole, a long transaction would
        fill the memory. Its parts move no position, and each later one has the Begin in its
        context, without which its rows have no commit."""
        shop.execute("INSERT INTO orders VALUES (0, 'before')")
        shop.execute(
            "INSERT INTO orders SELECT g, repeat('x', 1000) FROM generate_series(1, 20000) g"
        )
        shop.execute("INSERT INTO orders VALUES (-1, 'after')")
        blocks = read_all(reader, control)
        ends = [b.ends_closed for b in blocks]
        start, stop = ends.index(False), len(ends) - ends[::-1].index(False)
        assert stop - start >= 4
        assert set(ends[start:stop]) == {False}
        assert messages(blocks[start : start + 1])[0] == "B"
        assert all(b.context["transaction"] for b in blocks[start + 1 : stop + 1])
        assert messages(blocks[stop : stop + 1]).endswith("IC|")
        assert len({b.position.ordinal for b in blocks[start:stop]}) == 1
        assert sum(len(t) for t in changes(blocks, describe(shop, "orders"))["orders"]) == 20002

    def test_a_message_larger_than_the_buffer_arrives_whole(self, shop, reader, control):
        """Guards `BlockCutter.grow`: without more room the held message would never be taken, and
        the stream would stand still."""
        shop.execute("INSERT INTO orders VALUES (1, repeat('y', 12000000))")
        found = changes(read_all(reader, control), describe(shop, "orders"))["orders"]
        assert len(found[0].column("note")[0].as_py()) == 12_000_000

    def test_a_changed_schema_starts_a_block_with_another_version(self, shop, reader, control):
        """Guards `BlockCutter._cut_before_change` (CORRECTNESS 5): without the cut, rows of both
        schemas would lie in a segment whose head describes the first one alone."""
        with shop.connect() as connection, connection.transaction():
            connection.execute("INSERT INTO orders VALUES (1, 'a')")
            connection.execute("ALTER TABLE orders ADD COLUMN price int")
            connection.execute("INSERT INTO orders VALUES (2, 'b', 5)")
        blocks = read_all(reader, control)
        assert messages(blocks) == "BRI|RIC|"
        assert [b.ends_closed for b in blocks] == [False, True]
        assert blocks[0].context_version < blocks[1].context_version
        assert blocks[1].context["transaction"]

    def test_a_new_table_does_not_change_the_version(self, shop, reader, control):
        """Guards `BlockCutter._is_described`: without it the first row of every table would seal a
        segment, though its schema is the one that was described."""
        shop.execute("INSERT INTO orders VALUES (1, 'a')")
        first = read_all(reader, control)
        shop.execute("INSERT INTO views VALUES (1, 'home')")
        assert read_all(reader, control)[0].context_version == first[0].context_version

    def test_the_way_through_psycopg_gives_the_same_blocks(
        self, shop, reader, control, monkeypatch
    ):
        """Guards `LogReader._take_plain`, used where `pump.load` finds no libpq: fails where it
        leaves out, adds or reorders a message that the compiled loop takes."""

        def fill() -> None:
            shop.execute("INSERT INTO orders SELECT g, 'n' FROM generate_series(1, 500) g")
            shop.execute("DELETE FROM orders")

        fill()
        compiled = messages(read_all(reader, control)).replace("|", "")
        monkeypatch.setattr(pump, "load", lambda: False)
        fill()
        plain = messages(read_all(reader, control)).replace("|", "")
        assert plain == compiled.replace("R", "")

    def test_a_table_without_key_sends_inserts_only_and_its_updates_do_not_fail(
        self, shop, reader, control
    ):
        """Guards CORRECTNESS 20: published with its updates (`slots.kind_of` always "full"), such a
        table would make its owner's UPDATE and DELETE fail."""
        shop.execute("INSERT INTO views VALUES (1, 'home')")
        shop.execute("UPDATE views SET page = 'start'")
        shop.execute("DELETE FROM views")
        assert messages(read_all(reader, control)).replace("|", "") == "BRIC"

    def test_a_type_without_binary_decoder_in_mid_stream_turns_the_stream_to_text(
        self, shop, reader, control
    ):
        """Guards CORRECTNESS 22 (`BinaryGuard.allows`, `LogReader._change_to_text`): the open
        transaction is dropped unacknowledged and read once more, in text; without it the rows come
        in a form that nothing decodes."""
        with shop.connect() as connection, connection.transaction():
            connection.execute("INSERT INTO views VALUES (1, 'home')")
            connection.execute("ALTER TABLE orders ADD COLUMN source inet")
            connection.execute("INSERT INTO orders VALUES (1, 'a', '10.0.0.1')")
        blocks = read_all(reader, control)
        assert {b.context["binary"] for b in blocks} == {False}
        found = changes(blocks, describe(shop, "orders", "views"))
        assert found["orders"][0].column("source").to_pylist() == ["10.0.0.1"]
        assert sum(len(t) for t in found["views"]) == 1

    def test_a_removed_tables_type_without_binary_decoder_does_not_end_every_reading(
        self, shop, control, monkeypatch
    ):
        """Guards that whoever connects again begins in text: the chosen tables allow binary, the
        log's rows of one that was removed do not, and they come after a part of their transaction
        was handed out."""
        monkeypatch.setattr("replicators.sources.postgresql.log.TEXT_UPTO", {})
        shop.execute("CREATE TABLE gone (id int PRIMARY KEY, source inet)")
        kept = describe(shop, "orders")
        reader, session = begin(shop, SLOT, describe(shop, "orders", "gone"))
        session.close()
        reader.close()
        with shop.connect() as connection, connection.transaction():
            connection.execute(
                "INSERT INTO orders SELECT g, repeat('x', 1000) FROM generate_series(1, 6000) g"
            )
            connection.execute("INSERT INTO gone VALUES (1, '10.0.0.1')")
        control.remove_tables(describe(shop, "gone"))
        with LogReader(params_of(shop), SLOT) as first:
            first.start(session.point.position, kept)
            with pytest.raises(ReplicationError) as caught:
                read_all(first, control)
        assert caught.value.code == "source:connection-lost"
        with LogReader(params_of(shop), SLOT) as second:
            second.start(session.point.position, kept)
            blocks = read_all(second, control)
        assert {b.context["binary"] for b in blocks} == {False}
        assert sum(len(t) for t in changes(blocks, kept)["orders"]) == 6000
        with LogReader(params_of(shop), SLOT) as later:
            later.start(blocks[-1].position, kept)
            shop.execute("INSERT INTO orders VALUES (0, 'after')")
            assert {b.context["binary"] for b in read_all(later, control)} == {True}
        control.drop()

    def test_partitions_come_under_their_parent_and_their_left_out_columns_keep_it_binary(
        self, database
    ):
        """Guards `publish_via_partition_root` in `slots.publish`, without which rows come under a
        name that nobody chose, and `BinaryGuard`'s columns that were left out, whose types must not
        turn the stream to text."""
        database.execute(
            "CREATE TABLE parts (id int PRIMARY KEY, source inet) PARTITION BY RANGE (id)"
        )
        database.execute("CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (10)")
        with PostgresqlCatalog(params_of(database)) as catalog:
            chosen = TableSelection(TableId("public", "parts"), ("id",))
            tables = list(catalog.describe([chosen]).values())
        reader, session = begin(database, SLOT, tables)
        with reader, session, LogControl(params_of(database), SLOT) as control:
            database.execute("INSERT INTO parts VALUES (1, '10.0.0.1')")
            database.execute("UPDATE parts SET id = 2")
            blocks = read_all(reader, control)
            control.drop()
        assert blocks[0].context["binary"]
        (found,) = changes(blocks, tables)["parts"]
        assert found.column("id").to_pylist() == [1, 2]


class TestPositions:
    def test_only_what_is_acknowledged_is_flushed(self, shop, reader, control, monkeypatch):
        """Guards durable first, then acknowledged (CORRECTNESS 1): status tells the server
        `_flushed`, which `acknowledge` alone moves; told what was read, it would forget log that is
        nowhere else yet."""
        monkeypatch.setattr(log, "STATUS_SECONDS", 0.0)
        before = slot_field(shop, "confirmed_flush_lsn")
        shop.execute("INSERT INTO orders VALUES (1, 'a')")
        blocks = read_all(reader, control)
        was_read_at = shop.execute("SELECT clock_timestamp()")[0][0]
        deadline = time.monotonic() + 30
        while not shop.execute(
            "SELECT 1 FROM pg_stat_replication r JOIN pg_replication_slots s ON s.active_pid = "
            "r.pid"
            f" WHERE s.slot_name = '{SLOT}' AND r.reply_time > %s", [was_read_at]
        ):  # fmt: skip
            assert time.monotonic() < deadline, "no status came after the rows were read"
            reader.read(wait_seconds=0.01, max_bytes=1 << 20)
        assert slot_field(shop, "confirmed_flush_lsn") == before
        reader.acknowledge(blocks[-1].position)
        deadline = time.monotonic() + 10
        while slot_field(shop, "confirmed_flush_lsn") == before:
            assert time.monotonic() < deadline
            reader.read(wait_seconds=0.01, max_bytes=1 << 20)

    def test_transactions_before_the_start_are_dropped_whole(self, shop, reader, control):
        """Guards the start at the recorded position, which holds twice: the server is asked from
        there (`_open_stream`), and `pump.settle` drops what still comes before it; without both,
        rows come again."""
        shop.execute("INSERT INTO orders VALUES (1, 'a')")
        seen = read_all(reader, control)[-1].position
        shop.execute("INSERT INTO orders VALUES (2, 'b')")
        reader.close()
        tables = describe(shop, "orders", "views")
        reader.prepare(tables, seen)
        reader.start(seen, tables)
        found = changes(read_all(reader, control), tables)["orders"]
        assert [i for t in found for i in t.column("id").to_pylist()] == [2]

    def test_a_relation_within_a_dropped_transaction_is_still_known(self, shop, reader, control):
        """Guards `IS_SKIPPING` in `pump.settle`, and the context that `BlockCutter.relation` keeps
        meanwhile: the server begins at its own, older position; the schemas it sends there are not
        sent again."""
        shop.execute("INSERT INTO orders VALUES (1, 'a')")
        seen = read_all(reader, control)[-1].position
        shop.execute("INSERT INTO orders VALUES (2, 'b')")
        reader.close()
        start = reader._identity.position(1)
        tables = describe(shop, "orders", "views")
        reader.start(start, tables)
        reader._cutter.state[pump.START] = seen.ordinal
        blocks = read_all(reader, control)
        found = changes(blocks, tables)["orders"]
        assert "R" not in messages(blocks)
        assert [i for t in found for i in t.column("id").to_pylist()] == [2]

    def test_a_heartbeat_moves_an_idle_stream_while_another_database_is_busy(
        self, shop, reader, control, postgres
    ):
        """Guards the keepalive's place as idle position (`pump.keepalive`, IDLE_END; CORRECTNESS
        23): without it an idle stream stays where its last transaction ended, and its slot keeps
        the busy database's log."""
        postgres.execute("CREATE TABLE IF NOT EXISTS busy (i int)")
        postgres.execute("INSERT INTO busy SELECT g FROM generate_series(1, 20000) g")
        before = reader.idle_position()
        started = time.monotonic()
        assert read_all(reader, control) == []
        after = reader.idle_position()
        assert time.monotonic() - started < 5
        assert after is not None
        assert before is None or after.ordinal > before.ordinal

    def test_the_stream_answers_while_nothing_is_acknowledged(self, shop, reader, control):
        """Guards the deadline in `LogReader._await`: without it a quiet source holds the reading
        thread, which has status to send and a stop to hear."""
        assert reader.read(wait_seconds=0.2, max_bytes=1 << 20) is None
        assert control.status().is_active


class TestStart:
    def test_a_missing_slot_is_reported(self, shop, reader, control):
        """Guards the first question of `slots.verify` (CORRECTNESS 23): with the slot went the log
        after the position; a new one made in silence would leave a hole."""
        position = reader._identity.position(reader._flushed)
        reader.close()
        control.drop()
        assert code_of_prepare(shop, position) == "source:slot-missing"

    def test_a_slot_made_again_is_reported(self, shop, reader, control):
        """Guards `confirmed_flush <= captured` in `slots.verify` (CORRECTNESS 23): a slot made
        again begins now, and what was committed before it would be missing without a word."""
        position = reader._identity.position(reader._flushed)
        reader.close()
        shop.execute("INSERT INTO orders VALUES (1, 'a')")
        control._ask(lambda c: c.execute("SELECT pg_drop_replication_slot(%s)", [SLOT]))
        shop.execute(f"SELECT pg_create_logical_replication_slot('{SLOT}', 'pgoutput')")
        assert code_of_prepare(shop, position) == "source:position-lost"

    def test_a_log_that_ends_before_the_position_is_reported(self, shop, reader):
        """Guards `captured <= the server's end` in `slots.verify` (CORRECTNESS 23): after a restore
        the same places hold other changes, which would be dropped as already seen."""
        position = reader._identity.position(1 << 60)
        assert code_of_prepare(shop, position) == "source:position-lost"

    def test_another_server_is_reported(self, shop, reader):
        """Guards the system identifier in `slots._verify_identity` (CORRECTNESS 23): a place in one
        server's log says nothing of another's."""
        known = reader._identity.position(reader._flushed)
        other = dataclasses.replace(known, detail={**known.detail, "system_identifier": "1"})
        assert code_of_prepare(shop, other) == "source:position-lost"

    def test_a_publication_that_was_dropped_is_reported(self, shop, reader):
        """Guards the publications in `slots.verify`: what is committed while one is gone never
        comes, also once it was made again."""
        shop.execute(f"DROP PUBLICATION {SLOT}_full")
        assert (
            code_of_prepare(shop, reader._identity.position(reader._flushed))
            == "source:position-lost"
        )

    @pytest.mark.parametrize(
        "change", ["publish_via_partition_root = false", "publish = 'insert, truncate'"]
    )
    def test_a_publication_that_was_altered_is_reported_and_mended(self, shop, reader, change):
        """Guards `slots.ALTERED`: what it left out meanwhile never comes; publications are made as
        they have to be by the next first start, also where they are there already."""
        position = reader._identity.position(reader._flushed)
        shop.execute(f"ALTER PUBLICATION {SLOT}_full SET ({change})")
        assert code_of_prepare(shop, position) == "source:position-lost"
        reader.close()
        again, session = begin(shop, SLOT, describe(shop, "orders", "views"))
        session.close()
        again.prepare(describe(shop, "orders", "views"), session.point.position)
        again.close()

    def test_a_publication_of_an_older_server_sends_generated_columns_too(self, database):
        """Guards `slots.ALTERED`: an upgrade keeps publications, without the columns that the new
        server could send; described but not sent, one would take the values of its neighbour."""
        options = "publish_via_partition_root = true, publish ="
        database.execute(
            "CREATE TABLE t (id int PRIMARY KEY, total int GENERATED ALWAYS AS (a * b) STORED, a "
            "int, b int);"
            f"CREATE PUBLICATION {SLOT}_full WITH ({options} 'insert, update, delete, truncate');"
            f"CREATE PUBLICATION {SLOT}_ins WITH ({options} 'insert, truncate')"
        )
        tables = describe(database, "t")
        reader, session = begin(database, SLOT, tables)
        session.close()
        with reader, LogControl(params_of(database), SLOT) as control:
            database.execute("INSERT INTO t (id, a, b) VALUES (1, 3, 5)")
            (found,) = changes(read_all(reader, control), tables)["t"]
            control.drop()
        sent = [c.name for c in tables[0].supported]
        (row,) = found.select(sent).to_pylist()
        assert row == {n: v for n, v in {"id": 1, "total": 15, "a": 3, "b": 5}.items() if n in sent}

    def test_a_server_on_an_older_timeline_is_reported(self, shop, reader):
        """Guards `slots._verify_identity`: the first timeline has no history to ask for, and an
        error of the server would be tried again for ever."""
        known = reader._identity.position(reader._flushed)
        later = dataclasses.replace(known, detail={**known.detail, "timeline": 2})
        assert code_of_prepare(shop, later) == "source:position-lost"

    def test_a_slot_left_by_a_first_start_that_crashed_is_made_again(self, shop, reader):
        """Guards `drop_slot` in `LogReader.prepare` without a position: a slot left behind would
        refuse CREATE_REPLICATION_SLOT, so that no later start could ever begin."""
        reader.close()
        before = slot_field(shop, "confirmed_flush_lsn")
        again, session = begin(shop, SLOT, describe(shop, "orders", "views"))
        session.close()
        again.close()
        assert slot_field(shop, "confirmed_flush_lsn") != before

    def test_a_second_reader_of_the_slot_is_refused(self, shop, reader):
        """Guards the answer to START_REPLICATION in `LogReader._open_stream`, and its rule in
        `errors.RULES`: two runs must not both believe that they read the slot."""
        second = LogReader(params_of(shop), SLOT)
        with pytest.raises(ReplicationError) as caught:
            second.start(Position(1), describe(shop, "orders"))
        assert caught.value.code == "source:slot-in-use"

    def test_a_cut_connection_is_reported(self, shop, reader):
        """Guards `LogReader._raise_ended` and the translation in `_wait_readable`: without both, a
        stream that the server ended looks like one in which nothing happens."""
        shop.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name "
            f"= '{SLOT}'"
        )
        with pytest.raises(ReplicationError) as caught:
            read_until(reader, lambda _: False)
        assert caught.value.code == "source:connection-lost"

    def test_a_text_that_the_server_can_not_send_is_reported(self, postgres):
        """Guards the rules for encodings in `errors.RULES`: reported as a cut connection, the same
        change would be asked for again without an end, and the server would keep all of its log."""
        name = "windows_encoded"
        postgres.execute(
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'WIN1252' LC_COLLATE 'C' "
            "LC_CTYPE 'C'"
        )
        database = Database(postgres, name)
        try:
            database.execute("CREATE TABLE t (id int PRIMARY KEY, note text)")
            (table,) = describe(database, "t")
            reader, session = begin(database, SLOT, [table])
            session.close()
            with reader, database.connect(client_encoding="WIN1252") as plain:
                plain.execute(b"INSERT INTO t VALUES (1, E'\\x81')")
                with pytest.raises(ReplicationError) as caught:
                    read_until(reader, lambda _: False)
            assert caught.value.code == "source:text-encoding"
            with (
                snapshot_again(params_of(database), SLOT) as later,
                pytest.raises(ReplicationError) as caught,
            ):
                snapshot(later, database, table)
            assert caught.value.code == "source:value-unsupported"
        finally:
            drop_database(postgres, name)


class TestControl:
    def test_tables_are_added_and_removed(self, shop, reader, control):
        """Guards `slots.publish` and `slots.unpublish` beside a running stream, each safe to
        repeat: fails where a table's rows do not come after the one returned, or still come after
        the other."""
        shop.execute("CREATE TABLE more (id int PRIMARY KEY)")
        (more,) = describe(shop, "more")
        assert control.add_tables([more]) == [more]
        assert control.add_tables([more]) == []
        shop.execute("INSERT INTO more VALUES (1)")
        assert "I" in messages(read_all(reader, control))
        control.remove_tables([more])
        control.remove_tables([more])
        shop.execute("INSERT INTO more VALUES (2)")
        assert "I" not in messages(read_all(reader, control))

    def test_a_table_made_again_is_no_longer_published(self, shop, reader, control):
        """Guards `slots.unpublished` (CORRECTNESS 21): drop and re-create takes a table out of its
        publication without a word; without this look its copy would stand still for ever."""
        tables = describe(shop, "orders", "views")
        assert control.unpublished(tables) == []
        shop.execute("DROP TABLE orders")
        shop.execute("CREATE TABLE orders (id int PRIMARY KEY)")
        assert [t.id.name for t in control.unpublished(describe(shop, "orders", "views"))] == [
            "orders"
        ]

    def test_drop_ends_the_reader_and_leaves_nothing(self, shop, reader, control):
        """Guards `slots.drop_slot` ending whoever reads the slot, and its repeats: one that is left
        behind keeps the server's log until the disk is full."""
        control.drop()
        control.drop()
        assert slot_field(shop, "slot_name") is None
        assert shop.execute("SELECT count(*) FROM pg_publication")[0][0] == 0

    def test_the_status_knows_what_is_retained_and_the_clock(self, shop, reader, control):
        """Guards `control.STATUS`: the bytes kept for the slot count from its `restart_lsn`, and
        lag goes by the source's own clock (CORRECTNESS 33)."""
        shop.execute("INSERT INTO orders SELECT g, 'n' FROM generate_series(1, 5000) g")
        control.heartbeat()
        status = control.status()
        assert status.retained_bytes > 100_000
        assert status.is_active
        assert abs(status.server_time - time.time()) < 60
        assert status.end > 0
