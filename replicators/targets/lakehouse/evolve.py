"""Plans the changes that make a target table fit a source table. Pure: returns SQL text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.lakehouse import dialect
from replicators.targets.lakehouse.types import fit

ORDINALS = "replicator.columns"
MOVING = "_replicator_column_"
KEPT = -1
"""The number of a live column that the source dropped and the policy kept. No column of the source
has this number, now or later."""
_WIDER = {("int", "bigint"), ("float", "double")}


@dataclass(frozen=True, slots=True)
class Change:
    """One change: its SQL statement and a sentence that describes it."""

    statement: str
    text: str


def ordinals(schema: TableSchema) -> str:
    """The source's column numbers, as a table property stores them. A column that was dropped and
    made again under its old name has another number."""
    return _reported({c.name: c.ordinal for c in schema.supported})


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


def _reported(numbers: Mapping[str, int]) -> str:
    return json.dumps(numbers, sort_keys=True)


def _is_wider(old: str, new: str) -> bool:
    if (old, new) in _WIDER:
        return True
    if not (old.startswith("decimal(") and new.startswith("decimal(")):
        return False
    (p, s), (q, t) = (tuple(map(int, x[8:-1].split(","))) for x in (old, new))
    return s == t and q >= p


def _replaced(target: str, column: Column) -> list[Change]:
    return [
        Change(dialect.drop_column(target, column.name), f"column {column.name} dropped"),
        _added(target, column),
    ]


def _added(target: str, column: Column) -> Change:
    return Change(dialect.add_column(target, column), f"column {column.name} added")


def _fitted(
    target: str, live: str, column: Column, new: TableSchema, *, widens: bool, may_replace: bool
) -> list[Change]:
    native = fit(column.type).native.lower()
    if live == native:
        return []
    if widens and _is_wider(live, native):
        return [
            Change(
                dialect.widen_column(target, column), f"column {column.name} widened to {native}"
            )
        ]
    if may_replace:
        return _replaced(target, column)
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


def renames(
    target: str, live: Iterable[str], known: Mapping[str, int], new: TableSchema
) -> list[Change]:
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
        changes = [
            Change(dialect.rename_column(target, name, by), "")
            for name, by in through.items()
            if name != by
        ]
        reported = kept | {through.get(n, n): number for number, n in where.items()}
        changes.append(Change(dialect.set_properties(target, {ORDINALS: _reported(reported)}), ""))
    changes += [
        Change(
            dialect.rename_column(target, through[name], c.name),
            f"column {name} renamed to {c.name}",
        )
        for name, c in moved.items()
    ]
    return changes


def _kept(live: Iterable[str], known: Mapping[str, int], new: TableSchema) -> dict[str, int]:
    """The live columns that came from the source, that the new schema does not have, and that none
    of its columns comes from."""
    wanted = {c.name for c in new.supported} | {c.ordinal for c in new.supported if c.ordinal}
    return {n: KEPT for n in live if n in known and not {n, known[n]} & wanted}


def _renamed_reported(
    target: str, where: Mapping[int, str], kept: Mapping[str, int], new: TableSchema
) -> Change:
    """The numbers of the live columns, by their names after the renames."""
    names = {c.ordinal: c.name for c in new.supported}
    reported = {names.get(number, name): number for number, name in where.items()}
    return Change(dialect.set_properties(target, {ORDINALS: _reported({**kept, **reported})}), "")


def plan(
    target: str,
    live: Mapping[str, str],
    reported: Mapping[str, int],
    new: TableSchema,
    *,
    drops: frozenset[str],
    is_start: bool = False,
    widens: bool = True,
) -> list[Change]:
    """The changes from the live columns (name to Spark type) to `new`. Only two kinds of columns
    are dropped: those in `drops`, and those whose names other columns take.

    `reported` holds the source's column numbers of the last time. A column whose number has another
    name now is renamed. A column that stays although `new` lacks it is recorded as `KEPT`.
    Otherwise a later column with its name, or with its reused number, would be mistaken for it.

    Raises `target:evolve` for a change of type that loses something; but if the next copy begins
    (`is_start`), the column is emptied instead. Raises it for every change of type if the table's
    format can't widen columns (`widens`).
    """
    known = _known_at_start(reported, new) if is_start else reported
    numbers = {c.ordinal for c in new.supported if c.ordinal}
    may_go = drops | {c.name for c in new.supported}
    gone = [
        name
        for name in live
        if name in may_go and known.get(name, 0) not in numbers and _is_free(name, known, new)
    ]
    changes = [Change(dialect.drop_column(target, name), f"column {name} dropped") for name in gone]
    left = {name: kind for name, kind in live.items() if name not in gone}
    moves = renames(target, left, known, new)
    stale = {name for name in known if name not in left}
    if (
        moves and stale
    ):  # else, after an interruption, a reused name would be mistaken for the old column
        numbered = {name: number for name, number in known.items() if name in left}
        changes.append(Change(dialect.set_properties(target, {ORDINALS: _reported(numbered)}), ""))
    changes += moves
    where = _where(left, known)
    away = {where[c.ordinal] for c in new.supported if where.get(c.ordinal, c.name) != c.name}
    if any(c.name in away and c.ordinal not in where for c in new.supported):
        # Else, after an interruption, a new column with the name of a dropped one would be mistaken
        # for it.
        changes.append(_renamed_reported(target, where, _kept(left, known, new), new))
    for column in new.supported:
        name = where.get(column.ordinal, column.name) if column.ordinal else column.name
        if name not in left or (name in away and column.ordinal not in where):
            changes.append(_added(target, column))
        elif name == column.name and (known.get(name) or column.ordinal) != column.ordinal:
            changes += _replaced(target, column)
        else:
            live_type = left[name]
            changes += _fitted(target, live_type, column, new, widens=widens, may_replace=is_start)
    wanted = _kept(left, known, new) | {c.name: c.ordinal for c in new.supported}
    if changes or dict(reported) != wanted:
        changes.append(Change(dialect.set_properties(target, {ORDINALS: _reported(wanted)}), ""))
    return changes


def _is_free(name: str, known: Mapping[str, int], new: TableSchema) -> bool:
    """Whether a live column belongs to no column of the new schema, neither by its name nor by the
    number that its name had."""
    wanted = {c.name: c.ordinal for c in new.supported}
    if name not in wanted:
        return True
    number = known.get(name, 0)
    return number == KEPT or (bool(number) and bool(wanted[name]) and number != wanted[name])
