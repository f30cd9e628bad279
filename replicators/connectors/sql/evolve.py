"""Plans the changes that make a target table fit a source table, for every target that changes
tables by SQL. Pure: it knows no dialect. What differs between targets are the native types, which
of them can be widened in place, and the text of each alteration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.problems.errors import ReplicationError

MOVING = "_replicator_column_"
KEPT = -1
"""The number of a live column that the source dropped and the policy kept. No column of the source
has this number, now or later."""


@dataclass(frozen=True, slots=True)
class Drop:
    """The column goes, with its values."""

    name: str


@dataclass(frozen=True, slots=True)
class Add:
    """A new column; existing rows get NULL."""

    column: Column


@dataclass(frozen=True, slots=True)
class Rename:
    """The column gets another name; the rows keep their values."""

    name: str
    new: str


@dataclass(frozen=True, slots=True)
class Widen:
    """The column gets a wider type; the rows keep their values."""

    column: Column


@dataclass(frozen=True, slots=True)
class Note:
    """The source's column numbers are recorded. They are recorded between other alterations too, so
    that an interrupted change goes on where it stopped."""

    numbers: Mapping[str, int]


Alteration = Drop | Add | Rename | Widen | Note


@dataclass(frozen=True, slots=True)
class Change:
    """An alteration, and a sentence that describes it (empty: nobody needs it)."""

    alteration: Alteration
    text: str = ""


@dataclass(frozen=True, slots=True)
class Types:
    """A target's types: `native` gives a column's own (in any case), `is_wider` says whether a
    column may change from one lower-case native type to another in place. Leave `is_wider` out for
    a target that can't change types."""

    native: Callable[[Column], str]
    is_wider: Callable[[str, str], bool] = lambda _, __: False


def _known_at_start(known: Mapping[str, int], new: TableSchema) -> Mapping[str, int]:
    """The known column numbers of a live table when its next copy begins. If the numbers belong to
    a copy and not to the source, the next copy's numbers mean something else, so columns are
    matched by name. Kept columns are matched by name too: readers see them until the copy is
    published."""
    numbers = {c.name: c.ordinal for c in new.columns}
    return {
        name: numbers.get(name, 0) if new.copy_numbers or number == KEPT else number
        for name, number in known.items()
    }


def _replaced(column: Column) -> list[Change]:
    return [
        Change(Drop(column.name), f"column {column.name} dropped"),
        _added(column),
    ]


def _added(column: Column) -> Change:
    return Change(Add(column), f"column {column.name} added")


def _fitted(
    live: str, column: Column, new: TableSchema, types: Types, *, may_replace: bool
) -> list[Change]:
    live, native = live.lower(), types.native(column).lower()
    if live == native:
        return []
    if types.is_wider(live, native):
        return [Change(Widen(column), f"column {column.name} widened to {native}")]
    if may_replace:
        return _replaced(column)
    raise ReplicationError(
        "target:evolve", table=new.id, change=f"{column.name} {live} to {native}"
    )


def _where(live: Iterable[str], known: Mapping[str, int]) -> dict[int, str]:
    """The live name of each column that the source identifies by a number. A column in the middle
    of a rename comes first."""
    names = set(live)
    found = {number: name for name, number in known.items() if number > 0 and name in names}
    on_its_way = {
        int(n.removeprefix(MOVING)): n
        for n in names
        if n.startswith(MOVING) and n.removeprefix(MOVING).isdigit()
    }
    return found | on_its_way


def renames(live: Iterable[str], known: Mapping[str, int], new: TableSchema) -> list[Change]:
    """The renames that give live columns the names that their numbers have in `new`. If another
    column still has such a name, all renames go through temporary names, so that an interrupted
    change can continue."""
    names = set(live)
    where, kept = _where(names, known), _kept(names, known, new)
    moved = {
        where[c.ordinal]: c
        for c in new.supported
        if c.ordinal in where and where[c.ordinal] != c.name
    }
    through = {name: name for name in moved}
    changes = []
    if any(c.name in names for c in moved.values()):
        through = {name: f"{MOVING}{c.ordinal}" for name, c in moved.items()}
        changes = [Change(Rename(name, by)) for name, by in through.items() if name != by]
        recorded = kept | {through.get(n, n): number for number, n in where.items()}
        changes.append(Change(Note(recorded)))
    changes += [
        Change(Rename(through[name], c.name), f"column {name} renamed to {c.name}")
        for name, c in moved.items()
    ]
    return changes


def _kept(live: Iterable[str], known: Mapping[str, int], new: TableSchema) -> dict[str, int]:
    """The live columns that came from the source, that the new schema does not have, and that none
    of its columns comes from."""
    wanted = {c.name for c in new.supported} | {c.ordinal for c in new.supported if c.ordinal}
    return {n: KEPT for n in live if n in known and not {n, known[n]} & wanted}


def _renamed_recorded(
    where: Mapping[int, str], kept: Mapping[str, int], new: TableSchema
) -> Change:
    """The numbers of the live columns, by their names after the renames."""
    names = {c.ordinal: c.name for c in new.supported}
    recorded = {names.get(number, name): number for number, name in where.items()}
    return Change(Note({**kept, **recorded}))


def plan(
    live: Mapping[str, str],
    recorded: Mapping[str, int],
    new: TableSchema,
    *,
    drops: frozenset[str],
    types: Types,
    is_start: bool = False,
) -> list[Change]:
    """The changes from the live columns (name to native type) to `new`. Only two kinds of columns
    are dropped: those in `drops`, and those whose names other columns take.

    `recorded` holds the source's column numbers of the last time. A column whose number has another
    name now is renamed. A column that stays although `new` lacks it is recorded as `KEPT`.
    Otherwise a later column with its name, or with its reused number, would be mistaken for it.

    Raises `target:evolve` for a change of type that loses something; but if the next copy begins
    (`is_start`), the column is emptied instead.
    """
    known = _known_at_start(recorded, new) if is_start else recorded
    numbers = {c.ordinal for c in new.supported if c.ordinal}
    may_go = drops | {c.name for c in new.supported}
    gone = [
        name
        for name in live
        if name in may_go and known.get(name, 0) not in numbers and _is_free(name, known, new)
    ]
    changes = [Change(Drop(name), f"column {name} dropped") for name in gone]
    left = {name: kind for name, kind in live.items() if name not in gone}
    moves = renames(left, known, new)
    stale = {name for name in known if name not in left}
    if (
        moves and stale
    ):  # else, after an interruption, a reused name would be mistaken for the old column
        numbered = {name: number for name, number in known.items() if name in left}
        changes.append(Change(Note(numbered)))
    changes += moves
    where = _where(left, known)
    away = {where[c.ordinal] for c in new.supported if where.get(c.ordinal, c.name) != c.name}
    if any(c.name in away and c.ordinal not in where for c in new.supported):
        # Else, after an interruption, a new column with the name of a dropped one would be mistaken
        # for it.
        changes.append(_renamed_recorded(where, _kept(left, known, new), new))
    for column in new.supported:
        name = where.get(column.ordinal, column.name) if column.ordinal else column.name
        if name not in left or (name in away and column.ordinal not in where):
            changes.append(_added(column))
        elif name == column.name and (known.get(name) or column.ordinal) != column.ordinal:
            changes += _replaced(column)
        else:
            changes += _fitted(left[name], column, new, types, may_replace=is_start)
    wanted = _kept(left, known, new) | {c.name: c.ordinal for c in new.supported}
    if changes or dict(recorded) != wanted:
        changes.append(Change(Note(wanted)))
    return changes


def _is_free(name: str, known: Mapping[str, int], new: TableSchema) -> bool:
    """Whether a live column belongs to no column of the new schema, neither by its name nor by the
    number that its name had."""
    wanted = {c.name: c.ordinal for c in new.supported}
    if name not in wanted:
        return True
    number = known.get(name, 0)
    return number == KEPT or (bool(number) and bool(wanted[name]) and number != wanted[name])
