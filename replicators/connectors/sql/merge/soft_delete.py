"""Soft delete: a deleted row stays with a flag and its last values."""

from __future__ import annotations

from sqlglot import exp

from replicators.connectors.model.modes import Mode, extra_columns
from replicators.connectors.sql import trees
from replicators.connectors.sql.merge import mirror, whens
from replicators.connectors.sql.merge.parts import SOURCE, STAGED, TARGET, Parts
from replicators.connectors.sql.steps import Statement, Step
from replicators.connectors.sql.trees import column

DELETED, DELETED_AT = (c.name for c in extra_columns(Mode.SOFT_DELETE))


def steps(parts: Parts) -> list[Step]:
    """Upserts rows and flags deleted ones. Unsent columns keep the target's values. A living row
    whose unsent values the target lacks makes the commit fail; a deleted row is flagged with what
    is known of it. A TRUNCATE flags every other living row in the same commit."""
    if one_merge(parts):
        return [*parts.checks(), merged(parts)]
    here, beside = parts.own(TARGET), parts.beside()
    staged = trees.aliased(parts.staged, beside)
    ranges = None if parts.batch.truncate else parts.ranges(here)
    new = [*mirror.sets(parts, here, beside), *_marks(parts, beside)]
    return [
        *parts.checks(),
        *mirror.filled(parts),
        parts.update(TARGET, new, trees.all_of(parts.match(here, beside), ranges), staged),
        mirror.added(parts, _marks(parts, STAGED), with_deleted=True),
        *rest(parts),
    ]


def one_merge(parts: Parts) -> bool:
    """Whether the dialect's MERGE does it all."""
    dialect = parts.dialect
    if not parts.batch.truncate:
        return dialect.has_merge
    has_nulls = any(c.nullable for c in parts.key) and not dialect.joins_nulls
    return dialect.has_merge and dialect.has_by_source and not has_nulls


def merged(parts: Parts) -> Statement:
    """MERGE of the batch."""
    lives = trees.no(column(parts.relation.delete, STAGED))
    ranges = None if parts.batch.truncate else parts.ranges(TARGET)
    alive = trees.no(column(parts.relation.delete, SOURCE))
    marks = _marks(parts, SOURCE)
    done = [
        whens.updated([*mirror.sets(parts, TARGET, SOURCE), *marks]),
        whens.inserted(
            [*parts.names, DELETED, DELETED_AT],
            [*mirror.inserted(parts, alive), *(value.copy() for _, value in marks)],
        ),
    ]
    if parts.batch.truncate:
        done.append(whens.rest(flags(parts), trees.no(column(DELETED, TARGET))))
    rows = mirror.source(parts, (DELETED_AT,), lives)
    return whens.merge(parts, rows, trees.all_of(parts.match(TARGET, SOURCE), ranges), done)


def _marks(parts: Parts, of: str) -> list[tuple[str, exp.Expression]]:
    return [(DELETED, column(parts.relation.delete, of)), (DELETED_AT, column(DELETED_AT, of))]


def flags(parts: Parts) -> list[tuple[str, exp.Expression]]:
    """What a TRUNCATE sets in a living row."""
    return [(DELETED, parts.true), (DELETED_AT, parts.truncated_at)]


def rest(parts: Parts) -> list[Step]:
    """UPDATE for a batch with a TRUNCATE: it flags the living rows that the batch does not name."""
    if not parts.batch.truncate:
        return []
    here, beside = parts.own(TARGET), parts.beside()
    named = trees.exists(trees.aliased(parts.staged, beside), parts.match(here, beside))
    where = trees.all_of(trees.no(column(DELETED, here)), trees.no(named))
    return [parts.update(TARGET, flags(parts), where)]


def without_rows(parts: Parts) -> list[Step]:
    """A TRUNCATE flags every living row."""
    lives = trees.no(column(DELETED, parts.own(TARGET)))
    if not parts.dialect.is_one_commit:
        return [parts.update(TARGET, flags(parts), lives)]
    none = exp.Subquery(this=nothing(parts))
    return [
        whens.merge(parts, none, parts.match(TARGET, SOURCE), [whens.rest(flags(parts), lives)])
    ]


def nothing(parts: Parts) -> exp.Select:
    """A query of no keys."""
    shown: list[exp.Expression] = [column(c.name) for c in parts.key]
    return trees.select(shown, parts.target.copy(), where=exp.false())
