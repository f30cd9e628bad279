"""What of a rewind is decided before anything is written, and what a kill leaves."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.model.changes import Op, first_sequence, last_sequence
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import Column, TableId
from replicators.connectors.model.types import String
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import FoldedBatch, KeptVersion, TargetTable, Token
from runners.engine.apply.merge import next_batch
from runners.engine.apply.recovery import adopt_all
from runners.engine.apply.rewind import Rewinder, reported, sequence_at
from runners.engine.changelog.segments import ChangeLog
from runners.engine.fold.plan import fold_to_file
from runners.engine.store.protocol import (
    ChangeFileRow,
    MemoryStore,
    SegmentRow,
    TableState,
)
from tests.unit.engine.changes import SCHEMA, Change, table_of
from tests.unit.engine.test_frontier import change_file

TABLE = SCHEMA.id


class Target:
    """Versions of the live table, as (sequence); what was done to the staging copy."""

    def __init__(self, *kept: int) -> None:
        self.kept = list(kept)
        self.token_now = Token("r1", 1, kept[-1] if kept else 0, "u")
        self.done: list[tuple[Any, ...]] = []
        self.fault: ReplicationError | None = None

    def version_at(self, table: TargetTable, sequence: int) -> KeptVersion | None:
        fitting = [s for s in self.kept if s <= sequence]
        found = max(fitting, default=min(self.kept, default=None))
        return None if found is None else KeptVersion(f"v{found}", found, 99.0)

    def token(self, table: TargetTable) -> Token:
        return self.token_now

    def begin_rewind(self, table: TargetTable, version: str) -> None:
        self.done.append(("begin", table.generation, version))

    def merge_staged(self, table: TargetTable, batch: Any) -> None:
        if self.fault:
            raise self.fault
        self.done.append(("merge", table.generation, batch))

    def publish_snapshot(self, table: TargetTable, schema: Any, sequence: int) -> str:
        self.done.append(("publish", table.generation, sequence))
        self.token_now = Token("r1", table.generation, sequence, "u")
        return "u"

    def abandon_rewind(self, table: TargetTable) -> None:
        self.done.append(("abandon", table.generation))


@pytest.fixture
def store() -> MemoryStore:
    """Segments 1 to 6, a change file in each, all merged."""
    made = MemoryStore([TABLE])
    for number in range(1, 7):
        made.record_segment(SegmentRow(number, "", 1, 0, Position(number), True, sealed_at=50.0),
                            Position(number))  # fmt: skip
        made.record_decoded([number], [change_file(number)])
    end = last_sequence(6)
    made.table_event(
        TABLE, "table_snapshot_done", generation=1, schema=SCHEMA, table_uuid="u",
        merged_sequence=end,
        token_sequence=end, is_snapshot_done=True, rewind_to=3.5,
    )  # fmt: skip
    return made


def rewound(store: MemoryStore, target: Target, tmp_path: Path, monkeypatch: Any) -> Any:
    """Rewind; a batch is (the segments of its files, after, sequence)."""

    class Batch(tuple[Any, ...]):
        paths: tuple[str, ...] = ()
        schema = SCHEMA

    def fold(_: Any, plan: Any) -> tuple[Batch, None]:
        return Batch(([f.segment for f in plan.files], plan.after, plan.sequence)), None

    monkeypatch.setattr("runners.engine.apply.rewind.fold_batch", fold)
    log = ChangeLog(str(tmp_path), "r1", "a")
    rewinder = Rewinder(None, target, store, log, "r1")  # type: ignore[arg-type]
    rewinder.rewind(store.table(TABLE))
    return store.table(TABLE)


def test_the_changes_since_the_version_are_applied_once_and_published_level(
    store: MemoryStore, tmp_path: Path, monkeypatch: Any
) -> None:
    """Guards the choice of the version (at or before the time, never after it), the sequence that
    the replay begins after, and that the copy is published with the live table's sequence under a
    new generation."""
    target = Target(*(last_sequence(n) for n in (1, 2, 4, 6)))
    row = rewound(store, target, tmp_path, monkeypatch)
    version, end = last_sequence(2), last_sequence(6)
    assert target.done == [
        ("begin", 2, f"v{version}"),
        ("merge", 2, ([3, 4, 5, 6], version, end)),
        ("publish", 2, end),
    ]
    assert (row.generation, row.token_sequence, row.rewind_to) == (2, end, None)
    assert row.state is TableState.REPLICATING


@pytest.mark.parametrize("parts", [0, 1, 2])
def test_a_long_rewind_is_no_standstill_and_can_be_stopped_between_its_parts(
    store: MemoryStore, tmp_path: Path, monkeypatch: Any, parts: int
) -> None:
    """Guards `on_progress` and `should_stop` of `Rewinder`: a rewind over hours of a busy table is
    one step of its job, and without them its run is killed at the step's deadline, in each run
    anew. What is stopped is published by nobody, and asked for still."""
    monkeypatch.setattr("runners.engine.apply.rewind.next_batch", partial(next_batch, limit=10))
    monkeypatch.setattr("runners.engine.apply.rewind.fold_batch", lambda _, plan: (_Empty(), None))
    reported_of: list[TableId] = []
    target = Target(last_sequence(2), last_sequence(6))
    rewinder = Rewinder(
        None, target, store, ChangeLog(str(tmp_path), "r1", "a"), "r1",  # type: ignore[arg-type]
        on_progress=reported_of.append, should_stop=lambda: len(reported_of) > parts,
    )  # fmt: skip
    rewinder.rewind(store.table(TABLE))
    assert [act for act, *_ in target.done] == ["begin", *["merge"] * parts]
    assert len(reported_of) == parts + 1
    assert store.table(TABLE).rewind_to == 3.5
    assert store.table(TABLE).state is TableState.REPLICATING


class _Empty:
    paths: tuple[str, ...] = ()
    schema = SCHEMA


@pytest.mark.parametrize(
    ("kept", "pruned", "changed", "code"),
    [
        ((5, 6), (), False, "target:rewind-too-early"),
        ((), (), False, "target:rewind-too-early"),
        ((1, 2, 6), (1, 2, 3, 4), False, "log:rewind-too-early"),
        ((1, 2, 6), (), True, "target:rewind-schema"),
        ((1, 2, 6), (), False, "target:rewind-quarantined"),
    ],
)
def test_what_can_not_be_reached_is_refused_and_the_table_goes_on(
    store: MemoryStore,
    tmp_path: Path,
    monkeypatch: Any,
    kept: tuple[int, ...],
    pruned: tuple[int, ...],
    changed: bool,
    code: str,
) -> None:
    """Guards each look before the first write: without it changes would be missing in the rewound
    rows, or be applied to columns that are not there."""
    store.forget(pruned)
    if code == "target:rewind-quarantined":
        store.record_decoded([1], [replace(change_file(1), faults=1)])
    if changed:
        wider = replace(SCHEMA, columns=(*SCHEMA.columns, Column("new", String(), "text")))
        other: ChangeFileRow = replace(change_file(4), schema=wider)
        store.record_decoded([4], [other])
    target = Target(*(last_sequence(n) for n in kept))
    row = rewound(store, target, tmp_path, monkeypatch)
    assert target.done == [("abandon", 2)]
    assert (row.error_code, row.generation, row.rewind_to) == (code, 1, None)
    assert row.state is TableState.REPLICATING
    if code == "target:rewind-too-early" and kept:
        assert row.error_facts["earliest"] == reported(99.0)


def test_a_fault_of_the_copy_leaves_the_live_table_as_it_is(
    store: MemoryStore, tmp_path: Path, monkeypatch: Any
) -> None:
    """Guards that only the staging copy is thrown away, and that the table does not fail for it."""
    target = Target(*(last_sequence(n) for n in (1, 2, 6)))
    target.fault = ReplicationError("target:conflict", table=TABLE)
    row = rewound(store, target, tmp_path, monkeypatch)
    assert target.done[-1] == ("abandon", 2)
    assert (row.error_code, row.generation, row.rewind_to) == ("target:conflict", 1, None)


def test_what_was_published_and_not_recorded_is_adopted_only_where_it_was_asked(
    store: MemoryStore, tmp_path: Path
) -> None:
    """Guards `adopt`: a token of the next generation that nobody asked for is another's, and stops
    the table. What the kill left of the staging copy goes: it would keep files of the live table,
    or a whole copy of it, for ever."""
    target = Target(last_sequence(6))
    log = ChangeLog(str(tmp_path), "r1", "a")
    rewinder = Rewinder(None, target, store, log, "r1")  # type: ignore[arg-type]
    adopt_all(rewinder, store)
    assert store.table(TABLE).generation == 1
    target.token_now = Token("r1", 2, last_sequence(6), "another's")
    adopt_all(rewinder, store)
    assert store.table(TABLE).generation == 1
    assert target.done == []
    target.token_now = Token("r1", 2, last_sequence(6), "u")
    adopt_all(rewinder, store)
    assert target.done == [("abandon", 2)]
    row = store.table(TABLE)
    assert (row.generation, row.rewind_to) == (2, None)
    target.token_now = Token("r1", 3, last_sequence(6), "u")
    adopt_all(rewinder, store)
    assert store.table(TABLE).generation == 2


def test_a_file_with_a_later_change_counts_as_later() -> None:
    """Guards that a version holding a change from after the time is never taken."""
    files = [change_file(n) for n in (1, 2, 3)]
    assert sequence_at(files, 2.0, last_sequence(9)) == files[2].first_sequence - 1
    assert sequence_at(files, 1.9, last_sequence(9)) == files[1].first_sequence - 1
    assert sequence_at(files, 5.0, last_sequence(9)) == last_sequence(9)


def test_a_version_from_within_a_pruned_segment_is_refused(
    store: MemoryStore, tmp_path: Path, monkeypatch: Any
) -> None:
    """Guards `_found`: a merge ends in the midst of a segment where the schema changes, so a
    version may need the rest of it; without that, its changes would be missing in the rewound
    rows."""
    store.forget([1, 2, 3])
    target = Target(first_sequence(3) + 4, last_sequence(6))
    row = rewound(store, target, tmp_path, monkeypatch)
    assert target.done == [("abandon", 2)]
    assert row.error_code == "log:rewind-too-early"


def test_rows_that_the_filter_can_not_decide_refuse_the_rewind(
    store: MemoryStore, tmp_path: Path, monkeypatch: Any
) -> None:
    """Guards rows that leave the filter by one column while another one was not sent: applied as
    they are they would stay in the rewound rows. What the source says now is no answer for then."""
    schema = replace(SCHEMA, filter="a = 'in' AND b = 'in'")
    left = [Change(Op.UPDATE, (1, "x"), (None, "out"), unsent=frozenset("a"))]

    def fold(_: Any, plan: Any) -> tuple[FoldedBatch, None]:
        part = fold_to_file(table_of(left), schema, str(tmp_path / "batch.parquet"))
        return FoldedBatch(schema, (part.path,), plan.sequence, part.rows, part.unsent), None

    monkeypatch.setattr("runners.engine.apply.rewind.fold_batch", fold)
    target = Target(*(last_sequence(n) for n in (1, 2, 6)))
    log = ChangeLog(str(tmp_path), "r1", "a")
    Rewinder(None, target, store, log, "r1").rewind(store.table(TABLE))  # type: ignore[arg-type]
    row = store.table(TABLE)
    assert [done[0] for done in target.done] == ["begin", "abandon"]
    assert (row.error_code, row.generation, row.rewind_to) == ("target:row-missing", 1, None)
    assert not (tmp_path / "batch.parquet").exists()
