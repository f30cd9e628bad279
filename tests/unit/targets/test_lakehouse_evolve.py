"""The plan that brings a target table's columns to a new schema, played on a table made of a
dict."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.lakehouse import evolve
from replicators.targets.lakehouse.types import fit


def schema(**columns: int) -> TableSchema:
    """A schema by names and numbers; names that begin with n are integers."""
    made = (
        Column(name, Int(32) if name.startswith("n") else String(), "", ordinal=number)
        for name, number in columns.items()
    )
    return TableSchema(TableId("shop", "t"), tuple(made))


@dataclass
class Lake:
    """A target table: each live column with its Spark type and the values it holds, told by a
    word."""

    columns: dict[str, tuple[str, str]]
    known: dict[str, int]
    done: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, made: TableSchema) -> Lake:
        columns = {
            c.name: (fit(c.type).native.lower(), f"values of {c.ordinal}") for c in made.columns
        }
        return cls(columns, {c.name: c.ordinal for c in made.columns})

    def plan(
        self, old: TableSchema, new: TableSchema, *, is_start: bool = False
    ) -> list[evolve.Change]:
        types = {name: kind for name, (kind, _) in self.columns.items()}
        drops = frozenset() if is_start else frozenset(c.name for c in old.columns)
        return evolve.plan("t", types, self.known, new, drops=drops, is_start=is_start)

    def run(self, statement: str) -> None:
        """What Spark would do."""
        name, *rest = re.findall(r"`([^`]+)`", statement)
        if "RENAME COLUMN" in statement:
            assert rest[0] not in self.columns, "the name is another column's"
            self.columns[rest[0]] = self.columns.pop(name)
        elif "DROP COLUMN" in statement:
            del self.columns[name]
        elif "ADD COLUMN" in statement:
            assert name not in self.columns
            self.columns[name] = (statement.rsplit(" ", 1)[1].lower(), "NULL")
        elif "ALTER COLUMN" in statement:
            self.columns[name] = (statement.rsplit(" ", 1)[1].lower(), self.columns[name][1])
        else:
            raise AssertionError(statement)

    def apply(self, change: evolve.Change) -> None:
        if "TBLPROPERTIES" in change.statement:
            reported = re.search(r"= '(\{.*\})'", change.statement)
            assert reported is not None
            self.known = json.loads(reported[1])
        else:
            self.run(change.statement)

    def values(self) -> dict[str, str]:
        return {name: value for name, (_, value) in self.columns.items()}


OLD = schema(id=1, a=2, b=3)
CASES = {
    "renamed": (schema(id=1, z=2, b=3), {"z": "values of 2", "b": "values of 3"}),
    "swapped": (schema(id=1, b=2, a=3), {"b": "values of 2", "a": "values of 3"}),
    "moved on": (schema(id=1, b=2, c=3), {"b": "values of 2", "c": "values of 3"}),
    "dropped, and its name taken": (schema(id=1, a=3), {"a": "values of 3"}),
    "dropped and added": (schema(id=1, b=3, c=4), {"b": "values of 3", "c": "NULL"}),
    "made again": (schema(id=1, a=4, b=3), {"a": "NULL", "b": "values of 3"}),
    "renamed, and its name taken": (
        schema(id=1, z=2, a=4, b=3),
        {"z": "values of 2", "a": "NULL", "b": "values of 3"},
    ),
    "moved on, and the first name taken": (
        schema(id=1, b=2, c=3, a=4),
        {"b": "values of 2", "c": "values of 3", "a": "NULL"},
    ),
    "round of three": (
        schema(id=2, a=3, b=1),
        {"id": "values of 2", "a": "values of 3", "b": "values of 1"},
    ),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_values_follow_their_columns_number_also_when_cut_off_anywhere(case: str) -> None:
    """Matching columns by name would leave values under another column's name; forgetting, between
    two statements, which column is on its way would drop its values at the next try."""
    new, expected = CASES[case]
    changes = Lake.of(OLD).plan(OLD, new)
    for cut in range(len(changes) + 1):
        lake = Lake.of(OLD)
        for change in changes[:cut]:
            lake.apply(change)
        for change in lake.plan(OLD, new):
            lake.apply(change)
        wanted = {"id": "values of 1", **expected}
        assert lake.values() == wanted, f"cut off after {cut} of {[c.statement for c in changes]}"
        assert lake.plan(OLD, new) == []


AFTER_KEPT = {
    "made again": (schema(id=1, a=2, b=4), {"a": "values of 2", "b": "NULL"}),
    "made again under its number": (schema(id=1, a=2, b=3), {"a": "values of 2", "b": "NULL"}),
    "its number used again": (
        schema(id=1, a=2, c=3),
        {"a": "values of 2", "b": "values of 3", "c": "NULL"},
    ),
    "its name taken": (schema(id=1, b=2), {"b": "values of 2"}),
    "its name taken, and that one's": (
        schema(id=2, b=1),
        {"id": "values of 2", "b": "values of 1"},
    ),
    "another's name taken": (
        schema(id=1, z=2, a=4),
        {"z": "values of 2", "a": "NULL", "b": "values of 3"},
    ),
    "others moved": (
        schema(id=2, a=1, d=4),
        {"id": "values of 2", "a": "values of 1", "b": "values of 3", "d": "NULL"},
    ),
}


@pytest.mark.parametrize("case", sorted(AFTER_KEPT))
@pytest.mark.parametrize("between", [schema(id=1, a=2), schema(id=1, a=2, d=4)])
def test_a_kept_column_is_none_that_comes_later(case: str, between: TableSchema) -> None:
    """Guards the policy lenient: were a column forgotten that the source dropped, one made later
    would show its values. MySQL's columns take the numbers of dropped ones again."""
    new, expected = AFTER_KEPT[case]
    kept = Lake.of(OLD)
    for change in kept.plan(schema(id=1, a=2), between):
        kept.apply(change)
    assert kept.plan(between, between) == []
    assert kept.values()["b"] == "values of 3"
    changes = kept.plan(between, new)
    for cut in range(len(changes) + 1):
        lake = Lake(dict(kept.columns), dict(kept.known))
        for change in changes[:cut]:
            lake.apply(change)
        for change in lake.plan(between, new):
            lake.apply(change)
        assert lake.values() == {"id": "values of 1", **expected}, f"cut off after {cut}"
        assert lake.known == dict.fromkeys(lake.columns, evolve.KEPT) | Lake.of(new).known
        assert lake.plan(new, new) == []


def test_readers_see_a_kept_column_until_the_next_copy_is_published() -> None:
    """Guards what stays readable: taken for another column as the copy begins, it would be emptied
    at once."""
    lake, left, new = Lake.of(OLD), schema(id=1, a=2), schema(id=1, a=2, b=4)
    for change in lake.plan(left, left):
        lake.apply(change)
    for change in lake.plan(left, new, is_start=True):
        lake.apply(change)
    assert lake.values() == Lake.of(OLD).values()
    assert lake.known == Lake.of(new).known


def test_a_column_that_is_renamed_and_widened_keeps_its_values() -> None:
    """The type is altered under the new name: under the old one there is no column any more."""
    old = schema(n=1)
    new = TableSchema(old.id, (Column("m", Int(64), "", ordinal=1),))
    lake = Lake.of(old)
    for change in lake.plan(old, new):
        lake.apply(change)
    assert lake.columns == {"m": ("bigint", "values of 1")}


def test_a_type_that_loses_something_is_refused() -> None:
    """Followed silently, it would empty the column."""
    old = schema(n=1)
    new = TableSchema(old.id, (Column("n", String(), "", ordinal=1),))
    with pytest.raises(ReplicationError, match="target:evolve"):
        Lake.of(old).plan(old, new)


def test_where_types_are_not_widened_a_wider_one_is_refused_before_anything_is_done() -> None:
    """As with Delta, which has no way to do it that other readers know: reported as an unknown
    fault it was tried again for ever."""
    old = schema(n=1)
    new = TableSchema(old.id, (Column("n", Int(64), "", ordinal=1),))
    assert evolve.plan("t", {"n": "int"}, {"n": 1}, new, drops=frozenset())
    with pytest.raises(ReplicationError, match="target:evolve"):
        evolve.plan("t", {"n": "int"}, {"n": 1}, new, drops=frozenset(), widens=False)


@pytest.mark.parametrize(("is_copys", "became"), [(True, OLD), (False, schema(id=1, b=2, a=3))])
def test_numbers_of_a_copy_mean_nothing_for_the_next_one(
    is_copys: bool, became: TableSchema
) -> None:
    """Where a source has no numbers, each copy counts its columns anew: taken for the same, they
    would rename columns that readers still see; and left in the table, they would rename the new
    copy's as it is published."""
    new = replace(schema(id=1, b=2, a=3), copy_numbers=is_copys)
    lake = Lake.of(OLD)
    for change in lake.plan(OLD, new, is_start=True):
        lake.apply(change)
    assert lake.values() == Lake.of(became).values()
    assert lake.plan(OLD, new) == []


SCHEMAS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "n", "m", "N"]), st.integers(1, 6), st.booleans()),
    min_size=1,
    max_size=5,
    unique_by=(lambda c: c[0].lower(), lambda c: c[1]),
).map(
    lambda made: TableSchema(
        TableId("shop", "t"),
        tuple(
            Column(name, Int(32) if is_number else String(), "", ordinal=number)
            for name, number, is_number in made
        ),
    )
)


def typed(made: TableSchema) -> TableSchema:
    """The same with a type that goes by the number."""
    kinds = {True: Int(32), False: String()}
    columns = tuple(replace(c, type=kinds[c.ordinal % 2 == 0]) for c in made.columns)
    return replace(made, columns=columns)


@given(
    old=SCHEMAS.map(typed), new=SCHEMAS.map(typed), kept=st.integers(0, 4), cut=st.integers(0, 20)
)
@settings(deadline=None)
def test_values_follow_their_numbers_between_any_two_schemas(
    old: TableSchema, new: TableSchema, kept: int, cut: int
) -> None:
    """The same as the cases by hand, for what nobody thought of; `kept`: so many columns are
    dropped before, and stay in the target; `cut`: after so many statements it begins anew."""
    lake = Lake.of(old)
    staying = old.columns[1:][:kept]
    old = replace(old, columns=tuple(c for c in old.columns if c not in staying))
    for change in lake.plan(old, old):
        lake.apply(change)
    for change in lake.plan(old, new)[:cut]:
        lake.apply(change)
    for change in lake.plan(old, new):
        lake.apply(change)
    known = {c.ordinal for c in old.columns}
    reported = {
        c.name: f"values of {c.ordinal}" if c.ordinal in known else "NULL" for c in new.columns
    }
    assert lake.values() == {c.name: f"values of {c.ordinal}" for c in staying} | reported
    assert lake.known == {c.name: evolve.KEPT for c in staying} | Lake.of(new).known
    assert lake.plan(old, new) == []


@given(old=SCHEMAS, new=SCHEMAS, is_copys=st.booleans())
@settings(deadline=None)
def test_what_a_copy_wrote_stays_under_its_names_when_it_is_published(
    old: TableSchema, new: TableSchema, is_copys: bool
) -> None:
    """Rows are written between two plans, from whatever schema the copy before had: the second may
    only take away what the first had to leave."""
    lake, new = Lake.of(old), replace(new, copy_numbers=is_copys)
    for change in lake.plan(old, new, is_start=True):
        lake.apply(change)
    written = {c.name: (fit(c.type).native.lower(), f"new {c.name}") for c in new.columns}
    assert all(lake.columns[name][0] == kind for name, (kind, _) in written.items())
    lake.columns.update(written)
    live = replace(old, columns=tuple(Column(n, String(), "") for n in lake.columns))
    for change in lake.plan(live, new):
        lake.apply(change)
    assert lake.columns == written
    assert lake.plan(live, new) == []


def test_a_table_from_before_numbers_gets_them_and_keeps_its_values() -> None:
    """Taken for other columns, all would be emptied."""
    lake = Lake.of(OLD)
    lake.known = dict.fromkeys(lake.known, 0)
    for change in lake.plan(OLD, schema(id=1, a=2, b=3, c=4)):
        lake.apply(change)
    assert lake.values() == {**Lake.of(OLD).values(), "c": "NULL"}
    assert lake.known == {"id": 1, "a": 2, "b": 3, "c": 4}
