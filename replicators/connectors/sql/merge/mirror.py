"""Mirror: the copy equals the source. Tables without a key take inserts only."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from replicators.connectors.model.schema import Column
from replicators.connectors.sql import trees
from replicators.connectors.sql.merge import whens
from replicators.connectors.sql.merge.parts import HELD, READ, SOURCE, STAGED, TARGET, Parts
from replicators.connectors.sql.steps import Statement, Step
from replicators.connectors.sql.trees import column


def steps(parts: Parts) -> list[Step]:
    """The batch's rows in the target."""
    if parts.batch.truncate:
        return replaced(parts)
    if not parts.relation.delete:
        return appended(parts)
    if parts.dialect.has_merge:
        return [*parts.checks(), merged(parts)]
    return [*parts.checks(), *filled(parts), *written(parts)]


def appended(parts: Parts) -> list[Step]:
    """INSERT of every row."""
    shown: list[exp.Expression] = [column(n) for n in parts.names]
    rows = trees.select(shown, trees.aliased(parts.staged, STAGED))
    return [Statement(trees.insert(parts.target, parts.names, rows))]


def replaced(parts: Parts) -> list[Step]:
    """The batch's remaining rows become the whole table."""
    relation = parts.relation
    shown: list[exp.Expression] = []
    for one in relation.own:
        value: exp.Expression = column(one.name)
        if relation.flag(one.name):
            failed = parts.failing(column(relation.flag(one.name)), value, one)
            value = trees.called(failed, one.name) if failed is not value else value
        shown.append(value)
    where = trees.no(column(relation.delete)) if relation.delete else None
    rows = trees.select(shown, trees.aliased(parts.staged, STAGED), where=where)
    insert = trees.insert(parts.target, parts.names, rows)
    if parts.dialect.is_one_commit:
        insert.set("overwrite", True)
        return [Statement(insert)]
    return [*parts.checks(), Statement(trees.delete_all(parts.target)), Statement(insert)]


def source(
    parts: Parts, more: Sequence[str] = (), lost: exp.Expression | None = None
) -> exp.Table | exp.Subquery:
    """The staged rows with every value that rows under other keys have: these are read from the
    target. A flag stays true where the value is in the row under the row's own key. `more`: further
    columns. The statement fails where `lost` is true, or where there is no such row."""
    relation = parts.relation
    if not relation.moved:
        return parts.staged
    found = parts.free("_found")
    absent = trees.is_null(column(found, HELD))
    shown: list[exp.Expression] = []
    for one in relation.own:
        flag = relation.flag(one.name)
        if not flag:
            shown.append(column(one.name, STAGED))
            continue
        is_lost = absent if lost is None else trees.all_of(absent, lost)
        there = parts.failing(is_lost.copy(), column(one.name, HELD), one)
        taken = trees.all_of(column(relation.moved, STAGED), column(flag, STAGED))
        shown.append(trees.called(trees.either(taken, there, column(one.name, STAGED)), one.name))
    shown += [column(n, STAGED) for n in (relation.delete, *more)]
    shown += [
        trees.called(parts.dialect.value(kept(parts, n, STAGED)), f) for n, f in relation.unsent
    ]
    joined = trees.join(parts.held(found=found), parts.from_origin(STAGED, HELD), is_left=True)
    query = trees.select(shown, trees.aliased(parts.staged, STAGED), joins=[joined])
    return exp.Subquery(this=query)


def kept(parts: Parts, name: str, of: str) -> exp.Expression:
    """Whether a staged row's value is the one that the target has under the row's own key."""
    flag = column(parts.relation.flag(name), of)
    if not parts.relation.moved:
        return flag
    return trees.all_of(flag, trees.no(column(parts.relation.moved, of)))


def sets(parts: Parts, target: str, of: str) -> list[tuple[str, exp.Expression]]:
    """What an UPDATE sets, by a MERGE's source."""
    return [(c.name, _set(parts, c, target, of)) for c in parts.relation.own]


def _set(parts: Parts, one: Column, target: str, of: str) -> exp.Expression:
    flag = parts.relation.flag(one.name)
    value = column(one.name, of)
    if not flag:
        return value
    is_kept = column(flag, of) if of == SOURCE else kept(parts, one.name, of)
    return trees.either(is_kept, column(one.name, target), value)


def inserted(parts: Parts, lost: exp.Expression | None = None) -> list[exp.Expression]:
    """The values that a MERGE inserts. It fails where the value is in a row that is not there.
    Names that only one side has get no prefix in Spark: it resolves each name again, and with
    prefixes its name table costs twice as much to build."""
    of = "" if parts.dialect.has_short_names else SOURCE
    values = []
    for one in parts.relation.own:
        value: exp.Expression = column(one.name, of)
        flag = parts.relation.flag(one.name)
        if flag:
            condition = trees.all_of(
                column(flag, SOURCE), lost.copy() if lost is not None else None
            )
            value = parts.failing(condition, value, one)
        values.append(value)
    return values


def merged(parts: Parts) -> Statement:
    """MERGE of the batch. A new row that lacks values makes the statement fail."""
    gone = column(parts.relation.delete, SOURCE)
    return whens.merge(
        parts,
        source(parts),
        trees.all_of(parts.match(TARGET, SOURCE), parts.ranges(TARGET)),
        [
            whens.deleted(gone),
            whens.updated(sets(parts, TARGET, SOURCE)),
            whens.inserted(parts.names, inserted(parts), trees.no(gone.copy())),
        ],
    )


def filled(parts: Parts, *conditions: exp.Expression | None) -> list[Step]:
    """Values that rows under other keys have, written into the staged rows before the target
    changes. For batches that take several statements."""
    relation = parts.relation
    if not (relation.moved and relation.unsent):
        return []
    here = parts.own(STAGED)
    new = [
        (n, trees.either(column(f, here), column(n, HELD), column(n, here)))
        for n, f in relation.unsent
    ]
    return [parts.update(STAGED, new, parts.from_origin(here, HELD), parts.held(*conditions))]


def written(parts: Parts, *, only_moved: bool = False) -> list[Step]:
    """The staged rows in the target, where there is no MERGE: DELETE, UPDATE and INSERT. They need
    no unique index at the target. `only_moved`: only new rows that come from another key are
    inserted."""
    here, beside = parts.own(TARGET), parts.beside()
    staged = trees.aliased(parts.staged, beside)
    gone = column(parts.relation.delete, beside)
    found = trees.all_of(parts.match(here, beside), parts.ranges(here))
    lives = trees.no(gone.copy())
    return [
        parts.delete(TARGET, trees.all_of(found, gone), staged),
        parts.update(
            TARGET, sets(parts, here, beside), trees.all_of(found.copy(), lives), staged.copy()
        ),
        added(parts, only_moved=only_moved, follows_update=not only_moved),
    ]


def added(
    parts: Parts,
    more: Sequence[tuple[str, exp.Expression]] = (),
    *,
    only_moved: bool = False,
    with_deleted: bool = False,
    follows_update: bool = False,
) -> Statement:
    """INSERT of the staged rows whose key the target does not have. `more`: further columns and
    their values. `follows_update`: right after the UPDATE of all rows that the target has. Where
    this one found none, nothing is looked up: MySQL would first copy all rows."""
    relation = parts.relation
    there = trees.all_of(parts.match(READ, STAGED), parts.ranges(READ))

    def inserted(absent: exp.Expression | None) -> exp.Expression:
        where = trees.all_of(
            None if with_deleted else trees.no(column(relation.delete, STAGED)),
            column(relation.moved, STAGED) if only_moved else None,
            absent,
        )
        shown = [column(n, STAGED) for n in parts.names]
        rows = trees.select(
            [*shown, *(value for _, value in more)],
            trees.aliased(parts.staged, STAGED),
            where=where,
        )
        return trees.insert(parts.target, [*parts.names, *(n for n, _ in more)], rows)

    absent = trees.no(trees.exists(trees.aliased(parts.target, READ), there))
    return Statement(inserted(absent), inserted(None) if follows_update else None)
