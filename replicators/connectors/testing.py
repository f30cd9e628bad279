"""The promises of `source.py` and `target.py` as suites: a plugin's test class inherits one and supplies its fixtures.

Only tests import this module. What is peculiar to a plugin is tested beside it, not here.
"""

from __future__ import annotations

import itertools
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors.errors import ReplicationError
from replicators.connectors.events import SEQUENCE_SHIFT, change_schema
from replicators.connectors.offsets import Position
from replicators.connectors.problems import Problem, Severity
from replicators.connectors.schema import Column, TableId, TableSchema, TableSelection
from replicators.connectors.source import (
    ChunkReader,
    DecodedTable,
    LogBlock,
    LogReader,
    SnapshotSession,
    SourcePlugin,
)
from replicators.connectors.target import (
    FoldedBatch,
    KeyRange,
    TargetPlugin,
    TargetTable,
    TargetWriter,
)
from replicators.connectors.types import Int, String

DEADLINE_SECONDS = 60.0
MAX_BYTES = 4 << 20
_NUMBERS = itertools.count(1)


def named(path: str) -> Any:
    """What a plugin names by `module:attribute`."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def code_of(act: Callable[[], Any]) -> str:
    """The code of the error that `act` must raise."""
    with pytest.raises(ReplicationError) as caught:
        act()
    return caught.value.code


def assert_readable(problems: Sequence[Problem], secret: str) -> None:
    """Problems that a person can act on: blocking, with texts and all their values, without the secret."""
    assert problems
    for problem in problems:
        shown = problem.message
        whole = " ".join((shown.title, shown.text, shown.suggestion, shown.impact))
        assert problem.severity is Severity.ERROR
        assert shown.suggestion
        assert not secret or secret not in whole
        assert "{" not in whole


class SourceContract:
    """Supply `plugin`, `params`, `dead_params` (nothing answers there), `table` (a table with an integer key `id` and the
    rows 1 to `rows`), and `insert` (commits a row with that id)."""

    slot = "replicator_contract"
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
    def shape(self, plugin: SourcePlugin, params: Any, table: TableId) -> TableSchema:
        """The table as the catalog describes it."""
        with plugin.catalog(params) as catalog:
            return catalog.describe([TableSelection(table)])[table]

    @pytest.fixture
    def begun(
        self, plugin: SourcePlugin, params: Any, shape: TableSchema
    ) -> Iterator[tuple[LogReader, SnapshotSession]]:
        """A first start: the log's reader, not yet streaming, and the view its start belongs to. All is dropped after."""
        with plugin.log_reader(params, self.slot) as reader:
            reader.prepare([shape], None)
            with plugin.snapshot_first(params, self.slot, reader) as session:
                yield reader, session
        with plugin.log_control(params, self.slot) as control:
            control.drop()

    # --- looking -------------------------------------------------------------------------------------------------
    def test_tables_are_listed_in_order_and_described(
        self, plugin: SourcePlugin, params: Any, table: TableId
    ) -> None:
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
        missing = TableId(table.schema, "is_not_there")
        with plugin.checks(params) as checks:
            assert not [p for p in checks.connection() if p.severity is Severity.ERROR]
            assert checks.tables([TableSelection(table)]) == []
            assert [p.table for p in checks.tables([TableSelection(missing)])] == [missing]

    def test_a_dead_host_is_a_problem_to_checks_and_an_error_to_the_rest(
        self, plugin: SourcePlugin, dead_params: Any
    ) -> None:
        with plugin.checks(dead_params) as checks:
            assert_readable(checks.connection(), getattr(dead_params, "password", ""))

        def look() -> None:
            with plugin.catalog(dead_params) as catalog:
                catalog.list_tables()

        def drop() -> None:
            with plugin.log_control(dead_params, self.slot) as control:
                assert control.drop_statements()
                control.drop()

        assert code_of(look).startswith("source:")
        assert code_of(drop).startswith("source:")

    # --- snapshot ------------------------------------------------------------------------------------------------
    def test_chunks_cover_a_table_exactly_once_in_the_declared_shape(
        self,
        plugin: SourcePlugin,
        params: Any,
        shape: TableSchema,
        insert: Callable[[int], None],
        begun: tuple[LogReader, SnapshotSession],
    ) -> None:
        _, session = begun
        insert(self.rows + 1)
        chunks = session.plan(shape, rows_per_chunk=self.rows // 4)
        read: ChunkReader = named(plugin.chunk_reader)(params, session.point.token)
        in_a_task: ChunkReader = pickle.loads(pickle.dumps(read))  # noqa: S301 - its own bytes
        batches = [b for chunk in chunks for b in in_a_task(chunk, shape)]
        assert len(chunks) > 1
        assert len({c.number for c in chunks}) == len(chunks)
        assert session.is_alive()
        assert all(b.schema == shape.arrow_schema() for b in batches)
        copied = pa.Table.from_batches(batches, schema=shape.arrow_schema())
        assert sorted(copied["id"].to_pylist()) == list(range(1, self.rows + 1))

    # --- log -----------------------------------------------------------------------------------------------------
    def test_the_log_begins_where_the_first_view_ends(
        self,
        plugin: SourcePlugin,
        params: Any,
        shape: TableSchema,
        insert: Callable[[int], None],
        begun: tuple[LogReader, SnapshotSession],
    ) -> None:
        reader, session = begun
        insert(self.rows + 1)
        reader.start(session.point.position, [shape])
        blocks = self._drain(plugin, params, reader)
        assert self._ids(plugin, shape, blocks) == [self.rows + 1]
        assert blocks[-1].ends_closed
        assert blocks[-1].position.value > session.point.position.value

    def test_decoding_again_gives_the_same_rows_and_numbers(
        self,
        plugin: SourcePlugin,
        params: Any,
        shape: TableSchema,
        insert: Callable[[int], None],
        begun: tuple[LogReader, SnapshotSession],
    ) -> None:
        reader, session = begun
        for number in (1, 2):
            insert(self.rows + number)
        reader.start(session.point.position, [shape])
        blocks = self._drain(plugin, params, reader)
        (first,), (again,) = (self._decode(plugin, shape, blocks) for _ in range(2))
        assert first.changes.equals(again.changes)
        assert first.changes.schema == change_schema(shape)
        assert first.counts.inserts == first.counts.rows == 2
        sequences = first.changes["_sequence"].to_pylist()
        assert sequences == sorted(set(sequences))
        assert {s >> SEQUENCE_SHIFT for s in sequences} == {7}

    def test_a_position_survives_reopening_and_is_acknowledged_as_often_as_one_likes(
        self,
        plugin: SourcePlugin,
        params: Any,
        shape: TableSchema,
        insert: Callable[[int], None],
        begun: tuple[LogReader, SnapshotSession],
    ) -> None:
        reader, session = begun
        reader.start(session.point.position, [shape])
        insert(self.rows + 1)
        reached = self._drain(plugin, params, reader)[-1].position
        for position in (reached, reached, session.point.position):
            reader.acknowledge(position)
        reader.close()
        kept = Position.from_json(reached.to_json())
        insert(self.rows + 2)
        with plugin.log_reader(params, self.slot) as second:
            second.prepare([shape], kept)
            second.prepare([shape], kept)
            second.start(kept, [shape])
            assert self._ids(plugin, shape, self._drain(plugin, params, second)) == [self.rows + 2]

    def test_what_was_made_is_dropped_once_and_then_its_position_is_lost(
        self,
        plugin: SourcePlugin,
        params: Any,
        shape: TableSchema,
        begun: tuple[LogReader, SnapshotSession],
    ) -> None:
        reader, session = begun
        reader.close()
        with plugin.log_control(params, self.slot) as control:
            assert control.status().end > 0
            control.add_tables([shape])
            control.remove_tables([shape])
            control.remove_tables([shape])
            control.drop()
            control.drop()
        with plugin.log_reader(params, self.slot) as second:
            code = code_of(lambda: second.prepare([shape], session.point.position))
        assert code in {"source:slot-missing", "source:position-lost"}

    def _drain(self, plugin: SourcePlugin, params: Any, reader: LogReader) -> list[LogBlock]:
        """Blocks up to a heartbeat that is sent now."""
        with plugin.log_control(params, self.slot) as control:
            mark = control.heartbeat()
        blocks: list[LogBlock] = []
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            idle = reader.idle_position()
            if idle is not None and idle.value >= mark:
                return blocks
            assert time.monotonic() < deadline, f"only {len(blocks)} blocks came"
            block = reader.read(wait_seconds=0.1, max_bytes=MAX_BYTES)
            if block is not None:
                blocks.append(block)

    def _decode(
        self, plugin: SourcePlugin, shape: TableSchema, blocks: Sequence[LogBlock]
    ) -> list[DecodedTable]:
        head = {"context": blocks[0].context, "tables": [shape.to_json()]}
        body = np.frombuffer(b"".join(b.data for b in blocks), np.uint8)
        found = list(named(plugin.decoder)(head, body, 7))
        assert all(isinstance(f, DecodedTable) for f in found), found
        return found

    def _ids(
        self, plugin: SourcePlugin, shape: TableSchema, blocks: Sequence[LogBlock]
    ) -> list[int]:
        return [i for d in self._decode(plugin, shape, blocks) for i in d.changes["id"].to_pylist()]


class TargetContract:
    """Supply `plugin`, `params`, `dead_params` (nothing can be written there), `writer`, and `read` (the live rows of a
    table, read without the writer, in order)."""

    @pytest.fixture
    def plugin(self) -> TargetPlugin:
        """The plugin."""
        raise NotImplementedError

    @pytest.fixture
    def params(self) -> Any:
        """Params that work."""
        raise NotImplementedError

    @pytest.fixture
    def dead_params(self) -> Any:
        """Params of a place that can't be written."""
        raise NotImplementedError

    @pytest.fixture
    def writer(self) -> TargetWriter:
        """The plugin's writer."""
        raise NotImplementedError

    @pytest.fixture
    def read(self) -> Callable[[TableSchema], list[tuple[Any, ...]]]:
        """Reads a live table."""
        raise NotImplementedError

    @pytest.fixture
    def shape(self) -> TableSchema:
        """A table of this test's own."""
        columns = (
            Column("id", Int(64), "bigint", nullable=False, ordinal=1),
            Column("note", String(), "text", ordinal=2),
        )
        name = f"contract_{next(_NUMBERS)}"
        return TableSchema(TableId("contract", name), columns, ("id",), ("id",))

    @pytest.fixture
    def live(self, writer: TargetWriter, shape: TableSchema) -> TargetTable:
        """A published table: rows 1 and 2, sequence 10."""
        table = TargetTable(shape.id, "r1", 1)
        self._stage(writer, table, shape, [(1, "a"), (2, "b")])
        uuid = writer.publish_snapshot(table, shape, 10)
        return TargetTable(shape.id, "r1", 1, uuid)

    def test_staged_rows_are_seen_when_published_and_publishing_again_does_nothing(
        self, writer: TargetWriter, shape: TableSchema, read: Any
    ) -> None:
        table = TargetTable(shape.id, "r1", 1)
        self._stage(writer, table, shape, [(1, "a")])
        assert writer.token(table) is None
        uuid = writer.publish_snapshot(table, shape, 10)
        assert writer.publish_snapshot(table, shape, 10) == uuid
        token = writer.token(table)
        assert token is not None
        assert (token.replicator, token.generation, token.sequence) == ("r1", 1, 10)
        assert token.table_uuid == uuid
        assert read(shape) == [(1, "a")]

    def test_beginning_again_throws_away_what_an_earlier_try_left(
        self, writer: TargetWriter, shape: TableSchema, read: Any
    ) -> None:
        table = TargetTable(shape.id, "r1", 1)
        self._stage(writer, table, shape, [(1, "half")])
        self._stage(writer, table, shape, [(2, "whole")])
        writer.publish_snapshot(table, shape, 10)
        assert read(shape) == [(2, "whole")]

    def test_a_batch_is_applied_once(
        self, writer: TargetWriter, shape: TableSchema, live: TargetTable, read: Any, tmp_path: Path
    ) -> None:
        batch = self._batch(
            tmp_path, shape, 20, [(1, "A", False), (2, None, True), (3, "c", False)]
        )
        assert writer.merge(live, batch).was_applied
        after = [(1, "A"), (3, "c")]
        assert read(shape) == after
        assert not writer.merge(live, batch).was_applied
        assert read(shape) == after
        assert self._sequence(writer, live) == 20

    def test_an_empty_batch_moves_the_token_alone(
        self, writer: TargetWriter, shape: TableSchema, live: TargetTable, read: Any
    ) -> None:
        assert writer.merge(live, FoldedBatch(shape, (), 30, 0)).was_applied
        assert self._sequence(writer, live) == 30
        assert read(shape) == [(1, "a"), (2, "b")]

    def test_a_taken_table_is_refused_and_stays_as_it_is(
        self, writer: TargetWriter, shape: TableSchema, live: TargetTable, read: Any, tmp_path: Path
    ) -> None:
        other = TargetTable(live.source, "r2", 1)
        batch = self._batch(tmp_path, shape, 20, [(9, "z", False)])
        assert code_of(lambda: writer.begin_snapshot(other, shape)) == "target:table-taken"
        assert code_of(lambda: writer.merge(other, batch)) == "target:table-replaced"
        writer.drop(other)
        assert read(shape) == [(1, "a"), (2, "b")]

    def test_a_copy_afresh_replaces_the_rows_in_one_step(
        self, writer: TargetWriter, shape: TableSchema, live: TargetTable, read: Any, tmp_path: Path
    ) -> None:
        second = TargetTable(live.source, "r1", 2, live.table_uuid)
        self._stage(writer, second, shape, [(5, "e")])
        assert read(shape) == [(1, "a"), (2, "b")]
        writer.publish_snapshot(second, shape, 40)
        writer.publish_snapshot(second, shape, 40)
        assert read(shape) == [(5, "e")]
        late = self._batch(tmp_path, shape, 50, [(6, "f", False)])
        assert code_of(lambda: writer.merge(live, late)).startswith("target:table-")

    def test_a_dropped_table_is_gone_and_dropping_again_does_nothing(
        self, writer: TargetWriter, shape: TableSchema, live: TargetTable, tmp_path: Path
    ) -> None:
        writer.drop(live)
        writer.drop(live)
        assert writer.token(live) is None
        batch = self._batch(tmp_path, shape, 20, [(1, "A", False)])
        assert code_of(lambda: writer.merge(live, batch)) == "target:table-missing"

    def test_checks_name_a_place_that_can_not_be_written(
        self, plugin: TargetPlugin, params: Any, dead_params: Any, shape: TableSchema
    ) -> None:
        with plugin.checks(params) as checks:
            assert checks.connection() == []
            assert checks.tables([shape], "r1") == []
        with plugin.checks(dead_params) as checks:
            assert_readable(checks.connection(), "")

    def _stage(
        self,
        writer: TargetWriter,
        table: TargetTable,
        shape: TableSchema,
        rows: Sequence[tuple[Any, ...]],
    ) -> None:
        """Stage rows as a task would, from `begin_snapshot` on."""
        writer.begin_snapshot(table, shape)
        place = writer.snapshot_place(table, shape)
        path = f"{place.folder}/1.parquet"
        with pq.ParquetWriter(path, place.arrow, **place.options) as out:
            out.write_table(self._rows(shape.arrow_schema(), rows).cast(place.arrow))
        writer.load_snapshot_files(table, shape, [path])

    def _batch(
        self,
        folder: Path,
        shape: TableSchema,
        sequence: int,
        rows: Sequence[tuple[int, str | None, bool]],
    ) -> FoldedBatch:
        """A batch of (id, note, is deleted)."""
        path = folder / f"{sequence}.parquet"
        arrow = pa.schema([*shape.arrow_schema(), pa.field("_delete", pa.bool_())])
        pq.write_table(self._rows(arrow, rows), path)
        keys = [r[0] for r in rows]
        ranges = (KeyRange(min(keys), max(keys)),)
        return FoldedBatch(shape, (str(path),), sequence, len(rows), ranges=ranges)

    def _rows(self, arrow: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
        return pa.Table.from_pylist([dict(zip(arrow.names, r, strict=True)) for r in rows], arrow)

    def _sequence(self, writer: TargetWriter, table: TargetTable) -> int:
        token = writer.token(table)
        assert token is not None
        return token.sequence
