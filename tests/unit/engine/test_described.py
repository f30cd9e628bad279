"""Under which name a chosen table is described where it has another one at the source by now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from runners.engine.schema.describe import Described, describe_tables

A, B, C = (TableId("shop", n) for n in "abc")
KNOWN = {A: TableSchema(A, (), native_id=1), B: TableSchema(B, (), native_id=2)}


class Source:
    """A catalog of empty tables: numbers by name."""

    def __init__(self, **numbers: int) -> None:
        self._numbers = {TableId("shop", name): n for name, n in numbers.items()}

    def describe(self, tables: Sequence[TableSelection]) -> dict[TableId, TableSchema]:
        return {
            t.id: TableSchema(t.id, (), native_id=self._numbers[t.id])
            for t in tables
            if t.id in self._numbers
        }

    def find(self, numbers: Sequence[int]) -> dict[int, TableId]:
        return {n: name for name, n in self._numbers.items() if n in numbers}


def described(source: Source, *known: TableSchema, follows: bool = True) -> Described:
    chosen = [TableSelection(A, filter="x"), TableSelection(B)]
    return describe_tables(source, chosen, known or KNOWN.values(), follows=follows)  # type: ignore[arg-type]


def numbers(found: Described) -> dict[str, tuple[int, str]]:
    return {t.name: (s.native_id, s.source_id.name) for t, s in found.schemas.items()}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (Source(a=1, b=2), {"a": (1, "a"), "b": (2, "b")}),
        (Source(c=1, b=2), {"a": (1, "c"), "b": (2, "b")}),
        (Source(a=2, b=1), {"a": (1, "b"), "b": (2, "a")}),
        (Source(c=1, a=3, b=2), {"a": (1, "c"), "b": (2, "b")}),
        (Source(a=3, b=2), {"a": (3, "a"), "b": (2, "b")}),
        (Source(b=2), {"b": (2, "b")}),
    ],
)
def test_a_table_is_known_by_its_number_and_by_its_name_where_that_is_gone(
    source: Source, expected: dict[str, tuple[int, str]]
) -> None:
    """By names alone two tables that swapped theirs would go on in each other's copies, and a new
    table of the old name would be taken for the one that was renamed."""
    found = described(source)
    assert numbers(found) == expected and not found.renamed
    assert all(s.id == t for t, s in found.schemas.items())
    assert found.schemas[B].called in (None, A)
    if A in found.schemas:
        assert found.schemas[A].filter == "x"


def test_without_following_a_renamed_table_is_reported_and_its_name_counts() -> None:
    """Under the other policies the table stops: what has its name now is what a re-sync copies."""
    found = described(Source(c=1, b=2), follows=False)
    assert found.renamed == {A: C} and numbers(found) == {"b": (2, "b")}
    again = described(Source(c=1, a=3, b=2), follows=False)
    assert again.renamed == {A: C} and numbers(again)["a"] == (3, "a")


def test_a_table_that_was_followed_goes_on_under_another_policy_and_back_to_its_name() -> None:
    """The name that is known is the one to compare with, and a name that comes back has to be
    reported as well."""
    known = replace(KNOWN[A], called=C)
    found = described(Source(c=1, b=2), known, KNOWN[B], follows=False)
    assert numbers(found)["a"] == (1, "c") and not found.renamed
    back = described(Source(a=1, b=2), known, KNOWN[B])
    assert back.schemas[A].called == A


def test_two_chosen_names_never_stand_for_one_table() -> None:
    """The log gives a table's rows to one of them only: the other would silently get none."""
    found = described(Source(b=1), KNOWN[A])
    assert numbers(found) == {"a": (1, "b")}


def test_the_name_at_the_source_survives_the_stored_form() -> None:
    """Guards `TableSchema.called` in its JSON: forgotten by a restart, a renamed table would be
    looked for under its old name and reported as missing."""
    schema = replace(KNOWN[A], called=C)
    assert TableSchema.from_json(schema.to_json()) == schema


class Renamed(Source):
    """A catalog in which `a` gets the name `c`, or its own again, between the two questions, so
    many times."""

    def __init__(self, turns: int) -> None:
        super().__init__(a=1, b=2)
        self._turns = turns

    def find(self, numbers: Sequence[int]) -> dict[int, TableId]:
        found = super().find(numbers)
        if self._turns:
            self._turns -= 1
            old, new = (A, C) if A in self._numbers else (C, A)
            self._numbers[new] = self._numbers.pop(old)
        return found


@pytest.mark.parametrize("turns", [1, 2])
def test_a_table_that_is_renamed_between_two_questions_is_not_taken_for_gone(turns: int) -> None:
    """Found by the adversary. Asked once, the segments that begin then did not name the table: its
    rows in them were lost, and nothing told so, since every later look found it."""
    found = described(Renamed(turns))
    assert {t.name: s.native_id for t, s in found.schemas.items()} == {"a": 1, "b": 2}


def test_a_number_that_never_comes_with_a_schema_ends_the_questions() -> None:
    """Guards the bound `TRIES` of `describe_tables`: a table that the catalog names but never
    describes would keep capture asking for ever."""

    class Strange(Source):
        def describe(self, tables: Sequence[TableSelection]) -> dict[TableId, TableSchema]:
            found = super().describe(tables)
            return {t: s for t, s in found.items() if t != A}

    assert numbers(described(Strange(a=1, b=2))) == {"b": (2, "b")}
