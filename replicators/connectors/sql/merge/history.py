"""History: every version of a row is kept with the time in which it was valid."""

from __future__ import annotations

from sqlglot import exp

from replicators.connectors.model.modes import Mode, extra_columns
from replicators.connectors.sql import trees
from replicators.connectors.sql.merge import whens
from replicators.connectors.sql.merge.parts import HELD, READ, SOURCE, STAGED, TARGET, Parts
from replicators.connectors.sql.merge.soft_delete import nothing, one_merge
from replicators.connectors.sql.steps import Statement, Step
from replicators.connectors.sql.trees import column

FROM, TO, CURRENT = (c.name for c in extra_columns(Mode.HISTORY))
_PAST = "p"


def steps(parts: Parts) -> list[Step]:
    """Ends current rows and adds versions. No version begins before its key's last version in the
    target. Unsent values come from the current row under the row's previous key; the commit fails
    where there is none. A TRUNCATE ends every other current row."""
    if one_merge(parts):
        return [*parts.checks(), _merged(parts)]
    return [*parts.checks(), *_prepared(parts), *_written(parts)]


def _later(parts: Parts, of: str, name: str) -> exp.Expression:
    """The staged time, or the key's last one in the target where that is later. NULL stays
    NULL."""
    past, own = column(FROM, _PAST), column(name, of)
    return trees.either(exp.GT(this=past, expression=own), past.copy(), own.copy())


def _past(parts: Parts) -> exp.Subquery:
    """The time of each key's last version in the target."""
    last = exp.Max(this=exp.Coalesce(this=column(TO, READ), expressions=[column(FROM, READ)]))
    names = [c.name for c in parts.key]
    query = trees.select(
        [*(column(n) for n in names), trees.called(last, FROM)],
        trees.aliased(parts.target, READ),
        where=parts.ranges(READ),
    )
    query.set("group", exp.Group(expressions=[column(n) for n in names]))
    return exp.Subquery(this=query, alias=exp.TableAlias(this=trees.name(_PAST)))


def _merged(parts: Parts) -> Statement:
    delete = parts.relation.delete
    gone = column(delete, SOURCE)
    on = trees.all_of(
        gone,
        column(CURRENT, TARGET),
        parts.match(TARGET, SOURCE),
        None if parts.batch.truncate else parts.ranges(TARGET),
    )
    to = column(TO, SOURCE)
    values = [column(n, SOURCE) for n in (*parts.names, FROM, TO)]
    is_current = parts.dialect.value(trees.is_null(to))
    done = [
        whens.updated([(TO, column(FROM, SOURCE)), (CURRENT, parts.false)]),
        whens.inserted(
            [*parts.names, FROM, TO, CURRENT], [*values, is_current], trees.no(gone.copy())
        ),
    ]
    if parts.batch.truncate:
        done.append(whens.rest(_ended(parts, TARGET), column(CURRENT, TARGET)))
    return whens.merge(parts, _source(parts), on, done)


def _source(parts: Parts) -> exp.Subquery:
    relation = parts.relation
    found = parts.free("_found")
    shown: list[exp.Expression] = []
    for one in relation.own:
        flag = relation.flag(one.name)
        if not flag:
            shown.append(column(one.name, STAGED))
            continue
        there = parts.failing(trees.is_null(column(found, HELD)), column(one.name, HELD), one)
        value = trees.either(column(flag, STAGED), there, column(one.name, STAGED))
        shown.append(trees.called(value, one.name))
    shown.append(column(relation.delete, STAGED))
    shown += [trees.called(_later(parts, STAGED, n), n) for n in (FROM, TO)]
    joins = [trees.join(_past(parts), parts.match(STAGED, _PAST), is_left=True)]
    if relation.unsent:
        held = parts.held(column(CURRENT, READ), found=found)
        joins.append(trees.join(held, parts.from_origin(STAGED, HELD), is_left=True))
    query = trees.select(shown, trees.aliased(parts.staged, STAGED), joins=joins)
    return exp.Subquery(this=query)


def _prepared(parts: Parts) -> list[Step]:
    """The staged rows with their times and values, before the target changes."""
    here = parts.own(STAGED)
    done: list[Step] = []
    if parts.relation.unsent:
        new = [
            (n, trees.either(column(f, here), column(n, HELD), column(n, here)))
            for n, f in parts.relation.unsent
        ]
        held = parts.held(column(CURRENT, READ))
        done.append(parts.update(STAGED, new, parts.from_origin(here, HELD), held))
    times = [(n, _later(parts, here, n)) for n in (FROM, TO)]
    return [*done, parts.update(STAGED, times, parts.match(here, _PAST), _past(parts))]


def _written(parts: Parts) -> list[Step]:
    here, beside = parts.own(TARGET), parts.beside()
    gone = column(parts.relation.delete, beside)
    where = trees.all_of(
        gone,
        column(CURRENT, here),
        parts.match(here, beside),
        None if parts.batch.truncate else parts.ranges(here),
    )
    ended = [(TO, column(FROM, beside)), (CURRENT, parts.false)]
    done: list[Step] = [parts.update(TARGET, ended, where, trees.aliased(parts.staged, beside))]
    if parts.batch.truncate:
        done += _rest(parts)
    names = [*parts.names, FROM, TO]
    is_current = parts.dialect.value(trees.is_null(column(TO)))
    rows = trees.select(
        [*(column(n) for n in names), is_current],
        trees.aliased(parts.staged, STAGED),
        where=trees.no(column(parts.relation.delete)),
    )
    return [*done, Statement(trees.insert(parts.target, [*names, CURRENT], rows))]


def _ended(parts: Parts, of: str) -> list[tuple[str, exp.Expression]]:
    at, begun = parts.truncated_at, column(FROM, of)
    late = trees.either(exp.GT(this=begun, expression=at), begun.copy(), at.copy())
    return [(TO, late), (CURRENT, parts.false)]


def _rest(parts: Parts) -> list[Step]:
    """UPDATE that ends the rows that are still current. All that the batch names have ended
    already."""
    here = parts.own(TARGET)
    return [parts.update(TARGET, _ended(parts, here), column(CURRENT, here))]


def without_rows(parts: Parts) -> list[Step]:
    """A TRUNCATE ends every current row."""
    if not parts.dialect.is_one_commit:
        return _rest(parts)
    none = exp.Subquery(this=nothing(parts))
    done = whens.rest(_ended(parts, TARGET), column(CURRENT, TARGET))
    return [whens.merge(parts, none, parts.match(TARGET, SOURCE), [done])]
