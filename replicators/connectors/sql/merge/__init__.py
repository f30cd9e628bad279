"""The statements that apply a folded batch, in every mode and dialect.

`steps` gives what one transaction does, in this order. Where the dialect's MERGE can do it, this is
one MERGE. Otherwise the staged rows are first completed in place, with values that the target has
under other keys; then UPDATE, DELETE and INSERT follow. A transaction that is rolled back leaves
the staged rows as they were.

The progress of the target, its token, is not a part of this.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from replicators.connectors.model.modes import LOGS, Mode
from replicators.connectors.sql import tables, trees
from replicators.connectors.sql.dialect import SqlDialect
from replicators.connectors.sql.merge import (
    append,
    history,
    mirror,
    multiset,
    no_inserts,
    soft_delete,
)
from replicators.connectors.sql.merge.parts import Parts, parts
from replicators.connectors.sql.steps import Statement, Step
from replicators.connectors.target import FoldedBatch

__all__ = ["has_rows", "missing", "reads_once", "steps"]

_STEPS: dict[Mode, Callable[[Parts], list[Step]]] = {
    Mode.MIRROR: mirror.steps,
    Mode.SOFT_DELETE: soft_delete.steps,
    Mode.HISTORY: history.steps,
    Mode.APPEND: append.steps,
    Mode.MESSAGES: append.steps,
    Mode.MULTISET: multiset.steps,
}
_KEPT: dict[Mode, Callable[[Parts], list[Step]]] = {
    Mode.SOFT_DELETE: soft_delete.without_rows,
    Mode.HISTORY: history.without_rows,
}
"""The modes that keep the rows which a TRUNCATE removes."""


def has_rows(batch: FoldedBatch) -> bool:
    """Whether the batch's steps read the staged relation. Otherwise nothing needs to be loaded."""
    return bool(batch.paths) and bool(batch.rows or batch.truncate)


def reads_once(batch: FoldedBatch) -> bool:
    """Whether no statement of the batch names the staged relation twice, and each key has one row
    there."""
    return batch.mode is Mode.MIRROR and not batch.no_inserts


def steps(
    dialect: SqlDialect,
    target: exp.Table,
    staged: exp.Table | exp.Subquery,
    batch: FoldedBatch,
) -> tuple[Step, ...]:
    """What one transaction does to apply the batch, in order. `target` and `staged` have no alias.
    `staged` holds the columns of `relation.relation`; for a dialect without a full MERGE it is a
    table that may be changed. Without rows, only a TRUNCATE is left of a batch: no steps, or a
    commit that changes nothing where every statement is a commit."""
    made = parts(dialect, target, staged, batch)
    if not has_rows(batch):
        return tuple(_without_rows(made))
    if batch.no_inserts and batch.mode in (Mode.MIRROR, Mode.SOFT_DELETE):
        is_emptied = batch.truncate and batch.mode is Mode.MIRROR
        return tuple(_without_rows(made) if is_emptied else no_inserts.steps(made))
    return tuple(_STEPS[batch.mode](made))


def _without_rows(made: Parts) -> list[Step]:
    if not made.batch.truncate or made.batch.mode in LOGS:
        return [Statement(tables.touch(made.target))] if made.dialect.is_one_commit else []
    if made.batch.mode in _KEPT:
        return _KEPT[made.batch.mode](made)
    if made.dialect.is_one_commit:
        return [Statement(tables.empty(made.target))]
    return [Statement(trees.delete_all(made.target))]


def missing(
    dialect: SqlDialect,
    target: exp.Table,
    staged: exp.Table | exp.Subquery,
    batch: FoldedBatch,
) -> exp.Select:
    """A query of keys: those of the staged rows that lack values which the target does not have
    either."""
    return parts(dialect, target, staged, batch).missing()
