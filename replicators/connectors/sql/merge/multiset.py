"""Multiset: a table without a key, which holds each row as often as the source does (CORRECTNESS
12).

Every row of the copy has a digest and a number among its equal rows: 1 to n without a gap. In a
batch this number is the change in the row's count: above 0 for more rows, below 0 for fewer. Joined
with the copy's present count, it gives the numbers to insert, or the highest numbers to delete.
"""

from __future__ import annotations

from sqlglot import exp

from replicators.connectors.model.modes import OCCURRENCE, ROW_HASH, Mode, extra_columns
from replicators.connectors.sql import trees
from replicators.connectors.sql.merge import whens
from replicators.connectors.sql.merge.parts import READ, SOURCE, STAGED, TARGET, Parts, digests
from replicators.connectors.sql.steps import ROW_ABSENT, Check, Statement, Step
from replicators.connectors.sql.trees import column

_PRESENT = "p"
_ABSENT = "target:row-absent"


def steps(parts: Parts) -> list[Step]:
    """The batch's rows in the target. If there are fewer rows than it removes, the commit fails."""
    if parts.batch.truncate:
        return _replaced(parts)
    checks = [] if parts.dialect.fail is not None else [_check(parts, _after(parts), _all(parts))]
    return [*checks, *([_merged(parts)] if parts.dialect.has_merge else _written(parts))]


def _counts(parts: Parts) -> exp.Table | exp.Subquery:
    """The batch with each digest once, as `STAGED`. Several files may hold the same digest."""
    if len(parts.batch.paths) == 1:
        return trees.aliased(parts.staged, STAGED)
    total: exp.Expression = exp.Sum(this=column(OCCURRENCE))
    some = exp.NEQ(this=column(OCCURRENCE), expression=trees.whole(0))
    if not parts.dialect.has_any_value:
        digest = column(ROW_HASH)
        order = exp.Order(expressions=[exp.Ordered(this=digest.copy(), nulls_first=False)])
        total = exp.Window(this=total, partition_by=[digest])
        place = exp.Window(this=exp.RowNumber(), partition_by=[digest.copy()], order=order)
        shown = [column(n) for n in (*parts.names, ROW_HASH)]
        first = parts.free("_place")
        numbered = trees.select(
            [*shown, trees.called(_bigint(total), OCCURRENCE), trees.called(place, first)],
            trees.aliased(parts.staged, STAGED),
        )
        where = trees.all_of(trees.equal(column(first), trees.whole(1)), some)
        names = [column(n) for n in (*parts.names, ROW_HASH, OCCURRENCE)]
        return trees.aliased(
            trees.select(names, trees.aliased(numbered, STAGED), where=where), STAGED
        )
    images = [trees.called(exp.AnyValue(this=column(n)), n) for n in parts.names]
    query = trees.select(
        [*images, column(ROW_HASH), trees.called(_bigint(total), OCCURRENCE)], parts.staged.copy()
    )
    if isinstance(parts.staged, exp.Subquery):
        query.set("from_", exp.From(this=trees.aliased(parts.staged, STAGED)))
    query.set("group", exp.Group(expressions=[column(ROW_HASH)]))
    many = exp.NEQ(this=total.copy(), expression=trees.whole(0))
    query.set("having", exp.Having(this=many))
    return trees.aliased(query, STAGED)


def _bigint(value: exp.Expression) -> exp.Expression:
    return exp.Cast(this=value, to=exp.DataType(this=exp.DataType.Type.BIGINT))


def _digests(parts: Parts, alias: str) -> exp.Expression | None:
    text = digests(parts.dialect, parts.batch, ROW_HASH, alias)
    return trees.raw(text) if text else None


def _here(parts: Parts) -> exp.Subquery:
    """How often the target has each digest."""
    query = trees.select(
        [
            trees.called(column(ROW_HASH, READ), _found(parts)),
            trees.called(exp.Count(this=exp.Star()), _count(parts)),
        ],
        trees.aliased(parts.target, READ),
        where=_digests(parts, READ),
    )
    query.set("group", exp.Group(expressions=[column(ROW_HASH, READ)]))
    return exp.Subquery(this=query, alias=exp.TableAlias(this=trees.name(_PRESENT)))


def _found(parts: Parts) -> str:
    return parts.free("_found")


def _count(parts: Parts) -> str:
    return parts.free("_present")


def _change() -> exp.Column:
    return column(OCCURRENCE, STAGED)


def _less(value: exp.Expression) -> exp.Expression:
    return exp.LT(this=value, expression=trees.whole(0))


def _more() -> exp.Expression:
    return exp.GT(this=_change(), expression=trees.whole(0))


def _before(parts: Parts) -> exp.Expression:
    known = column(_count(parts), _PRESENT)
    return exp.Coalesce(this=known, expressions=[trees.whole(0)])


def _after(parts: Parts) -> exp.Expression:
    return exp.Paren(this=exp.Add(this=_before(parts), expression=_change()))


def _next(value: exp.Expression) -> exp.Expression:
    return exp.Add(this=value, expression=trees.whole(1))


def _all(parts: Parts) -> exp.Join:
    on = trees.equal(column(ROW_HASH, STAGED), column(_found(parts), _PRESENT))
    return trees.join(_here(parts), on, is_left=True)


def _most(parts: Parts) -> exp.Select:
    return trees.select([exp.Max(this=exp.Abs(this=_change()))], _counts(parts))


def _check(parts: Parts, left: exp.Expression, *joins: exp.Join) -> Check:
    """Finds a digest of which more rows go than there are."""
    found = trees.select([trees.whole(1)], _counts(parts), joins=joins, where=_less(left))
    return Check(found.limit(1, copy=False), _ABSENT)


def _image(parts: Parts) -> list[exp.Expression]:
    return [column(n, STAGED) for n in (*parts.names, ROW_HASH)]


def _names(parts: Parts) -> list[str]:
    return [*parts.names, ROW_HASH, OCCURRENCE]


def _failing(parts: Parts, left: exp.Expression, value: exp.Expression) -> exp.Expression:
    """The number; the statement fails where fewer than none would be left."""
    native = parts.dialect.native(extra_columns(Mode.MULTISET)[1])
    return parts.dialect.failing(_less(left), ROW_ABSENT, value, native)


def _merged(parts: Parts) -> Statement:
    gone = parts.free("_delete")
    low: exp.Expression = trees.either(_more(), _next(_before(parts)), _next(_after(parts)))
    low = _failing(parts, _after(parts), low)
    high = trees.either(_more(), _after(parts), _before(parts))
    fewer = parts.dialect.value(_less(_change()))
    query = trees.select(
        [*_image(parts), trees.called(fewer, gone)], _counts(parts), joins=[_all(parts)]
    )
    rows = parts.dialect.numbers(query, low, high, OCCURRENCE, _most(parts))
    names = _names(parts)
    values = [column(n, SOURCE) for n in names]
    return whens.merge(
        parts,
        exp.Subquery(this=rows),
        trees.all_of(
            trees.equal(column(ROW_HASH, TARGET), column(ROW_HASH, SOURCE)),
            trees.equal(column(OCCURRENCE, TARGET), column(OCCURRENCE, SOURCE)),
            _digests(parts, TARGET),
        ),
        [
            whens.deleted(column(gone, SOURCE)),
            whens.inserted(names, values, trees.no(column(gone, SOURCE))),
        ],
    )


def _written(parts: Parts) -> list[Step]:
    """The same without MERGE. A digest either loses or gains rows, so no row is in both."""
    here, left = parts.own(TARGET), parts.free("_left")
    fewer = trees.select(
        [column(ROW_HASH, STAGED), trees.called(_after(parts), left)],
        _counts(parts),
        joins=[_all(parts)],
        where=_less(_change()),
    )
    removed = trees.all_of(
        trees.equal(column(ROW_HASH, here), column(ROW_HASH, SOURCE)),
        exp.GT(this=column(OCCURRENCE, here), expression=column(left, SOURCE)),
        _digests(parts, here),
    )
    query = trees.select(_image(parts), _counts(parts), joins=[_all(parts)], where=_more())
    low, high = _next(_before(parts)), _after(parts)
    rows = parts.dialect.numbers(query, low, high, OCCURRENCE, _most(parts))
    return [
        parts.delete(TARGET, removed, trees.aliased(fewer, SOURCE)),
        Statement(trees.insert(parts.target, _names(parts), rows)),
    ]


def _replaced(parts: Parts) -> list[Step]:
    """The batch's rows become the whole table."""
    query = trees.select(_image(parts), _counts(parts))
    last = _failing(parts, _change(), _change())
    rows = parts.dialect.numbers(query, trees.whole(1), last, OCCURRENCE, _most(parts))
    insert = trees.insert(parts.target, _names(parts), rows)
    if parts.dialect.is_one_commit:
        insert.set("overwrite", True)
        return [Statement(insert)]
    checks = [] if parts.dialect.fail is not None else [_check(parts, _change())]
    return [*checks, Statement(trees.delete_all(parts.target)), Statement(insert)]
