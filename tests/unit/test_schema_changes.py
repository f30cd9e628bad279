"""What changed between two schemas of a table, and what each policy makes of it (CORRECTNESS 10,
21)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Date,
    Decimal,
    Enum,
    Float,
    Int,
    LogicalType,
    String,
    Timestamp,
    Uuid,
)
from replicators.connectors.schema.diff import (
    ChangeKind,
    compare,
    is_wider,
    with_known_labels,
)
from replicators.connectors.schema.policy import SchemaPolicy, Verdict, decide
from runners.engine.schema.evolution import decision_on, schema_changes
from runners.engine.store.protocol import TableRow

K = ChangeKind
ID = Column("id", Int(64), "bigint", False, 1)
NOTE = Column("note", String(20), "varchar(20)", True, 2)
N = Column("n", Int(32), "integer", True, 3)
OLD = TableSchema(TableId("shop", "t"), (ID, NOTE, N), ("id",), ("id",), 70, False, "7", (70, 5))


def _with(*columns: Column, **values: object) -> TableSchema:
    return replace(OLD, columns=columns, **values)  # type: ignore[arg-type]


CASES: dict[str, tuple[TableSchema, list[ChangeKind]]] = {
    "nothing": (replace(OLD, storage="8"), []),
    "added": (_with(ID, NOTE, N, Column("b", Boolean(), "boolean", True, 4)), [K.ADDED]),
    "added, rows rewritten": (
        _with(ID, NOTE, N, Column("b", Float(64), "float8", True, 4), storage="8"),
        [K.ADDED, K.REWRITTEN],
    ),
    "dropped": (_with(ID, N), [K.DROPPED]),
    "renamed": (_with(ID, replace(NOTE, name="text"), N), [K.RENAMED]),
    "names swapped": (_with(ID, replace(NOTE, name="n"), replace(N, name="note")), [K.RENAMED] * 2),
    "widened": (_with(ID, replace(NOTE, type=String()), N), [K.WIDENED]),
    "widened by a rewrite": (
        _with(ID, NOTE, replace(N, type=Int(64)), storage="8"),
        [K.WIDENED, K.REWRITTEN],
    ),
    "narrowed": (_with(replace(ID, type=Int(32)), NOTE, N), [K.RETYPED]),
    "other type": (_with(ID, NOTE, replace(N, type=Date())), [K.RETYPED]),
    "renamed and widened": (
        _with(ID, replace(NOTE, name="text", type=String()), N),
        [K.RENAMED, K.WIDENED],
    ),
    "made again": (_with(ID, replace(NOTE, ordinal=4), N), [K.REPLACED]),
    "old name taken by another": (
        _with(ID, replace(NOTE, name="was"), replace(N, name="note")),
        [K.RENAMED, K.RENAMED],
    ),
    "key": (replace(OLD, key=("n",)), [K.KEY_CHANGED]),
    "key column renamed": (_with(replace(ID, name="no"), NOTE, N, key=("no",)), [K.RENAMED]),
    "table": (replace(OLD, native_id=71, columns=(ID,)), [K.TABLE_REPLACED]),
    "partition attached": (replace(OLD, partitions=(70, 5, -6)), [K.PARTITIONS_CHANGED]),
    "partition detached": (replace(OLD, partitions=(70,)), [K.PARTITIONS_CHANGED]),
    "partition with another owner": (replace(OLD, partitions=(70, -5)), []),
    "partition made in place": (replace(OLD, partitions=(70, 5, 6)), []),
    "partition with a time": (replace(OLD, partitions=(70, -(5 | 9 << 32))), []),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_each_change_is_named(case: str) -> None:
    """Matching columns by name alone, in place of their numbers, makes a rename a drop and an
    addition, whose values are lost, and hides a column that was made again."""
    new, expected = CASES[case]
    assert [c.kind for c in compare(OLD, new)] == expected


def test_a_part_that_was_away_and_came_back_is_another_one() -> None:
    """Its rows may have changed meanwhile, and no publication sent that; whether its columns were
    touched since says nothing."""
    then, now = 5 | 8 << 32, 5 | 9 << 32
    old = replace(OLD, partitions=(70, then))
    assert compare(old, replace(old, partitions=(70, -then))) == ()
    for part in (now, -now):
        changes = compare(old, replace(old, partitions=(70, part)))
        assert [c.kind for c in changes] == [K.PARTITIONS_CHANGED]


MARKED = replace(OLD, partitions=(), marks=((0, 7), (1, 50), (2, 51), (3, 52), (4, 53)))
PARTED = replace(OLD, marks=((5, 90), (6, 91)))
MARKS = {
    "nothing": (MARKED, MARKED.marks, False),
    "a clean-up": (MARKED, ((0, 8), (1, 50), (2, 51), (3, 52)), False),
    "a right": (MARKED, ((0, 7), (1, 60), (2, 51), (3, 52)), False),
    "a column made anew": (MARKED, ((0, 8), (1, 50), (2, 60), (3, 52)), True),
    "a column that is not copied": (MARKED, ((0, 8), (1, 50), (2, 51), (3, 52), (4, 60)), False),
    "a column that came": (MARKED, ((0, 8), (1, 50), (2, 51), (3, 52), (9, 60)), False),
    "a schema of the log": (MARKED, (), False),
    "a part emptied": (PARTED, ((5, 90), (6, 92)), True),
    "a part that came": (PARTED, ((5, 90), (6, 91), (8, 95)), False),
    "a part that went": (PARTED, ((5, 90),), False),
    "parts of the log": (PARTED, (), False),
}


@pytest.mark.parametrize("case", sorted(MARKS))
def test_rows_that_were_changed_without_a_word_are_known_by_marks(case: str) -> None:
    """Guards that they are copied afresh: no column looks otherwise, and the log carries none of
    them. Taken for that, each clean-up would be a fresh copy."""
    old, marks, is_reported = MARKS[case]
    for before, after in ((old, replace(old, marks=marks)), (replace(old, marks=marks), old)):
        assert [c.kind for c in compare(before, after)] == [K.REWRITTEN] * is_reported


def test_without_numbers_columns_are_known_by_name() -> None:
    """A source without stable numbers (0) must not see every column made again."""
    old = replace(OLD, columns=tuple(replace(c, ordinal=0) for c in OLD.columns))
    new = replace(old, columns=(*old.columns[:2], Column("z", Date(), "date")))
    assert [c.kind for c in compare(old, new)] == [K.DROPPED, K.ADDED]
    assert compare(old, old) == ()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (Int(32), Int(64), True),
        (Int(64), Int(32), False),
        (Int(32, signed=False), Int(64), True),
        (Int(64, signed=False), Int(64), False),
        (Int(32), Decimal(10, 0), True),
        (Int(32), Decimal(10, 2), False),
        (Decimal(10, 2), Decimal(12, 2), True),
        (Decimal(10, 2), Decimal(11, 4), False),
        (Float(32), Float(64), True),
        (Int(32), Float(64), False),
        (String(10), String(5), False),
        (String(), String(5), False),
        (Enum(("a",)), Enum(("a", "b")), True),
        (Enum(("a", "b")), Enum(("a",)), False),
        (Uuid(), String(), True),
        (String(), Uuid(), False),
        (Timestamp(3, True), Timestamp(6, True), True),
        (Timestamp(6, True), Timestamp(6, False), False),
        (Array(Int(32)), Array(Int(64)), True),
    ],
)
def test_wider_means_that_no_value_changes(
    old: LogicalType, new: LogicalType, expected: bool
) -> None:
    """A type that is called wider though a value of it reads otherwise afterwards would be followed
    without a re-sync."""
    assert is_wider(old, new) is expected


VERDICTS = {
    "added": "follow follow keep stop",
    "added, rows rewritten": "resync stop stop stop",
    "dropped": "follow keep keep stop",
    "renamed": "follow stop keep stop",
    "widened": "follow follow stop stop",
    "narrowed": "resync stop keep stop",
    "other type": "resync stop stop stop",
    "made again": "resync stop stop stop",
    "key": "resync stop stop stop",
    "table": "resync stop stop stop",
    "partition attached": "resync stop stop stop",
    "nothing": "keep keep keep keep",
}


@pytest.mark.parametrize("case", sorted(VERDICTS))
def test_each_policy_decides(case: str) -> None:
    """The gravest change decides: an addition that is followed must not hide a key that changed
    beside it."""
    changes = compare(OLD, CASES[case][0])
    found = [str(decide(p, changes).verdict) for p in SchemaPolicy]
    assert found == VERDICTS[case].split()
    graver = (*changes, *compare(OLD, CASES["key"][0]))
    assert decide(SchemaPolicy.EVOLVE, graver).verdict is Verdict.RESYNC


def test_a_schema_survives_its_json_form() -> None:
    """What is left out of the stored form would be a change at the next start."""
    whole = replace(
        OLD, partitions=(5, -6), marks=((5, 7), (6, 8)), layout=((1, "id", 20), (4, "", 0)),
        columns=(ID, replace(NOTE, missing="x")),
    )  # fmt: skip
    assert TableSchema.from_json(whole.to_json()) == whole


@pytest.mark.parametrize(
    ("columns", "is_other"),
    [
        ((ID, replace(NOTE, name="n"), replace(N, name="note")), True),  # they changed names
        ((ID, replace(N, name="note")), True),  # dropped, and another one took its name
        ((ID, NOTE, replace(N, name="m")), False),
        ((ID, NOTE, N, Column("b", Boolean(), "boolean", True, 4)), False),
    ],
)
def test_a_filter_whose_column_is_another_one_has_the_rows_chosen_again(
    columns: tuple[Column, ...], is_other: bool
) -> None:
    """Guards `evolving._filtered_by_others`: followed, the copy would hold rows that were chosen by
    one column beside rows that were by another."""
    old = replace(OLD, filter="note = 'a'")
    new = replace(old, columns=columns)
    row = TableRow(old.id, schema=old)
    found = decision_on(SchemaPolicy.EVOLVE, row, schema_changes(row, old, new), old)
    assert found.verdict is (Verdict.RESYNC if is_other else Verdict.FOLLOW)
    plain = replace(old, filter=""), replace(new, filter="")
    found = decision_on(SchemaPolicy.EVOLVE, row, schema_changes(row, *plain), plain[0])
    assert found.verdict is Verdict.FOLLOW


def test_so_has_one_that_comes_back_under_its_name() -> None:
    """Guards the same where the column was away for a look: it is added then, and its default may
    fit."""
    old = replace(_with(ID, N), filter="note = 'a'")
    new = replace(OLD, filter="note = 'a'")
    row = TableRow(old.id, schema=old)
    assert schema_changes(row, old, new)[-1].kind is K.REWRITTEN


MOOD = Column("mood", Enum(("calm", "busy")), "mood", True, 4)


def _labels(*values: str) -> TableSchema:
    return _with(ID, NOTE, N, replace(MOOD, type=Enum(values)))


def test_a_renamed_value_of_an_enum_is_reported_by_its_names() -> None:
    (change,) = compare(_labels("calm", "busy"), _labels("still", "busy"))
    assert (change.kind, change.text) == (
        K.RETYPED,
        "values of column mood changed: without 'calm' and with 'still'",
    )
    (added,) = compare(_labels("calm"), _labels("busy", "calm"))
    assert (added.kind, added.text) == (K.WIDENED, "values of column mood changed: with 'busy'")


def test_a_change_within_a_named_type_is_not_reported_as_one_to_itself() -> None:
    """Guards the words for a type that keeps its name: "widened from airline.cabin to
    airline.cabin" said nothing."""
    (moved,) = compare(_labels("calm", "busy"), _labels("busy", "calm"))
    assert moved.text.startswith("type of column mood, mood, ")


def test_a_schema_of_the_log_says_nothing_against_values_that_the_copy_has() -> None:
    """Guards the following of old segments: described before a value was added, they would have the
    table copied afresh; described after one was renamed, with rows of before, they would hide that
    from the next look."""
    copy = _labels("calm", "busy")
    assert with_known_labels(copy, _labels("calm")) == copy
    assert with_known_labels(copy, _labels("still")) == _labels("calm", "busy", "still")
    assert with_known_labels(copy, _labels("x", "calm", "busy")) == _labels("x", "calm", "busy")
    other = _with(ID, NOTE, N, replace(MOOD, native="other", type=Enum(("x",))))
    assert with_known_labels(copy, other) == other
    listed = _with(ID, NOTE, N, replace(MOOD, type=Array(Enum(("a", "b")))))
    fewer = _with(ID, NOTE, N, replace(MOOD, type=Array(Enum(("b",)))))
    assert with_known_labels(listed, fewer) == listed
