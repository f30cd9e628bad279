"""What must change in a target table so that it fits a source table: a pure plan, with its SQL text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from replicators.connectors.errors import ReplicationError
from replicators.connectors.schema import Column, TableSchema
from replicators.targets.lakehouse import dialect
from replicators.targets.lakehouse.types import fit

ORDINALS = "replicator.columns"
_WIDER = {("int", "bigint"), ("float", "double")}


@dataclass(frozen=True, slots=True)
class Change:
    """One change: the statement that makes it and a sentence about it."""

    statement: str
    text: str


def ordinals(schema: TableSchema) -> str:
    """The source's numbers of the columns, as a table property keeps them: a column that was dropped and made again
    under its old name has another number."""
    return json.dumps({c.name: c.ordinal for c in schema.supported}, sort_keys=True)


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
    target: str, live: str, column: Column, new: TableSchema, *, may_replace: bool
) -> list[Change]:
    native = fit(column.type).native.lower()
    if live == native:
        return []
    if _is_wider(live, native):
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


def plan(
    target: str,
    live: Mapping[str, str],
    known: Mapping[str, int],
    new: TableSchema,
    *,
    drops: frozenset[str],
    may_replace: bool = False,
) -> list[Change]:
    """The changes from the live columns (name to Spark type) to `new`; only columns in `drops` are dropped.

    `known` has the source's column numbers of the last time. `target:evolve` for a change of type that loses something,
    unless `may_replace`: then the column is emptied.
    """
    wanted = {c.name for c in new.supported}
    changes = [
        Change(dialect.drop_column(target, name), f"column {name} dropped")
        for name in live
        if name in drops and name not in wanted
    ]
    for column in new.supported:
        if column.name not in live:
            changes.append(_added(target, column))
        elif known.get(column.name, column.ordinal) != column.ordinal:
            changes += _replaced(target, column)
        else:
            changes += _fitted(target, live[column.name], column, new, may_replace=may_replace)
    if changes or dict(known) != json.loads(ordinals(new)):
        changes.append(Change(dialect.set_properties(target, {ORDINALS: ordinals(new)}), ""))
    return changes
