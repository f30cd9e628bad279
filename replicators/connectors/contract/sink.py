"""The promises of `ChangeSink` as a suite. A plugin's test class inherits it and supplies its
fixtures."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from replicators.connectors.contract.source import assert_readable, code_of
from replicators.connectors.model.changes import Op, change_schema
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import (
    BatchKind,
    ChangeBatch,
    ChangeSink,
    Delivery,
    MergeTarget,
    RejectsRows,
    Resolved,
    Rewindable,
    TargetPlugin,
    TargetTable,
    Watermarked,
)

_NUMBERS = itertools.count(1)
START = datetime(2024, 11, 24, 7, 5, tzinfo=UTC)
"""The commit time of a suite's first change."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a test. `at` is in seconds after `START`. `unsent`: the log did not carry the
    note."""

    sequence: int
    op: Op
    id: int
    note: str | None = None
    at: float = 0.0
    old_id: int | None = None
    unsent: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """A change as a reader of the target finds it."""

    sequence: int
    operation: str
    id: int | None
    note: str | None


@dataclass(frozen=True, slots=True)
class HeldLane:
    """A lane that holds its rows. `breaks_after`: reading fails after so many rows."""

    number: int
    first: int
    last: int
    rows: int
    table: pa.Table
    breaks_after: int = -1

    def read(self) -> Iterator[pa.RecordBatch]:
        """The rows, in batches of a few."""
        done = 0
        for batch in self.table.to_batches(max_chunksize=500):
            if 0 <= self.breaks_after <= done:
                raise ReplicationError("log:store")
            yield batch
            done += batch.num_rows
        if self.breaks_after >= 0:
            raise ReplicationError("log:store")


def rows_of(changes: Sequence[Change], schema: TableSchema) -> pa.Table:
    """The changes in the form of change files."""
    columns = [c.name for c in schema.columns]
    note = columns.index("note")
    bit = bytearray((len(columns) + 7) // 8)
    bit[note >> 3] |= 1 << (note & 7)
    found = []
    for change in changes:
        gone = change.op in {Op.DELETE, Op.TRUNCATE}
        row: dict[str, Any] = {
            "_sequence": change.sequence,
            "_op": int(change.op),
            "_committed_at": START + timedelta(seconds=change.at),
            "_transaction": change.sequence,
            "_position": change.sequence,
            "_unchanged": bytes(bit) if change.unsent else None,
            "id": None if change.op is Op.TRUNCATE else change.id,
            "note": None if gone or change.unsent else change.note,
            "_before": None if change.old_id is None else {"id": change.old_id},
        }
        found.append(row)
    return pa.Table.from_pylist(found, schema=change_schema(schema))


def lanes(changes: Sequence[Change], schema: TableSchema, count: int = 1) -> tuple[HeldLane, ...]:
    """The changes in so many contiguous lanes."""
    step = max(1, -(-len(changes) // count))
    parts = [changes[i : i + step] for i in range(0, len(changes), step)]
    return tuple(
        HeldLane(n, p[0].sequence, p[-1].sequence, len(p), rows_of(p, schema))
        for n, p in enumerate(parts, 1)
    )


def batch(
    changes: Sequence[Change],
    schema: TableSchema,
    after: int,
    count: int = 1,
    resolved: float = 0.0,
) -> ChangeBatch:
    """Changes beyond `after`, as one batch."""
    upto = changes[-1].sequence if changes else after
    at = resolved and START.timestamp() + resolved
    return ChangeBatch(
        BatchKind.CHANGES, schema, after, upto, lanes(changes, schema, count), resolved_at=at
    )


def snapshot(rows: Sequence[tuple[int, str]], schema: TableSchema, number: int, at: int) -> Any:
    """A lane of a snapshot, as a batch. The table's changes begin after `at`."""
    found = [Change(at, Op.READ, key, note) for key, note in rows]
    lane = HeldLane(number, at, at, len(rows), rows_of(found, schema))
    return ChangeBatch(BatchKind.SNAPSHOT, schema, at, at, (lane,))


def resolved(sequence: int, seconds: float) -> Resolved:
    """A mark so many seconds after `START`."""
    return Resolved(sequence, START.timestamp() + seconds)


NAMES = {op: op.name.lower() for op in Op}


def as_seen(changes: Sequence[Change]) -> list[Seen]:
    """What a reader must find of these changes."""
    return [
        Seen(
            c.sequence,
            NAMES[c.op],
            None if c.op is Op.TRUNCATE else c.id,
            None if c.op in {Op.DELETE, Op.TRUNCATE} or c.unsent else c.note,
        )
        for c in changes
    ]


def kept(found: Sequence[Seen], changes: Sequence[Change]) -> list[Seen]:
    """The rows that a target has which keeps only the last version of each row, in order of their
    last change. `found`: those that it had before."""
    rows = {s.id: s for s in found}
    for change in changes:
        if change.op is Op.TRUNCATE:
            rows.clear()
            continue
        gone = change.id if change.old_id is None else change.old_id
        old = rows.pop(gone, None)
        if change.op is not Op.DELETE:
            note = old.note if change.unsent and old is not None else change.note
            rows[change.id] = Seen(change.sequence, "row", change.id, note)
    return sorted(rows.values(), key=lambda s: (s.sequence, s.id or 0))


class SinkContract:
    """`keeps_rows`: the target has the last version of each row, and not every change. What `read`
    returns then has the operation "row", in order of sequence and id.

    Supply `plugin`, `params`, `dead_params` (nothing can be written there), `tasks`, and `read`.
    `read` returns what a reader of the target finds of a table's last whole generation up to its
    last mark, in the order in which the reader would take it."""

    keeps_rows: ClassVar[bool] = False

    def expected(self, first: Sequence[Seen], changes: Sequence[Change]) -> list[Seen]:
        """What a reader must find of a copy and the changes after it."""
        if self.keeps_rows:
            return kept([Seen(s.sequence, "row", s.id, s.note) for s in first], changes)
        return [*first, *as_seen(changes)]

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
    def tasks(self) -> Any:
        """Runs tasks."""
        raise NotImplementedError

    @pytest.fixture
    def read(self) -> Callable[[TableSchema], list[Seen]]:
        """Reads a table as a reader of the target does."""
        raise NotImplementedError

    @pytest.fixture
    def open_sink(self, plugin: TargetPlugin, params: Any, tasks: Any) -> Callable[[], ChangeSink]:
        """Opens the target as a new run does."""

        def make() -> ChangeSink:
            made = plugin.writer(params, tasks)
            assert isinstance(made, ChangeSink)
            return made

        return make

    @pytest.fixture
    def sink(self, open_sink: Callable[[], ChangeSink]) -> ChangeSink:
        """The target, open."""
        return open_sink()

    @pytest.fixture
    def schema(self) -> TableSchema:
        """A table of this test's own."""
        columns = (
            Column("id", Int(64), "bigint", nullable=False, ordinal=1),
            Column("note", String(), "text", ordinal=2),
        )
        return TableSchema(
            TableId("contract", f"table_{next(_NUMBERS)}"), columns, ("id",), ("id",)
        )

    @pytest.fixture
    def live(self, sink: ChangeSink, schema: TableSchema) -> TargetTable:
        """A table whose snapshot has rows 1 and 2 and ends at sequence 10."""
        table = TargetTable(schema.id, "r1", 1)
        sink.begin(table, schema)
        sink.deliver(table, snapshot([(1, "a")], schema, 1, 10))
        sink.deliver(table, snapshot([(2, "b")], schema, 2, 10))
        return table

    FIRST = (Seen(10, "read", 1, "a"), Seen(10, "read", 2, "b"))

    def test_the_plugin_says_what_its_sink_is(self, plugin: TargetPlugin, sink: ChangeSink) -> None:
        """Guards the capabilities, which tell pages and REST what the target can do without opening
        it: every change is a row, and there are neither versions nor watermarks."""
        can = plugin.capabilities
        assert isinstance(sink, ChangeSink) and not isinstance(sink, MergeTarget)
        assert can.modes == (Mode.APPEND,)
        assert can.can_rewind is isinstance(sink, Rewindable)
        assert can.has_watermarks is isinstance(sink, Watermarked)
        assert can.keeps_rows is self.keeps_rows
        assert can.rejects_rows is isinstance(sink, RejectsRows)

    def test_every_change_is_there_once_with_its_snapshot_before_it(
        self, sink: ChangeSink, live: TargetTable, schema: TableSchema, read: Any
    ) -> None:
        """Guards `deliver` and `resolved`: every kind of change, over several batches."""
        changes = [
            Change(11, Op.INSERT, 3, "c", 1),
            Change(12, Op.UPDATE, 3, "d", 2),
            Change(13, Op.UPDATE, 4, "e", 2, old_id=3),
            Change(14, Op.UPDATE, 4, at=3, unsent=True),
            Change(15, Op.DELETE, 4, at=3),
            Change(16, Op.TRUNCATE, 0, at=4),
            Change(17, Op.INSERT, 5, None, 100_000),
        ]
        assert sink.deliver(live, batch(changes[:3], schema, 10)) == 3
        assert sink.deliver(live, batch(changes[3:], schema, 13, 3)) == 4
        sink.resolved(live, resolved(17, 300_000))
        found = read(schema)
        if not self.keeps_rows:
            assert sorted(found[:2], key=str) == sorted(self.FIRST, key=str)
        assert self._after(found) == self.expected(self.FIRST, changes)

    def test_the_changes_of_a_key_stay_in_order_over_many_lanes(
        self, sink: ChangeSink, live: TargetTable, schema: TableSchema, read: Any
    ) -> None:
        """Guards the order: fails where lanes that are written side by side are read in another
        order, also where commit times go back from one lane to the next."""
        changes = [
            Change(11 + i, Op.UPDATE, 1, f"v{i}", at=i * 0.2 - (90 if i % 700 > 600 else 0))
            for i in range(5000)
        ]
        sink.deliver(live, batch(changes[:4000], schema, 10, 7))
        sink.deliver(live, batch(changes[4000:], schema, 4010, 3))
        sink.resolved(live, resolved(5010, 100_000))
        assert self._after(read(schema)) == self.expected(self.FIRST, changes)

    def _after(self, found: list[Seen]) -> list[Seen]:
        """What was found, with the copy's rows in their order."""
        return found if self.keeps_rows else [*self.FIRST, *found[2:]]

    @pytest.mark.parametrize("ends", [False, True], ids=["cut off", "not recorded"])
    def test_what_an_earlier_try_delivered_is_replaced_or_comes_again(
        self,
        plugin: TargetPlugin,
        open_sink: Any,
        live: TargetTable,
        schema: TableSchema,
        read: Any,
        ends: bool,
    ) -> None:
        """Guards what `delivery` declares. A try that ended within a lane, or that was never
        recorded, comes again in other lanes and up to another sequence. Exactly once: readers see
        nothing of the first try. At least once: rows that appear twice are equal."""
        changes = [Change(11 + i, Op.UPDATE, i % 3, f"v{i}", at=i * 0.1) for i in range(3000)]
        first = open_sink()
        first.deliver(live, batch(changes[:500], schema, 10, 2))
        tried = batch(changes[500:2600], schema, 510, 4)
        if not ends:
            *others, last = lanes(changes[500:2600], schema, 4)
            broken = HeldLane(last.number, last.first, last.last, last.rows, last.table, 500)
            tried = ChangeBatch(BatchKind.CHANGES, schema, 510, tried.sequence, (*others, broken))
            with pytest.raises(ReplicationError):
                first.deliver(live, tried)
        else:
            first.deliver(live, tried)
        again = open_sink()
        again.deliver(live, batch(changes[500:2300], schema, 510, 3))
        again.deliver(live, batch(changes[2300:], schema, 2310, 2))
        again.resolved(live, resolved(3010, 100_000))
        found = self._after(read(schema))
        if plugin.capabilities.delivery is not Delivery.EXACTLY_ONCE:
            found = list(dict.fromkeys(found))
        assert found == self.expected(self.FIRST, changes)

    def test_the_same_sink_goes_on_after_a_failed_delivery(
        self, sink: ChangeSink, live: TargetTable, schema: TableSchema, read: Any
    ) -> None:
        """Guards what a sink keeps in memory after a failed delivery: the next try is in the same
        process."""
        changes = [Change(11 + i, Op.INSERT, i, f"v{i}", at=i) for i in range(300)]
        held = lanes(changes, schema, 3)
        whole = batch(changes, schema, 10, 3)
        broken = [HeldLane(w.number, w.first, w.last, w.rows, w.table, 0) for w in held[1:]]
        with pytest.raises(ReplicationError):
            sink.deliver(
                live,
                ChangeBatch(BatchKind.CHANGES, schema, 10, 310, (held[0], *broken)),
            )
        sink.deliver(live, whole)
        sink.resolved(live, resolved(310, 100_000))
        assert self._after(read(schema)) == self.expected(self.FIRST, changes)

    def test_nothing_older_follows_a_mark_and_marks_do_not_go_back(
        self, open_sink: Any, live: TargetTable, schema: TableSchema, read: Any
    ) -> None:
        """Guards `resolved`. What a reader took before a mark stays as it was, whatever commit time
        comes later and whoever opens the target again. An older mark changes nothing, nor does the
        same mark again."""
        early = [Change(11 + i, Op.INSERT, i, f"v{i}", at=i) for i in range(600)]
        late = [Change(611 + i, Op.UPDATE, i, "late", at=i - 5000) for i in range(100)]
        sink = open_sink()
        sink.deliver(live, batch(early, schema, 10, 2))
        sink.resolved(live, resolved(610, 400))
        before = read(schema)
        assert len(before) > 2
        assert before[2:] == as_seen(early[: len(before) - 2])
        for one in (sink, open_sink()):
            one.resolved(live, resolved(610, 400))
            one.resolved(live, resolved(300, 100))
            assert read(schema) == before
        again = open_sink()
        again.deliver(live, batch(late, schema, 610, 2, resolved=400))
        assert read(schema) == before
        again.resolved(live, resolved(710, 100_000))
        assert read(schema)[2:] == as_seen([*early, *late])

    def test_a_snapshots_lane_that_comes_again_is_replaced(
        self, open_sink: Any, live: TargetTable, schema: TableSchema, read: Any
    ) -> None:
        """Guards snapshots that were interrupted between a delivery and its record."""
        sink = open_sink()
        sink.deliver(live, snapshot([(2, "b"), (3, "c")], schema, 2, 10))
        sink.deliver(live, snapshot([], schema, 3, 10))
        sink.resolved(live, resolved(10, 100_000))
        assert sorted(s.note or "" for s in read(schema)) == ["a", "b", "c"]

    def test_a_snapshot_that_begins_again_leaves_nothing_of_the_try_before(
        self, open_sink: Any, live: TargetTable, schema: TableSchema, read: Any
    ) -> None:
        """Guards `begin`."""
        sink = open_sink()
        sink.begin(live, schema)
        sink.deliver(live, snapshot([(7, "z")], schema, 1, 20))
        sink.resolved(live, resolved(20, 100_000))
        assert read(schema) == self.expected([Seen(20, "read", 7, "z")], [])

    def test_a_new_generation_is_a_copy_of_its_own(
        self, sink: ChangeSink, live: TargetTable, schema: TableSchema, read: Any
    ) -> None:
        """Guards generations: readers have the whole old copy until the new copy is whole, and
        never a mixture."""
        changes = [Change(11, Op.INSERT, 3, "c", 1)]
        sink.deliver(live, batch(changes, schema, 10))
        sink.resolved(live, resolved(11, 100_000))
        before = read(schema)
        fresh = TargetTable(schema.id, "r1", 2)
        sink.begin(fresh, schema)
        sink.deliver(fresh, snapshot([(9, "new")], schema, 1, 50))
        assert read(schema) == before
        sink.resolved(fresh, resolved(50, 200_000))
        assert read(schema) == self.expected([Seen(50, "read", 9, "new")], [])

    def test_another_schema_follows_in_order(
        self, sink: ChangeSink, live: TargetTable, schema: TableSchema, read: Any
    ) -> None:
        """Guards schema versions: CORRECTNESS 5."""
        more = Column("extra", String(), "text", ordinal=3)
        wider = TableSchema(schema.id, (*schema.columns, more), ("id",), ("id",))
        first, second = [Change(11, Op.INSERT, 3, "c", 1)], [Change(12, Op.INSERT, 4, "d", 1)]
        third = [Change(13, Op.DELETE, 4, at=2)]
        sink.deliver(live, batch(first, schema, 10))
        sink.deliver(live, batch(second, wider, 11))
        sink.deliver(live, batch(third, schema, 12))
        sink.resolved(live, resolved(13, 100_000))
        found = self._after(read(schema))
        assert found == self.expected(self.FIRST, [*first, *second, *third])

    def test_drop_removes_the_table_of_its_own_replicator_only(
        self, sink: ChangeSink, live: TargetTable, schema: TableSchema, read: Any
    ) -> None:
        """Guards the owner of a table, in `drop` and `begin`."""
        sink.resolved(live, resolved(10, 100_000))
        other = TargetTable(schema.id, "r2", 1)
        sink.drop(other)
        assert len(read(schema)) == 2
        assert code_of(lambda: sink.begin(other, schema)) == "target:table-taken"
        sink.drop(live)
        sink.drop(live)
        assert read(schema) == []
        sink.begin(other, schema)

    def test_a_table_that_is_gone_or_anothers_is_not_written(
        self, open_sink: Any, live: TargetTable, schema: TableSchema
    ) -> None:
        """Guards a target that somebody else changed."""
        open_sink().drop(live)
        changes = batch([Change(11, Op.INSERT, 3, "c", 1)], schema, 10)
        assert code_of(lambda: open_sink().deliver(live, changes)) == "target:table-missing"
        open_sink().begin(TargetTable(schema.id, "r2", 1), schema)
        assert code_of(lambda: open_sink().deliver(live, changes)) == "target:table-replaced"

    def test_checks_name_tables_that_are_taken(
        self, plugin: TargetPlugin, params: Any, live: TargetTable, schema: TableSchema
    ) -> None:
        """Guards the assessment."""
        with plugin.checks(params) as checks:
            assert checks.connection() == []
            assert checks.tables([schema], "r1") == []
            reported = checks.tables([schema], "r2")
        assert [p.code for p in reported] == ["target:table-taken"]
        assert_readable(reported, "")

    def test_a_place_that_cant_be_written_is_said(
        self, plugin: TargetPlugin, dead_params: Any, tasks: Any, schema: TableSchema
    ) -> None:
        """Guards the codes of errors."""
        with plugin.checks(dead_params) as checks:
            assert_readable(checks.connection(), "")
        made: Any = plugin.writer(dead_params, tasks)
        code = code_of(lambda: made.begin(TargetTable(schema.id, "r1", 1), schema))
        assert code.startswith("target:")
