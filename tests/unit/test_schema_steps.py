"""Columns without numbers are known by the statements that changed them; what is not reported, is
copied afresh."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.schema.diff import ChangeKind
from replicators.connectors.schema.numbering import changes_by_steps, with_numbers
from replicators.connectors.schema.steps import SchemaStep, StepKind

T = TableId("shop", "t")
AFTER = 100


def column(name: str, kind: object = None, missing: str | None = None) -> Column:
    return Column(name, kind or String(), "text", missing=missing)  # type: ignore[arg-type]


OLD = with_numbers(TableSchema(T, tuple(column(n) for n in ("id", "a", "b")), ("id",), upto=AFTER))


def step(kind: str, old: str = "", new: str = "", at: int = AFTER + 1) -> SchemaStep:
    return SchemaStep(at, StepKind(kind), old, new, "text")


def changes(
    steps: list[SchemaStep],
    *names: str | Column,
    old: TableSchema = OLD,
    keeps: bool = True,
    key: str = "id",
) -> list[tuple[str, str, str]]:
    """Kind, name before and name after, of what leads to these columns."""
    columns = tuple(column(n) if isinstance(n, str) else n for n in names)
    new = TableSchema(T, columns, (key,), steps=tuple(steps), upto=AFTER + 9)
    _, _, found = changes_by_steps(old, new, lambda *_: keeps)
    return [(str(c.kind), c.old.name if c.old else "", c.new.name if c.new else "") for c in found]


def test_renames_are_what_statements_say() -> None:
    """Guards a swap, a chain and a rename of the key: by their names alone each looks like other
    columns."""
    assert changes([step("renamed", "a", "z")], "id", "z", "b") == [("renamed", "a", "z")]
    swap = [step("renamed", "a", "b"), step("renamed", "b", "a")]
    assert changes(swap, "id", "b", "a") == [("renamed", "a", "b"), ("renamed", "b", "a")]
    by_hand = [
        step("renamed", "a", "t"),
        step("renamed", "b", "a", 102),
        step("renamed", "t", "b", 103),
    ]
    assert changes(by_hand, "id", "b", "a") == [("renamed", "a", "b"), ("renamed", "b", "a")]
    assert changes([step("renamed", "ID", "no")], "no", "a", "b", key="no") == [
        ("renamed", "id", "no")
    ]
    assert changes([step("renamed", "a", "A")], "id", "A", "b") == [("renamed", "a", "A")]


def test_a_column_that_comes_again_is_another_one() -> None:
    """Guards against old values under a new column."""
    again = [step("dropped", "a"), step("added", new="a")]
    assert changes(again, "id", "a", "b") == [("replaced", "a", "a")]
    assert changes([again[0], replace(again[1], position=102)], "id", "b", "a") == [
        ("replaced", "a", "a")
    ]
    took = [step("dropped", "b"), step("renamed", "a", "b")]
    assert changes(took, "id", "b") == [("dropped", "b", ""), ("renamed", "a", "b")]


def test_only_what_is_newer_than_the_copy_counts() -> None:
    """Guards against following twice, and against a statement that the copy was made after."""
    older = step("renamed", "a", "z", AFTER)
    assert changes([older], "id", "a", "b") == []
    assert changes([step("added", new="b")], "id", "a", "b") == [], "described after it"
    assert changes([step("dropped", "x")], "id", "a", "b") == []


def test_what_no_statement_tells_is_copied_afresh() -> None:
    """Guards against a guess: a column that appears may be a rename, or have values in old rows."""
    assert ("rewritten", "", "") in changes([], "id", "b", "z")
    assert ("rewritten", "", "") in changes([step("renamed", "unknown", "z")], "id", "a", "b", "z")
    assert changes([step("added", new="z")], "id", "a", "b", "z") == [("added", "", "z")]
    unfilled = [step("added", new="z"), step("unfilled", new="z", at=105)]
    assert ("rewritten", "", "") in changes(unfilled, "id", "a", "b", "z")
    assert changes([step("rewritten")], "id", "a", "b") == [("rewritten", "", "")]
    assert changes([step("dropped", "b")], "id", "a") == [("dropped", "b", "")]


@pytest.mark.parametrize("kind", ["renamed", "modified"])
def test_a_change_while_the_copy_was_read_is_copied_afresh(kind: str) -> None:
    """Guards against a copy whose chunks were read before and after a change under the same
    names."""
    during = replace(OLD, read_upto=AFTER + 1)
    steps = [step(kind, "a", "b"), step(kind, "b", "a")]
    assert ("rewritten", "", "") in changes(steps, "id", "b", "a", old=during)
    later = [replace(s, position=AFTER + 2) for s in steps]
    assert ("rewritten", "", "") not in changes(later, "id", "b", "a", old=during)


def test_a_copy_from_before_numbers_follows_no_rename() -> None:
    """Guards the target's memory of numbers: without it a rename there would be a new, empty
    column."""
    bare = replace(OLD, columns=tuple(replace(c, ordinal=0) for c in OLD.columns))
    assert ("rewritten", "", "") in changes([step("renamed", "a", "z")], "id", "z", "b", old=bare)
    assert changes([], "id", "a", "b", old=bare) == []


def test_a_conversion_that_may_change_values_is_a_change_of_type() -> None:
    """Guards conversions between types that look the same to us, and several in a row."""
    said = [step("modified", "a", "a")]
    assert changes(said, "id", "a", "b") == []
    assert changes(said, "id", "a", "b", keeps=False) == [("retyped", "a", "a")]
    twice = [*said, step("modified", "a", "a", 105)]
    assert changes(twice, "id", "a", "b") == [("retyped", "a", "a")]
    small = with_numbers(TableSchema(T, (column("id"), column("a", Int(16))), ("id",), upto=AFTER))
    wide = column("a", Int(64))
    assert changes(said, "id", wide, old=small) == [("widened", "a", "a")]
    assert changes(said, "id", wide, old=small, keeps=False) == [("retyped", "a", "a")]


def test_numbers_stay_what_they_are() -> None:
    """Guards the target, which remembers numbers: a new column may not get one that is taken."""
    new = TableSchema(
        T,
        tuple(column(n) for n in ("id", "b", "c")),
        ("id",),
        steps=(step("dropped", "a"), step("added", new="c")),
        upto=AFTER + 9,
    )
    _, found, reported = changes_by_steps(OLD, new, None)
    assert [c.ordinal for c in found.columns] == [1, 3, 4]
    assert {c.kind for c in reported} == {ChangeKind.DROPPED, ChangeKind.ADDED}
    again = TableSchema.from_json(replace(new, known=OLD, read_upto=5).to_json())
    assert (again.steps, again.known, again.read_upto) == (new.steps, OLD, 5)
