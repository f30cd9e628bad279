"""Which column of a description a column of the log is, when names moved in between (CORRECTNESS
21)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.sources.postgresql.relations import (
    Relation,
    RelationColumn,
    fits,
    places,
    schema_of,
)

INT4, TEXT = 23, 25
OTHER_TYPE = 70_000


def described(*layout: tuple[int, str], **former: int) -> TableSchema:
    """A table whose attributes have these numbers and names now (no name: dropped), all of them
    text but `id`."""
    columns = tuple(
        Column(name, Int(32), "integer", ordinal=n, wire="int4")
        if name == "id"
        else Column(name, String(), "text", ordinal=n, wire="text")
        for n, name in layout
        if name
    )
    kinds = tuple((n, name, INT4 if name == "id" else TEXT if name else 0) for n, name in layout)
    return TableSchema(
        TableId("s", "t"), columns, ("id",), ("id",), 9, layout=kinds, former=tuple(former.items())
    )


def sent(*names: str) -> Relation:
    columns = (RelationColumn(n, INT4 if n == "id" else TEXT, -1, n == "id") for n in names)
    return Relation(9, TableId("s", "t"), "d", tuple(columns))


PLAIN = described((1, "id"), (2, "a"), (3, "b"))
CASES = {
    "same": (PLAIN, sent("id", "a", "b"), {1: 0, 2: 1, 3: 2}),
    "older than an addition": (PLAIN, sent("id", "a"), {1: 0, 2: 1}),
    "older than a rename": (PLAIN, sent("id", "old", "b"), {1: 0, 2: 1, 3: 2}),
    "older than a swap": (PLAIN, sent("id", "b", "a"), {1: 0, 2: 1, 3: 2}),
    "older than a column that is no longer generated": (
        described((1, "id"), (2, "total"), (3, "a"), (4, "b"), id=1, a=3, b=4),
        sent("id", "a", "b"),
        {1: 0, 3: 1, 4: 2},
    ),
    "no longer generated, or renamed and added": (
        described((1, "id"), (2, "total"), (3, "a"), (4, "b")),
        sent("id", "a", "b"),
        None,
    ),
    "older than two renames and an addition": (
        described((1, "id"), (2, "total"), (3, "a"), (4, "b"), id=1, a=2, b=3),
        sent("id", "a", "b"),
        {1: 0, 2: 1, 3: 2},
    ),
    "older than a drop": (
        described((1, "id"), (2, ""), (3, "b"), a=2, b=3),
        sent("id", "a", "b"),
        {1: 0, 2: 1, 3: 2},
    ),
    "newer than a drop": (
        described((1, "id"), (2, ""), (3, "b"), b=3),
        sent("id", "b"),
        {1: 0, 3: 1},
    ),
    "older than a rename after a drop": (
        described((1, "id"), (2, ""), (3, "z"), b=3),
        sent("id", "b"),
        {1: 0, 3: 1},
    ),
    "a name that another column has now": (
        described((1, "id"), (2, ""), (3, "a"), a=2),
        sent("id", "a"),
        None,
    ),
    "a name that was there for a moment": (
        described((1, "id"), (2, ""), (3, "z")),
        sent("id", "y"),
        None,
    ),
    "against the order": (
        described((1, "id"), (2, ""), (3, "a"), (4, "b")),
        sent("id", "b", "a"),
        None,
    ),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_column_is_known_by_its_number_or_not_at_all(case: str) -> None:
    """Matching by the names of now loses the values of a column that was renamed, or writes those
    of a dropped column into the one that took its name."""
    table, relation, expected = CASES[case]
    assert places(relation, table) == expected


def test_values_of_an_older_name_come_under_the_name_of_now() -> None:
    """Guards `schema_of` (CORRECTNESS 21): matched by name, a renamed column would look dropped,
    and its values would be lost."""
    schema = schema_of(sent("id", "old", "b"), PLAIN)
    assert ([c.name for c in schema.schema.columns], schema.where) == (["id", "a", "b"], (0, 1, 2))
    assert schema.code == "" and schema.schema.layout == ()


def test_what_has_two_readings_stops_the_table() -> None:
    """A guess would be silent."""
    table, relation, _ = CASES["a name that another column has now"]
    assert schema_of(relation, table).code == "source:schema-ambiguous"


@pytest.mark.parametrize("name", ["_op", "_delete", "_Origin", "_unsent"])
def test_a_column_with_a_name_of_ours_stops_its_table(name: str) -> None:
    """Guards against a column that came later: two columns of one name in a batch would give one
    the other's values."""
    table = described((1, "id"), (2, name))
    schema = schema_of(sent("id", name), table)
    assert (schema.code, schema.column) == ("source:column-reserved", name)


def test_a_type_of_users_that_is_not_the_described_one_is_unclear() -> None:
    """Its values would be decoded as the type that the column has now."""
    relation = sent("id", "a", "b")
    columns = (*relation.columns[:2], replace(relation.columns[2], oid=OTHER_TYPE))
    assert schema_of(replace(relation, columns=columns), PLAIN).code == "source:schema-ambiguous"


def test_columns_made_again_are_another_version() -> None:
    """With one version for both, a merge would cross the change."""
    again = described((1, "id"), (3, "a"))
    assert (
        schema_of(sent("id", "a"), described((1, "id"), (2, "a"))).version
        != schema_of(sent("id", "a"), again).version
    )


def test_a_part_of_a_description_does_not_say_how_rows_are_stored() -> None:
    """The rewrite that came with a later addition would be taken for known, and its rows never be
    read."""
    table = replace(PLAIN, storage="5", marks=((0, 5),))
    assert schema_of(sent("id", "a", "b"), table).schema.marks == ()
    assert schema_of(sent("id", "a"), table).schema.storage == ""
    assert schema_of(sent("id", "a", "b"), table).schema.storage == "5"


def test_a_first_relation_that_is_newer_than_the_description_is_seen() -> None:
    """Unseen, a column that was added while the table was idle would be left out of its first
    rows."""
    assert fits(sent("id", "a", "b"), PLAIN)
    assert not fits(sent("id", "a", "b", "new"), PLAIN)
    assert not fits(sent("id", "a", "z"), PLAIN)
    assert fits(sent("id"), replace(PLAIN, layout=()))
