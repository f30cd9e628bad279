"""Quarantined rows: what waits, what ends it, and what the target holds meanwhile and
afterwards."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicators.connectors.model.changes import FAULT_FIELDS, Op
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.problems.errors import ReplicationError
from runners.engine.fold.mirror import fold
from runners.engine.fold.plan import FoldPlan, fold_batch
from runners.engine.quarantine import decide
from runners.engine.store.protocol import TableRow
from runners.engine.store.quarantine import MemoryQuarantine
from tests.unit.engine.changes import SCHEMA, Change, Key, Row, apply, replay, table_of
from tests.unit.engine.test_frontier import change_file

BAD = "\N{CROSS MARK}"
"""Stands for a value that the target can't hold, wherever a change sends it."""
INSERT, UPDATE, DELETE = Op.INSERT, Op.UPDATE, Op.DELETE
ONE, TWO = (1, "a"), (2, "b")
NAMES = [c.name for c in SCHEMA.columns]


class Memory(MemoryQuarantine):
    def _write(self) -> None:
        """Anybody may."""


def faulty_table(changes: list[Change], first: int) -> pa.Table:
    """As a decoder gives them: bad values NULL, and marked."""
    sent = [replace(c, values=tuple(None if v == BAD else v for v in c.values)) for c in changes]
    table = table_of(sent)
    at = table.schema.get_field_index("_sequence")
    numbers = pa.array(range(first, first + len(changes)), pa.int64())
    table = table.set_column(at, table.schema.field(at), numbers)
    marks = []
    for change in changes:
        bits = sum(
            1 << NAMES.index(n)
            for n, v in zip(("a", "b"), change.values, strict=True)
            if v == BAD and n not in change.unsent
        )
        marks.append(bytes([bits]) if bits else None)
    table = table.append_column(FAULT_FIELDS[0], pa.array(marks, pa.binary()))
    reasons = [None if m is None else "a: does not fit" for m in marks]
    return table.append_column(FAULT_FIELDS[1], pa.array(reasons, pa.string()))


class Replica:
    """A target and the rows quarantined beside it, merged batch by batch as the engine does."""

    def __init__(self, start: dict[Key, Row]) -> None:
        self.rows = dict(start)
        self.store = Memory()
        self.merged = 0

    def try_to_merge(self, changes: list[Change]) -> tuple[decide.Separated, int]:
        """What a merge does before it commits: it may be cut off then."""
        waiting = self.store.quarantined(SCHEMA.id, 1, self.merged)
        table = faulty_table(changes, self.merged + 1)
        found = pa.concat_tables([decide.images(waiting, SCHEMA), table])
        separated = decide.separate(found, SCHEMA)
        kept = set(separated.held.column("_sequence").to_pylist())
        freed = [w.sequence for w in waiting if w.sequence not in kept]
        upto = self.merged + max(1, len(changes))
        rows = decide.quarantined_rows(separated.held, SCHEMA, self.merged)
        self.store.record_quarantined(SCHEMA.id, 1, rows, freed, upto, self.merged)
        return separated, upto

    def merge(self, changes: list[Change]) -> None:
        separated, upto = self.try_to_merge(changes)
        folded = fold(separated.fit, SCHEMA)
        self.rows = apply(self.rows, folded.rows, truncate=folded.truncate)
        self.merged = upto

    @property
    def waiting(self) -> list[str]:
        return [p.key for p in self.store.quarantined(SCHEMA.id, 1, self.merged)]


def has_bad(row: Row) -> bool:
    return BAD in row.values()


def test_a_row_that_does_not_fit_waits_and_the_others_go_on() -> None:
    """Guards rule 30: merging it with NULL would lose the value silently; stopping would hold the
    others up."""
    replica = Replica({ONE: {"a": "old", "b": "old"}})
    replica.merge([Change(UPDATE, ONE, (BAD, "new")), Change(INSERT, TWO, ("x", "y"))])
    assert replica.rows == {ONE: {"a": "old", "b": "old"}, TWO: {"a": "x", "b": "y"}}
    assert replica.waiting == ['{"id": "1", "part": "a"}']


def test_later_changes_of_a_quarantined_key_wait_too_until_a_complete_image_or_a_delete() -> None:
    """Guards rule 30: a later partial image merged alone would be completed from a row that never
    was."""
    unsent_a = frozenset({"a"})
    replica = Replica({ONE: {"a": "old", "b": "old"}})
    replica.merge([Change(UPDATE, ONE, (BAD, "1"))])
    replica.merge([Change(UPDATE, ONE, (None, "2"), unsent=unsent_a)])
    assert replica.rows[ONE] == {"a": "old", "b": "old"}
    assert len(replica.waiting) == 2
    replica.merge([Change(UPDATE, ONE, ("good", "3"))])
    assert replica.rows[ONE] == {"a": "good", "b": "3"}
    assert not replica.waiting

    replica.merge([Change(UPDATE, ONE, (BAD, "4"))])
    replica.merge([Change(DELETE, ONE)])
    assert not replica.rows
    assert not replica.waiting


def test_a_partial_image_that_mends_the_value_ends_it_with_what_was_sent_before() -> None:
    """Unsent values of the mending change come from the quarantined ones: from the target they
    would be old."""
    replica = Replica({ONE: {"a": "old", "b": "old"}})
    replica.merge([Change(UPDATE, ONE, (BAD, "sent while quarantined"))])
    replica.merge([Change(UPDATE, ONE, ("good", None), unsent=frozenset({"b"}))])
    assert replica.rows[ONE] == {"a": "good", "b": "sent while quarantined"}
    assert not replica.waiting


def test_keys_that_a_change_of_key_links_wait_together() -> None:
    """The unsent value of the moved row belongs to the old key's row in the target: deleting that
    first would lose it."""
    replica = Replica({ONE: {"a": "old", "b": "large"}})
    replica.merge([Change(UPDATE, TWO, (BAD, None), unsent=frozenset({"b"}), old=ONE)])
    assert replica.rows == {ONE: {"a": "old", "b": "large"}}
    replica.merge([Change(UPDATE, TWO, ("good", None), unsent=frozenset({"b"}))])
    assert replica.rows == {TWO: {"a": "good", "b": "large"}}
    assert not replica.waiting


def test_a_truncate_ends_all_that_waits() -> None:
    """Guards the barrier in `quarantine.separate` (CORRECTNESS 6 and 30): rows quarantined before a
    TRUNCATE would come back after it."""
    replica = Replica({})
    replica.merge([Change(INSERT, ONE, (BAD, "1")), Change(INSERT, TWO, (BAD, "2"))])
    replica.merge([Change(Op.TRUNCATE, (0, "")), Change(INSERT, TWO, ("x", "y"))])
    assert replica.rows == {TWO: {"a": "x", "b": "y"}}
    assert not replica.waiting


def test_complete_images_leave_one_waiting_row_for_a_key() -> None:
    """Guards the limit on quarantined rows: a row that changes for ever would otherwise reach it
    alone."""
    replica = Replica({})
    for i in range(5):
        replica.merge([Change(INSERT if not i else UPDATE, ONE, (BAD, str(i)))])
    assert len(replica.waiting) == 1


def test_a_replay_puts_null_in_place_of_what_does_not_fit() -> None:
    """Guards `quarantine.images` for accepted rows: with their marks left on, a row that a person
    let go with NULL would wait again."""
    replica = Replica({ONE: {"a": "old", "b": "old"}})
    replica.merge([Change(UPDATE, ONE, (BAD, "1")), Change(INSERT, TWO, ("x", BAD))])
    replica.store.accept_quarantined(SCHEMA.id)
    replica.merge([])
    assert replica.rows == {ONE: {"a": None, "b": "1"}, TWO: {"a": "x", "b": None}}
    assert not replica.waiting


def test_what_a_merge_that_was_cut_off_quarantined_or_freed_counts_only_once_it_is_done() -> None:
    """Guards "idempotent by (generation, sequence)": before the merge is recorded the same rows are
    quarantined and freed again."""
    store = Memory()
    table = faulty_table([Change(INSERT, ONE, (BAD, "1"))], 7)
    rows = decide.quarantined_rows(table, SCHEMA, 0)
    store.record_quarantined(SCHEMA.id, 1, rows, (), 9)
    assert not store.quarantined(SCHEMA.id, 1, 6)
    store.record_quarantined(SCHEMA.id, 1, rows, (), 9)
    assert len(store.quarantined(SCHEMA.id, 1, 9)) == 1
    store.record_quarantined(SCHEMA.id, 1, (), [7], 20)
    assert len(store.quarantined(SCHEMA.id, 1, 9)) == 1
    assert not store.quarantined(SCHEMA.id, 1, 20)
    assert not store.quarantined(SCHEMA.id, 2, 9), "another generation begins without"


def test_quarantined_rows_follow_a_changed_schema() -> None:
    """A column that came later is not sent, one that went is left out, and the marks keep their
    columns."""
    table = faulty_table([Change(UPDATE, ONE, ("x", BAD), unsent=frozenset({"a"}))], 3)
    rows = decide.quarantined_rows(table, SCHEMA, 0)
    columns = (Column("new", Int(32), "int"), *SCHEMA.columns[:2], SCHEMA.columns[3])
    wider = TableSchema(SCHEMA.id, (*columns, Column("a", String(), "text")), SCHEMA.key)
    found = decide.images(rows, wider)
    assert found.column("_faulty").to_pylist() == [bytes([0b01000])]
    assert found.column("_unchanged").to_pylist() == [bytes([0b10001])]
    assert found.column("id").to_pylist() == [1]


KEYS = st.tuples(st.integers(1, 4), st.just("p"))
VALUES = st.tuples(st.sampled_from(["v", "w", BAD]), st.sampled_from(["x", "y", BAD]))


@st.composite
def walks(draw: st.DrawFn) -> list[list[Change]]:
    """Batches of changes that a source could make: inserts of absent keys, updates and deletes of
    present ones."""
    present: set[Key] = {(1, "p"), (2, "p")}
    batches = []
    for _ in range(draw(st.integers(1, 4))):
        batch = []
        for _ in range(draw(st.integers(0, 5))):
            key = draw(KEYS)
            if key not in present:
                batch.append(Change(INSERT, key, draw(VALUES)))
                present.add(key)
                continue
            kind = draw(st.sampled_from(["update", "move", "delete", "truncate"]))
            unsent = frozenset(draw(st.sets(st.sampled_from("ab"), max_size=1)))
            free = sorted({(i, "p") for i in range(1, 7)} - present)
            if kind == "move" and free:
                to = draw(st.sampled_from(free))
                batch.append(Change(UPDATE, to, draw(VALUES), unsent=unsent, old=key))
                present = (present - {key}) | {to}
            elif kind == "delete":
                batch.append(Change(DELETE, key))
                present.discard(key)
            elif kind == "truncate":
                batch.append(Change(Op.TRUNCATE, (0, "")))
                present.clear()
            else:
                batch.append(Change(UPDATE, key, draw(VALUES), unsent=unsent))
        batches.append(batch)
    return batches


def test_a_merge_that_takes_the_place_of_one_that_was_cut_off_begins_where_that_began() -> None:
    """Found by the adversary (seed 603): a run was killed between the quarantine and the commit;
    the merge after it reached further, to a value that fits, and the row stayed quarantined for
    ever, in front of every later change of its key."""
    replica = Replica({ONE: {"a": "old", "b": "old"}})
    replica.try_to_merge([Change(UPDATE, ONE, (BAD, "1"))])
    replica.merge([Change(UPDATE, ONE, (BAD, "1")), Change(UPDATE, ONE, ("good", "2"))])
    assert replica.rows[ONE] == {"a": "good", "b": "2"}
    assert not replica.waiting

    replica.merge([Change(UPDATE, ONE, (BAD, "3"))])
    (quarantined,) = replica.waiting
    replica.try_to_merge([Change(UPDATE, ONE, ("good", "4")), Change(UPDATE, ONE, ("good", "5"))])
    replica.merge([])
    replica.merge([])
    assert replica.waiting == [quarantined], "freed by a merge that never was"


@settings(max_examples=300, deadline=None)
@given(walks(), st.data())
def test_once_nothing_bad_is_left_the_target_equals_the_source_and_a_row_that_fits_waits_only_where_linked(  # noqa: E501
    batches: list[list[Change]], data: st.DataObject
) -> None:
    """Guards the whole of quarantine against a naive replay of the source, with merges that are cut
    off before their commit and reach less far or further than those that take their place. Rows
    that do not fit never arrive; keys that no change of key ever touched are either equal to the
    source or wait; a replay makes all equal, with NULL for what does not fit."""
    start = {(1, "p"): {"a": "s", "b": "t"}, (2, "p"): {"a": "s", "b": "t"}}
    replica, truth, moved = Replica(start), start, set()
    for number, batch in enumerate(batches):
        coming = [change for later in batches[number:] for change in later]
        for reach in data.draw(st.lists(st.integers(0, len(coming)), max_size=2)):
            replica.try_to_merge(coming[:reach])
        replica.merge(batch)
        truth = replay(truth, batch)
        moved |= {k for c in batch if c.old for k in (c.key, c.old)}
        assert not any(map(has_bad, replica.rows.values()))
        for key in set(truth) | set(replica.rows):
            if key in moved:
                continue
            is_bad = has_bad(truth.get(key, {}))
            waits = f'{{"id": "{key[0]}", "part": "p"}}' in replica.waiting
            assert waits == is_bad
            if not is_bad:
                assert replica.rows.get(key) == truth.get(key)
    replica.store.accept_quarantined(SCHEMA.id)
    replica.merge([])
    blank = {k: {n: None if v == BAD else v for n, v in r.items()} for k, r in truth.items()}
    assert replica.rows == blank
    assert not replica.waiting


def test_files_with_values_that_could_not_be_carried_are_never_folded_without_quarantine() -> None:
    """Guards that no other fold (a rewind's) writes NULL in place of a value."""
    file = replace(change_file(1), faults=1)
    plan = FoldPlan(SCHEMA, (file,), 0, 0, 10, "")
    with pytest.raises(ReplicationError) as caught:
        fold_batch(None, plan)  # type: ignore[arg-type]
    assert caught.value.code == "log:rows-quarantined"


def test_without_a_key_a_value_that_does_not_fit_stops_the_table_and_says_so() -> None:
    """Guards `TableRow.quarantines`, and the refusal in `fold_with_quarantined`: rows without a key
    can't be told apart once they wait, and the table failed for ever at an error that nobody
    knew."""
    keyless = replace(SCHEMA, key=())
    row = TableRow(SCHEMA.id, unsupported="quarantine", schema=keyless)
    assert (
        not row.quarantines
        and replace(row, schema=SCHEMA).quarantines
        and replace(row, schema=None).quarantines
    )
    reasons = pa.chunked_array([pa.array([None, "at: is infinite; row 7"])])
    error = decide._unsupported(SCHEMA.id, reasons)
    assert (error.code, error.facts["column"], error.facts["reason"]) == (
        "source:value-unsupported", "at", "is infinite",
    )  # fmt: skip
