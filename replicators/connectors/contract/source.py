"""The promises of a source as suites. A plugin's test class inherits the suite of its kind
(`ByteLogContract`, `ChangePollContract`) and supplies the fixtures.

Only tests import this module, and `target.py` and `sink.py` beside it. The plugin's own tests cover
what is special to it.
"""

from __future__ import annotations

import itertools
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from replicators.connectors.log import ByteLog, DecodedTable, LogBlock, LogReader
from replicators.connectors.model.changes import SEQUENCE_SHIFT, Op, change_schema
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.connectors.poll import Polled, PollReader, TableChanges, polled_schema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.lookup import message_of
from replicators.connectors.problems.problem import Problem, Severity
from replicators.connectors.snapshot import ChunkReader, FirstSnapshotOpener, SnapshotSession
from replicators.connectors.source import SourcePlugin

DEADLINE_SECONDS = 60.0
MAX_BYTES = 4 << 20
_NUMBERS = itertools.count(1)


def named(path: str) -> Any:
    """The object that a plugin names by `module:attribute`."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def code_of(act: Callable[[], Any]) -> str:
    """The code of the error that `act` must raise."""
    with pytest.raises(ReplicationError) as caught:
        act()
    return caught.value.code


def assert_readable(problems: Sequence[Problem], secret: str) -> None:
    """The problems are usable by a person: they block, they have texts and all their values, and
    they do not hold the secret."""
    assert problems
    for problem in problems:
        shown = problem.message
        whole = " ".join((shown.title, shown.text, shown.suggestion, shown.impact))
        assert problem.severity is Severity.ERROR
        assert shown.suggestion
        assert not secret or secret not in whole
        assert "{" not in whole


class SourceContract:
    """Supply `plugin`, `params`, `dead_params` (nothing answers there), `table` (a table with an
    integer key `id` and the rows 1 to `rows`), and `insert` (commits a row with that id)."""

    slot = "replicator_contract"
    leaves_traces = True  # the source keeps something, as a slot; without it the position is lost
    rows = 500

    @pytest.fixture
    def plugin(self) -> SourcePlugin:
        """The plugin."""
        raise NotImplementedError

    @pytest.fixture
    def params(self) -> Any:
        """Params that work."""
        raise NotImplementedError

    @pytest.fixture
    def dead_params(self) -> Any:
        """Params of a host where nothing answers."""
        raise NotImplementedError

    @pytest.fixture
    def table(self) -> TableId:
        """A table with rows."""
        raise NotImplementedError

    @pytest.fixture
    def insert(self) -> Callable[[int], None]:
        """Commits a row."""
        raise NotImplementedError

    @pytest.fixture
    def schema(self, plugin: SourcePlugin, params: Any, table: TableId) -> TableSchema:
        """The table as the catalog describes it."""
        with plugin.catalog(params) as catalog:
            return catalog.describe([TableSelection(table)])[table]

    @pytest.fixture
    def begun(
        self, plugin: SourcePlugin, params: Any, schema: TableSchema
    ) -> Iterator[tuple[Any, SnapshotSession]]:
        """A first start: the kind's reader, prepared and not started, and the consistent snapshot
        of its start. Everything is dropped afterwards."""
        with plugin.stream.reader(params, self.slot) as reader:
            reader.prepare([schema], None)
            first: FirstSnapshotOpener[Any] = plugin.stream.snapshot_first
            with first(params, self.slot, reader) as session:
                yield reader, session
        with plugin.control(params, self.slot) as control:
            control.drop()

    # --- looking -------------------------------------------------------------------------------------------------  # noqa: E501
    def test_tables_are_listed_in_order_and_described(
        self, plugin: SourcePlugin, params: Any, table: TableId
    ) -> None:
        """Guards `Catalog`: fails where it describes a missing table, where it ignores a choice of
        columns, or where a schema does not come back from JSON. Segments' heads freeze schemas as
        JSON (CORRECTNESS 3)."""
        missing = TableId(table.schema, "is_not_there")
        with plugin.catalog(params) as catalog:
            listed = [t.id for t in catalog.list_tables()]
            found = catalog.describe([TableSelection(table), TableSelection(missing)])
            narrow = catalog.describe([TableSelection(table, ("id",))])[table]
        assert table in listed
        assert listed == sorted(listed)
        assert set(found) == {table}
        assert found[table].key == ("id",)
        assert TableSchema.from_json(found[table].to_json()) == found[table]
        assert [c.name for c in narrow.columns] == ["id"]

    def test_checks_find_nothing_where_all_is_well_and_name_what_is_not(
        self, plugin: SourcePlugin, params: Any, table: TableId
    ) -> None:
        """Guards `Checks` in both directions: a false alarm would stop a correct source, and a
        problem that does not name its table can't be mended."""
        missing = TableId(table.schema, "is_not_there")
        with plugin.checks(params) as checks:
            assert not [p for p in checks.connection() if p.severity is Severity.ERROR]
            assert checks.tables([TableSelection(table)]) == []
            assert [p.table for p in checks.tables([TableSelection(missing)])] == [missing]

    def test_a_dead_host_is_a_problem_to_checks_and_an_error_to_the_rest(
        self, plugin: SourcePlugin, dead_params: Any
    ) -> None:
        """Guards the plugin's `errors.py`: a driver's exception that is not translated would reach
        the page, perhaps with the password. The statements to drop by hand are known without the
        host."""
        with plugin.checks(dead_params) as checks:
            assert_readable(checks.connection(), getattr(dead_params, "password", ""))

        def look() -> None:
            with plugin.catalog(dead_params) as catalog:
                catalog.list_tables()

        def drop() -> None:
            with plugin.control(dead_params, self.slot) as control:
                assert control.drop_statements()
                control.drop()

        assert code_of(look).startswith("source:")
        assert code_of(drop).startswith("source:")

    # --- snapshot ------------------------------------------------------------------------------------------------  # noqa: E501
    def test_chunks_cover_a_table_exactly_once_in_the_declared_schema(
        self,
        plugin: SourcePlugin,
        params: Any,
        schema: TableSchema,
        insert: Callable[[int], None],
        begun: tuple[Any, SnapshotSession],
    ) -> None:
        """Guards `SnapshotSession.plan` and the reader that goes to a task (CORRECTNESS 16, 19):
        fails where chunks overlap or leave a gap, where an exact snapshot shows a later row, or
        where a converging snapshot lacks it."""
        _, session = begun
        insert(self.rows + 1)
        chunks = session.plan(schema, rows_per_chunk=self.rows // 4)
        read: ChunkReader = named(plugin.chunk_reader)(params, session.point.token)
        in_a_task: ChunkReader = pickle.loads(pickle.dumps(read))  # noqa: S301 - its own bytes
        batches = [b for chunk in chunks for b in in_a_task(chunk, schema)]
        assert len(chunks) > 1
        assert len({c.number for c in chunks}) == len(chunks)
        assert session.is_alive()
        assert all(b.schema == schema.arrow_schema() for b in batches)
        copied = pa.Table.from_batches(batches, schema=schema.arrow_schema())
        # A converging snapshot also has rows that were committed before their chunk was read. The
        # log brings them again.
        last = self.rows if plugin.capabilities.has_exact_snapshot else self.rows + 1
        assert sorted(copied["id"].to_pylist()) == list(range(1, last + 1))

    def test_what_was_made_is_dropped_once_and_then_its_position_is_lost(
        self,
        plugin: SourcePlugin,
        params: Any,
        schema: TableSchema,
        begun: tuple[Any, SnapshotSession],
    ) -> None:
        """Guards `SourceControl.drop` and its repeats, and `prepare` (CORRECTNESS 23): where the
        log depends on what was dropped, going on would leave a gap."""
        reader, session = begun
        reader.close()
        with plugin.control(params, self.slot) as control:
            assert control.status().end > 0
            control.add_tables([schema])
            control.remove_tables([schema])
            control.remove_tables([schema])
            control.drop()
            control.drop()
        with plugin.stream.reader(params, self.slot) as second:
            if not self.leaves_traces:
                second.prepare([schema], session.point.position)
                return
            code = code_of(lambda: second.prepare([schema], session.point.position))
        assert message_of(code).ends_log


class ByteLogContract(SourceContract):
    """The promises of a source that has a `log`."""

    @staticmethod
    def _log(plugin: SourcePlugin) -> ByteLog:
        assert plugin.log is not None
        return plugin.log

    def test_the_log_begins_where_the_first_view_ends(
        self,
        plugin: SourcePlugin,
        params: Any,
        schema: TableSchema,
        insert: Callable[[int], None],
        begun: tuple[LogReader, SnapshotSession],
    ) -> None:
        """Guards the hand-off (CORRECTNESS 16): fails where the stream begins after the snapshot's
        point and so loses a row, or where it begins before that point."""
        reader, session = begun
        insert(self.rows + 1)
        reader.start(session.point.position, [schema])
        blocks = self._drain(plugin, params, reader)
        assert self._ids(plugin, schema, blocks) == [self.rows + 1]
        assert blocks[-1].ends_closed
        assert blocks[-1].position.ordinal > session.point.position.ordinal

    def test_decoding_again_gives_the_same_rows_and_numbers(
        self,
        plugin: SourcePlugin,
        params: Any,
        schema: TableSchema,
        insert: Callable[[int], None],
        begun: tuple[LogReader, SnapshotSession],
    ) -> None:
        """Guards CORRECTNESS 3: a row's number comes from its place in the segment. With a counter
        or a clock, decoding again after a crash would give other rows."""
        reader, session = begun
        for number in (1, 2):
            insert(self.rows + number)
        reader.start(session.point.position, [schema])
        blocks = self._drain(plugin, params, reader)
        (first,), (again,) = (self._decode(plugin, schema, blocks) for _ in range(2))
        assert first.changes.equals(again.changes)
        assert first.changes.schema == change_schema(schema)
        assert first.counts.inserts == first.counts.rows == 2
        sequences = first.changes["_sequence"].to_pylist()
        assert sequences == sorted(set(sequences))
        assert {s >> SEQUENCE_SHIFT for s in sequences} == {7}

    def test_a_position_survives_reopening_and_is_acknowledged_as_often_as_one_likes(
        self,
        plugin: SourcePlugin,
        params: Any,
        schema: TableSchema,
        insert: Callable[[int], None],
        begun: tuple[LogReader, SnapshotSession],
    ) -> None:
        """Guards CORRECTNESS 1: the stream goes on right after a position that was stored as JSON.
        It fails where the last transaction comes again or the next one is left out. Older
        acknowledgements and repeats change nothing."""
        reader, session = begun
        reader.start(session.point.position, [schema])
        insert(self.rows + 1)
        reached = self._drain(plugin, params, reader)[-1].position
        for position in (reached, reached, session.point.position):
            reader.acknowledge(position)
        reader.close()
        kept = Position.from_json(reached.to_json())
        insert(self.rows + 2)
        with self._log(plugin).reader(params, self.slot) as second:
            second.prepare([schema], kept)
            second.prepare([schema], kept)
            second.start(kept, [schema])
            assert self._ids(plugin, schema, self._drain(plugin, params, second)) == [self.rows + 2]

    def _drain(self, plugin: SourcePlugin, params: Any, reader: LogReader) -> list[LogBlock]:
        """Blocks up to a heartbeat that is sent now."""
        with plugin.control(params, self.slot) as control:
            mark = control.heartbeat()
        blocks: list[LogBlock] = []
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            idle = reader.idle_position()
            if idle is not None and idle.ordinal >= mark:
                return blocks
            assert time.monotonic() < deadline, f"only {len(blocks)} blocks came"
            block = reader.read(wait_seconds=0.1, max_bytes=MAX_BYTES)
            if block is not None:
                blocks.append(block)

    def _decode(
        self, plugin: SourcePlugin, schema: TableSchema, blocks: Sequence[LogBlock]
    ) -> list[DecodedTable]:
        head = {"context": blocks[0].context, "tables": [schema.to_json()]}
        body = np.frombuffer(b"".join(b.data for b in blocks), np.uint8)
        found = list(named(self._log(plugin).decoder)(head, body, 7))
        assert all(isinstance(f, DecodedTable) for f in found), found
        return found

    def _ids(
        self, plugin: SourcePlugin, schema: TableSchema, blocks: Sequence[LogBlock]
    ) -> list[int]:
        return [
            i for d in self._decode(plugin, schema, blocks) for i in d.changes["id"].to_pylist()
        ]


class ChangePollContract(SourceContract):
    """The promises of a source that is a `poll`."""

    def test_changes_begin_where_the_first_view_ends(
        self,
        plugin: SourcePlugin,
        schema: TableSchema,
        insert: Callable[[int], None],
        begun: tuple[PollReader, SnapshotSession],
    ) -> None:
        """Guards the hand-off (CORRECTNESS 16): a change that is neither in the snapshot nor in the
        first poll is lost. A change that is in both comes twice to a copy that holds the past."""
        reader, session = begun
        insert(self.rows + 1)
        found = self._poll(reader, session.point.position, schema)
        assert self._ids(found) == [self.rows + 1]
        assert found.position.ordinal > session.point.position.ordinal
        places = [p for part in found.changes for p in part.rows["_position"].to_pylist()]
        assert all(session.point.position.ordinal <= p < found.position.ordinal for p in places)

    def test_a_poll_gives_the_declared_columns_in_the_order_of_commits(
        self,
        schema: TableSchema,
        insert: Callable[[int], None],
        begun: tuple[PollReader, SnapshotSession],
    ) -> None:
        """Guards `polled_schema` and `Polled.changes`: the engine numbers rows in the order in
        which they come, and the last row of a key wins."""
        reader, session = begun
        for number in (1, 2, 3):
            insert(self.rows + number)
        found = self._poll(reader, session.point.position, schema)
        assert self._ids(found) == [self.rows + n for n in (1, 2, 3)]
        assert all(part.schema == schema.bare for part in found.changes)
        assert all(part.rows.schema == polled_schema(schema) for part in found.changes)
        rows = pa.concat_tables(part.rows for part in found.changes)
        places = rows["_position"].to_pylist()
        assert places == sorted(places)
        assert set(rows["_op"].to_pylist()) == {int(Op.INSERT)}

    def test_a_poll_that_was_not_acknowledged_comes_again(
        self,
        plugin: SourcePlugin,
        params: Any,
        schema: TableSchema,
        insert: Callable[[int], None],
        begun: tuple[PollReader, SnapshotSession],
    ) -> None:
        """Guards CORRECTNESS 1: a run that dies before its transaction polls from the same position
        again, and must get the same changes. Positions are stored as JSON. A second or an older
        acknowledgement changes nothing."""
        reader, session = begun
        start = session.point.position
        insert(self.rows + 1)
        first = self._poll(reader, start, schema)
        reader.close()
        assert plugin.poll is not None
        with plugin.poll.reader(params, self.slot) as second:
            kept = Position.from_json(start.to_json())
            second.prepare([schema], kept)
            second.prepare([schema], kept)
            assert self._ids(self._poll(second, kept, schema)) == self._ids(first)
            reached = Position.from_json(first.position.to_json())
            for position in (reached, reached, start):
                second.acknowledge(position)
            insert(self.rows + 2)
            assert self._ids(self._poll(second, reached, schema)) == [self.rows + 2]

    def test_small_polls_end_between_transactions(
        self,
        schema: TableSchema,
        insert: Callable[[int], None],
        begun: tuple[PollReader, SnapshotSession],
    ) -> None:
        """Guards `max_bytes` and `has_more`: a source that is far ahead is read in portions. No
        portion ends within a transaction, and none is empty before the end."""
        reader, session = begun
        for number in (1, 2, 3):
            insert(self.rows + number)
        ids: list[int] = []
        position, has_more = session.point.position, True
        while has_more:
            found = reader.poll(position, [schema], max_bytes=1)
            assert found.position.ordinal > position.ordinal
            ids += self._ids(found)
            position, has_more = found.position, found.has_more
        assert ids == [self.rows + n for n in (1, 2, 3)]
        quiet = reader.poll(position, [schema], max_bytes=MAX_BYTES)
        assert quiet.changes == ()
        assert not quiet.has_more

    def _poll(self, reader: PollReader, after: Position, schema: TableSchema) -> Polled:
        """All that comes after the position, as one answer."""
        changes: list[TableChanges] = []
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            found = reader.poll(after, [schema], max_bytes=MAX_BYTES)
            changes += found.changes
            after = found.position
            if changes and not found.has_more:
                return Polled(after, tuple(changes))
            assert time.monotonic() < deadline, "no change came"
            time.sleep(0.1)

    def _ids(self, found: Polled) -> list[int]:
        return [i for part in found.changes for i in part.rows["id"].to_pylist()]
