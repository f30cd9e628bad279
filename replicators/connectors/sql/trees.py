"""Small parts of SQL trees. Every name is quoted, so that any dialect takes it as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from sqlglot import exp


def name(text: str) -> exp.Identifier:
    """A name as a quoted identifier."""
    return exp.Identifier(this=text, quoted=True)


def table(names: Sequence[str], alias: str = "") -> exp.Table:
    """A table by its name parts, the outermost first: any number from one on."""
    *outer, last = names[-3:] if len(names) <= 3 else (names[0], names[1], "")
    made = exp.Table(this=name(last))
    if len(names) > 3:
        parts: Iterable[exp.Expression] = map(name, names[2:])
        made.set("this", reduce(lambda left, right: exp.Dot(this=left, expression=right), parts))
    if outer:
        made.set("db", name(outer[-1]))
    if len(outer) > 1:
        made.set("catalog", name(outer[0]))
    if alias:
        made.set("alias", exp.TableAlias(this=name(alias)))
    return made


def aliased(source: exp.Table | exp.Query, alias: str) -> exp.Table | exp.Subquery:
    """A table or a query under another name. The tree given stays as it is."""
    called = exp.TableAlias(this=name(alias))
    if isinstance(source, exp.Table | exp.Subquery):
        made = source.copy()
        made.set("alias", called)
        return made
    return exp.Subquery(this=source, alias=called)


def column(text: str, of: str = "") -> exp.Column:
    """A column, of a relation or without a prefix."""
    return exp.Column(this=name(text), table=name(of) if of else None)


def called(value: exp.Expression, text: str) -> exp.Alias:
    """A value under a column's name."""
    return exp.Alias(this=value, alias=name(text))


def raw(text: str) -> exp.Var:
    """Text of the dialect itself, such as a type or a long list of literals. It comes from our own
    code, never from a name or a value as it is."""
    return exp.Var(this=text)


def whole(number: int) -> exp.Expression:
    """A whole number without a type of its own."""
    return exp.Literal.number(number)


def cast(value: exp.Expression, native: str) -> exp.Cast:
    """A CAST to a type that is text of the dialect."""
    return exp.Cast(this=value, to=raw(native))


def call(function: str, *values: exp.Expression) -> exp.Anonymous:
    """A call of a function by the name that the dialect has for it."""
    return exp.Anonymous(this=function, expressions=list(values))


def both(*conditions: exp.Expression | None) -> exp.Expression | None:
    """All of the conditions that are given; None where there is none."""
    given = [wrapped(c) for c in conditions if c is not None]
    return (
        reduce(lambda left, right: exp.And(this=left, expression=right), given) if given else None
    )


def all_of(*conditions: exp.Expression | None) -> exp.Expression:
    """All of the conditions, of which at least one is given."""
    made = both(*conditions)
    if made is None:
        raise ValueError("no condition")
    return made


def any_of(*conditions: exp.Expression) -> exp.Expression:
    """At least one of the conditions."""
    return reduce(
        lambda left, right: exp.Or(this=wrapped(left), expression=wrapped(right)), conditions
    )


def wrapped(condition: exp.Expression) -> exp.Expression:
    """A condition that may stand beside AND."""
    return exp.Paren(this=condition) if isinstance(condition, exp.Or) else condition


def no(condition: exp.Expression) -> exp.Not:
    """The opposite."""
    is_joined = isinstance(condition, exp.Connector)
    return exp.Not(this=exp.Paren(this=condition) if is_joined else condition)


def equal(left: exp.Expression, right: exp.Expression) -> exp.EQ:
    """Left = right: a comparison, or what SET does."""
    return exp.EQ(this=left, expression=right)


def either(condition: exp.Expression, then: exp.Expression, other: exp.Expression) -> exp.Case:
    """CASE WHEN condition THEN then ELSE other END."""
    return exp.Case(ifs=[exp.If(this=condition, true=then)], default=other)


def is_null(value: exp.Expression) -> exp.Is:
    """Value IS NULL."""
    return exp.Is(this=value, expression=exp.Null())


def select(
    shown: Sequence[exp.Expression],
    source: exp.Table | exp.Subquery | None,
    *,
    joins: Sequence[exp.Join] = (),
    where: exp.Expression | None = None,
) -> exp.Select:
    """SELECT of expressions."""
    made = exp.Select(expressions=list(shown))
    if source is not None:
        made.set("from_", exp.From(this=source))
    if joins:
        made.set("joins", list(joins))
    if where is not None:
        made.set("where", exp.Where(this=where))
    return made


def join(
    source: exp.Table | exp.Subquery, on: exp.Expression, *, is_left: bool = False
) -> exp.Join:
    """JOIN or LEFT JOIN of a relation."""
    return exp.Join(this=source, on=on, side="LEFT" if is_left else None)


def exists(source: exp.Table | exp.Subquery, where: exp.Expression) -> exp.Exists:
    """Whether the relation has such a row."""
    return exp.Exists(this=select([whole(1)], source, where=where))


def insert(target: exp.Table, names: Sequence[str], rows: exp.Query) -> exp.Insert:
    """INSERT of a query's rows."""
    return exp.Insert(
        this=exp.Schema(this=target.copy(), expressions=[name(n) for n in names]), expression=rows
    )


def delete_all(target: exp.Table) -> exp.Delete:
    """DELETE of every row."""
    return exp.Delete(this=target.copy(), where=exp.Where(this=exp.true()))
