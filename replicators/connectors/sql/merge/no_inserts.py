"""Mirror and soft delete of a table whose inserts are left out. Only rows that the copy has are
changed.

A row may come from another key. If the copy has the row under that key, the new row is put under
its own key. If not, the row that the copy has under the new key is removed: another row took this
key. With soft delete, only living rows count. A key may then have several rows in a batch: the last
one whose origin lives counts.
"""

from __future__ import annotations

from sqlglot import exp

from replicators.connectors.model.modes import Mode
from replicators.connectors.sql import trees
from replicators.connectors.sql.merge import mirror, soft_delete, whens
from replicators.connectors.sql.merge.parts import HELD, READ, SOURCE, STAGED, TARGET, Parts
from replicators.connectors.sql.merge.soft_delete import DELETED, DELETED_AT
from replicators.connectors.sql.steps import Statement, Step
from replicators.connectors.sql.trees import column


def steps(parts: Parts) -> list[Step]:
    """The batch's rows in the target."""
    if parts.batch.mode is Mode.SOFT_DELETE:
        return _soft(parts)
    return [_merged(parts)] if parts.dialect.has_merge else _written(parts)


def _merged(parts: Parts) -> Statement:
    relation = parts.relation
    gone = column(relation.delete, SOURCE)
    done = [whens.deleted(gone), whens.updated(mirror.sets(parts, TARGET, SOURCE))]
    if relation.moved:
        comes = trees.all_of(trees.no(gone.copy()), column(relation.moved, SOURCE))
        values = [column(n, SOURCE) for n in parts.names]
        done.append(whens.inserted(parts.names, values, comes))
    on = trees.all_of(
        parts.match(TARGET, SOURCE), None if parts.batch.truncate else parts.ranges(TARGET)
    )
    return whens.merge(parts, _source(parts), on, done)


def _source(parts: Parts) -> exp.Table | exp.Subquery:
    """The staged rows with the values of rows under other keys. A row from a key that the target
    does not have counts as deleted."""
    relation = parts.relation
    if not relation.moved:
        return parts.staged
    found = parts.free("_found")
    unheld = trees.all_of(column(relation.moved, STAGED), trees.is_null(column(found, HELD)))
    gone = trees.any_of(column(relation.delete, STAGED), unheld)
    shown = [
        *_images(parts),
        column(relation.moved, STAGED),
        trees.called(parts.dialect.value(gone), relation.delete),
    ]
    joined = trees.join(parts.held(found=found), parts.from_origin(STAGED, HELD), is_left=True)
    return exp.Subquery(
        this=trees.select(shown, trees.aliased(parts.staged, STAGED), joins=[joined])
    )


def _images(parts: Parts) -> list[exp.Expression]:
    """The rows' values, and flags for those that the row under the key keeps."""
    relation = parts.relation
    shown: list[exp.Expression] = []
    for one in relation.own:
        flag = relation.flag(one.name)
        if not flag:
            shown.append(column(one.name, STAGED))
            continue
        taken = trees.all_of(column(relation.moved, STAGED), column(flag, STAGED))
        value = trees.either(taken, column(one.name, HELD), column(one.name, STAGED))
        shown.append(trees.called(value, one.name))
    kept = [(f, mirror.kept(parts, n, STAGED)) for n, f in relation.unsent]
    return [*shown, *(trees.called(parts.dialect.value(value), f) for f, value in kept)]


def _written(parts: Parts) -> list[Step]:
    """The same without MERGE."""
    relation = parts.relation
    if not relation.moved:
        return mirror.written(parts)[:2]
    here = parts.own(STAGED)
    held = trees.exists(
        trees.aliased(parts.target, READ),
        trees.all_of(parts.from_origin(here, READ), parts.ranges(READ)),
    )
    unheld = trees.all_of(column(relation.moved, here), trees.no(held))
    return [
        parts.update(STAGED, [(relation.delete, parts.true)], unheld),
        *mirror.filled(parts),
        *mirror.written(parts, only_moved=True),
    ]


def _soft(parts: Parts) -> list[Step]:
    if soft_delete.one_merge(parts):
        return [_soft_merged(parts)]
    relation = parts.relation
    here, beside = parts.own(TARGET), parts.beside()
    done = [*_left_to_apply(parts), *mirror.filled(parts, trees.no(column(DELETED, READ)))]
    where = trees.all_of(
        parts.match(here, beside),
        None if parts.batch.truncate else parts.ranges(here),
        _applies(parts, here, beside),
    )
    new = [*mirror.sets(parts, here, beside), *_marks(parts, beside)]
    done.append(parts.update(TARGET, new, where, trees.aliased(parts.staged, beside)))
    if relation.moved:
        added = mirror.added(parts, _marks(parts, STAGED), only_moved=True, with_deleted=True)
        done.append(added)
    return [*done, *soft_delete.rest(parts)]


def _marks(parts: Parts, of: str) -> list[tuple[str, exp.Expression]]:
    return [(DELETED, column(parts.relation.delete, of)), (DELETED_AT, column(DELETED_AT, of))]


def _applies(parts: Parts, target: str, of: str) -> exp.Expression:
    """Whether a row changes the target's row under its key: that one lives, or the new row comes
    from another key."""
    lives = trees.no(column(DELETED, target))
    return trees.any_of(column(parts.relation.moved, of), lives) if parts.relation.moved else lives


def _soft_merged(parts: Parts) -> Statement:
    relation = parts.relation
    new = [*mirror.sets(parts, TARGET, SOURCE), *_marks(parts, SOURCE)]
    done = [whens.updated(new, _applies(parts, TARGET, SOURCE))]
    if relation.moved:
        names = [*parts.names, DELETED, DELETED_AT]
        values = [column(n, SOURCE) for n in (*parts.names, relation.delete, DELETED_AT)]
        done.append(whens.inserted(names, values, column(relation.moved, SOURCE)))
    if parts.batch.truncate:
        done.append(whens.rest(soft_delete.flags(parts), trees.no(column(DELETED, TARGET))))
    on = trees.all_of(
        parts.match(TARGET, SOURCE), None if parts.batch.truncate else parts.ranges(TARGET)
    )
    return whens.merge(parts, _last_that_lives(parts), on, done)


def _last_that_lives(parts: Parts) -> exp.Table | exp.Subquery:
    """Each key's last row whose origin lives at the target."""
    relation = parts.relation
    if not relation.moved:
        return parts.staged
    place = parts.free("_place")
    last = exp.Window(
        this=exp.RowNumber(),
        partition_by=[column(c.name, STAGED) for c in parts.key],
        order=exp.Order(
            expressions=[
                exp.Ordered(this=column(relation.rank, STAGED), desc=True, nulls_first=False)
            ]
        ),
    )
    own = [column(n, STAGED) for n in (relation.delete, DELETED_AT, relation.moved)]
    shown = [*_images(parts), *own, trees.called(last, place)]
    held = parts.held(trees.no(column(DELETED, READ)))
    joined = trees.join(held, parts.from_row(STAGED, HELD))
    rows = trees.select(shown, trees.aliased(parts.staged, STAGED), joins=[joined])
    first = trees.equal(column(place), trees.whole(1))
    return exp.Subquery(this=trees.select([exp.Star()], trees.aliased(rows, STAGED), where=first))


def _left_to_apply(parts: Parts) -> list[Step]:
    """DELETE of the staged rows that do not count, before the target changes."""
    relation = parts.relation
    if not relation.moved:
        return []
    here = parts.own(STAGED)
    lives = trees.all_of(
        parts.from_row(here, READ), trees.no(column(DELETED, READ)), parts.ranges(READ)
    )
    later = exp.GT(this=column(relation.rank, HELD), expression=column(relation.rank, here))
    return [
        parts.delete(STAGED, trees.no(trees.exists(trees.aliased(parts.target, READ), lives))),
        parts.delete(
            STAGED, trees.all_of(parts.match(here, HELD), later), trees.aliased(parts.staged, HELD)
        ),
    ]
