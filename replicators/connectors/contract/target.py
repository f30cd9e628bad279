"""The promises of `target.py` as a suite. A plugin's test class inherits it and supplies its
fixtures."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors.contract.source import assert_readable, code_of
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.target import (
    ChangeSink,
    Delivery,
    FoldedBatch,
    KeyRange,
    MergeTarget,
    ReadsRows,
    Rewindable,
    TargetPlugin,
    TargetTable,
    Watermarked,
)

_NUMBERS = itertools.count(1)


class TargetFixtures:
    """What the suites of a merge target need. Supply `plugin`, `params`, `dead_params` (nothing can
    be written there), `writer`, and `read` (the live rows of a table, read without the writer, in
    order)."""

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
    def writer(self) -> MergeTarget:
        """The plugin's writer."""
        raise NotImplementedError

    @pytest.fixture
    def read(self) -> Callable[[TableSchema], list[tuple[Any, ...]]]:
        """Reads a live table."""
        raise NotImplementedError

    @pytest.fixture
    def schema(self) -> TableSchema:
        """A table of this test's own."""
        columns = (
            Column("id", Int(64), "bigint", nullable=False, ordinal=1),
            Column("note", String(), "text", ordinal=2),
        )
        name = f"contract_{next(_NUMBERS)}"
        return TableSchema(TableId("contract", name), columns, ("id",), ("id",))

    @pytest.fixture
    def live(self, writer: MergeTarget, schema: TableSchema) -> TargetTable:
        """A published table: rows 1 and 2, sequence 10."""
        table = TargetTable(schema.id, "r1", 1)
        self._stage(writer, table, schema, [(1, "a"), (2, "b")])
        uuid = writer.publish_snapshot(table, schema, 10)
        return TargetTable(schema.id, "r1", 1, uuid)

    def _stage(
        self,
        writer: MergeTarget,
        table: TargetTable,
        schema: TableSchema,
        rows: Sequence[tuple[Any, ...]],
    ) -> None:
        """Stage rows as a task would, from `begin_snapshot` on."""
        writer.begin_snapshot(table, schema)
        place = writer.snapshot_place(table, schema)
        path = f"{place.folder}/1.parquet"
        with pq.ParquetWriter(path, place.arrow, **place.options) as out:
            out.write_table(self._rows(schema.arrow_schema(), rows).cast(place.arrow))
        writer.load_snapshot_files(table, schema, [path])

    def _batch(
        self,
        folder: Path,
        schema: TableSchema,
        sequence: int,
        rows: Sequence[tuple[int, str | None, bool]],
    ) -> FoldedBatch:
        """A batch of (id, note, is deleted)."""
        path = folder / f"{sequence}.parquet"
        arrow = pa.schema([*schema.arrow_schema(), pa.field("_delete", pa.bool_())])
        pq.write_table(self._rows(arrow, rows), path)
        keys = [r[0] for r in rows]
        ranges = (KeyRange(min(keys), max(keys)),)
        return FoldedBatch(schema, (str(path),), sequence, len(rows), ranges=ranges)

    def _rows(self, arrow: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
        return pa.Table.from_pylist([dict(zip(arrow.names, r, strict=True)) for r in rows], arrow)

    def _sequence(self, writer: MergeTarget, table: TargetTable) -> int:
        token = writer.token(table)
        assert token is not None
        return token.sequence


class TargetContract(TargetFixtures):
    """The promises of every merge target: staging, token, generations, owners."""

    def test_the_plugin_says_what_its_writer_can(
        self, plugin: TargetPlugin, writer: MergeTarget
    ) -> None:
        """Guards the capabilities: from them pages and REST offer a rewind, and show watermarks and
        delivery, without opening the target. The tests of the token below are the tests of "exactly
        once"."""
        can = plugin.capabilities
        assert isinstance(writer, MergeTarget) and not isinstance(writer, ChangeSink)
        assert can.delivery is Delivery.EXACTLY_ONCE
        assert can.can_rewind is isinstance(writer, Rewindable)
        assert can.has_watermarks is isinstance(writer, Watermarked)
        assert can.can_read_rows is isinstance(writer, ReadsRows)

    def test_staged_rows_are_seen_when_published_and_publishing_again_does_nothing(
        self, writer: MergeTarget, schema: TableSchema, read: Any
    ) -> None:
        """Guards the staging place and the token in the publishing commit (CORRECTNESS 13): fails
        where readers see half a copy, or where publishing again after a crash makes another
        table."""
        table = TargetTable(schema.id, "r1", 1)
        self._stage(writer, table, schema, [(1, "a")])
        assert writer.token(table) is None
        uuid = writer.publish_snapshot(table, schema, 10)
        assert writer.publish_snapshot(table, schema, 10) == uuid
        token = writer.token(table)
        assert token is not None
        assert (token.replicator, token.generation, token.sequence) == ("r1", 1, 10)
        assert token.table_uuid == uuid
        assert read(schema) == [(1, "a")]

    def test_beginning_again_throws_away_what_an_earlier_try_left(
        self, writer: MergeTarget, schema: TableSchema, read: Any
    ) -> None:
        """Guards `begin_snapshot`: if the staging place is not emptied, rows of a crashed try
        remain beside those of the next one."""
        table = TargetTable(schema.id, "r1", 1)
        self._stage(writer, table, schema, [(1, "half")])
        self._stage(writer, table, schema, [(2, "whole")])
        writer.publish_snapshot(table, schema, 10)
        assert read(schema) == [(2, "whole")]

    def test_a_batch_is_applied_once(
        self, writer: MergeTarget, schema: TableSchema, live: TargetTable, read: Any, tmp_path: Path
    ) -> None:
        """Guards the token in `merge` (CORRECTNESS 13): a crash may prevent the record of a batch,
        and then the batch comes again. The target's sequence shows that it is already applied."""
        batch = self._batch(
            tmp_path, schema, 20, [(1, "A", False), (2, None, True), (3, "c", False)]
        )
        assert writer.merge(live, batch).was_applied
        after = [(1, "A"), (3, "c")]
        assert read(schema) == after
        assert not writer.merge(live, batch).was_applied
        assert read(schema) == after
        assert self._sequence(writer, live) == 20

    def test_an_empty_batch_moves_the_token_alone(
        self, writer: MergeTarget, schema: TableSchema, live: TargetTable, read: Any
    ) -> None:
        """Guards CORRECTNESS 14: without a commit for an empty fold the table would count as behind
        although it lacks nothing."""
        assert writer.merge(live, FoldedBatch(schema, (), 30, 0)).was_applied
        assert self._sequence(writer, live) == 30
        assert read(schema) == [(1, "a"), (2, "b")]

    def test_a_taken_table_is_refused_and_stays_as_it_is(
        self, writer: MergeTarget, schema: TableSchema, live: TargetTable, read: Any, tmp_path: Path
    ) -> None:
        """Guards the owner's mark (CORRECTNESS 13): fails where copy, merge or drop of one
        replicator changes what another one wrote."""
        other = TargetTable(live.source, "r2", 1)
        batch = self._batch(tmp_path, schema, 20, [(9, "z", False)])
        assert code_of(lambda: writer.begin_snapshot(other, schema)) == "target:table-taken"
        assert code_of(lambda: writer.merge(other, batch)) == "target:table-replaced"
        writer.drop(other)
        assert read(schema) == [(1, "a"), (2, "b")]

    def test_a_copy_afresh_replaces_the_rows_in_one_step(
        self,
        plugin: TargetPlugin,
        writer: MergeTarget,
        schema: TableSchema,
        live: TargetTable,
        read: Any,
        tmp_path: Path,
    ) -> None:
        """Guards generations (CORRECTNESS 15): readers see the old rows until the new rows replace
        them, in one commit where the plugin says so. A late merge of the old generation is
        refused."""
        second = TargetTable(live.source, "r1", 2, live.table_uuid)
        self._stage(writer, second, schema, [(5, "e")])
        if plugin.capabilities.is_replaced_at_once:
            assert read(schema) == [(1, "a"), (2, "b")]
        writer.publish_snapshot(second, schema, 40)
        writer.publish_snapshot(second, schema, 40)
        assert read(schema) == [(5, "e")]
        late = self._batch(tmp_path, schema, 50, [(6, "f", False)])
        assert code_of(lambda: writer.merge(live, late)).startswith("target:table-")

    def test_a_dropped_table_is_gone_and_dropping_again_does_nothing(
        self, writer: MergeTarget, schema: TableSchema, live: TargetTable, tmp_path: Path
    ) -> None:
        """Guards `drop` and its repeats, and `target:table-missing`: a merge that makes the table
        anew would leave it without its other rows."""
        writer.drop(live)
        writer.drop(live)
        assert writer.token(live) is None
        batch = self._batch(tmp_path, schema, 20, [(1, "A", False)])
        assert code_of(lambda: writer.merge(live, batch)) == "target:table-missing"

    def test_checks_name_a_place_that_can_not_be_written(
        self, plugin: TargetPlugin, params: Any, dead_params: Any, schema: TableSchema
    ) -> None:
        """Guards the target's `Checks`: without them only the first copy, perhaps hours later,
        would find that nothing can be written."""
        with plugin.checks(params) as checks:
            assert checks.connection() == []
            assert checks.tables([schema], "r1") == []
        with plugin.checks(dead_params) as checks:
            assert_readable(checks.connection(), "")
