"""Statements that make and change tables: names and types in, trees out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from replicators.connectors.model.schema import Column
from replicators.connectors.sql import trees
from replicators.connectors.sql.dialect import SqlDialect
from replicators.connectors.sql.evolve import Add, Drop, Rename, Widen


def create(
    dialect: SqlDialect,
    target: exp.Table,
    columns: Sequence[Column],
    *,
    properties: Sequence[exp.Expression] = (),
    if_absent: bool = False,
) -> exp.Create:
    """CREATE TABLE. Every column is nullable, so that schema changes never have to relax one.
    `properties`: the dialect's own, as sqlglot has them."""
    defined = [_defined(dialect, c) for c in columns]
    made = exp.Create(
        kind="TABLE", this=exp.Schema(this=target.copy(), expressions=defined), exists=if_absent
    )
    if properties:
        made.set("properties", exp.Properties(expressions=list(properties)))
    return made


def _defined(dialect: SqlDialect, column: Column) -> exp.ColumnDef:
    return exp.ColumnDef(this=trees.name(column.name), kind=dialect.type(column))


def _altered(target: exp.Table, action: exp.Expression) -> exp.Alter:
    return exp.Alter(this=target.copy(), kind="TABLE", actions=[action])


def add_column(dialect: SqlDialect, target: exp.Table, column: Column) -> exp.Alter:
    """ADD COLUMN; existing rows get NULL."""
    return _altered(target, _defined(dialect, column))


def drop_column(target: exp.Table, name: str) -> exp.Alter:
    """DROP COLUMN."""
    return _altered(target, _dropped(trees.column(name), "COLUMN"))


def rename_column(target: exp.Table, name: str, new: str) -> exp.Expression:
    """RENAME COLUMN; the rows keep their values."""
    return _altered(target, exp.RenameColumn(this=trees.name(name), to=trees.name(new)))


def widen_column(dialect: SqlDialect, target: exp.Table, column: Column) -> exp.Alter:
    """ALTER COLUMN to a wider type."""
    return _altered(
        target, exp.AlterColumn(this=trees.name(column.name), dtype=dialect.type(column))
    )


def fill_column(dialect: SqlDialect, target: exp.Table, column: Column, value: Any) -> exp.Update:
    """UPDATE of one column of every row. ValueError for a type that has no literal."""
    written = dialect.literals.tree(column, value, dialect.native(column))
    return exp.Update(
        this=target.copy(),
        expressions=[trees.equal(trees.column(column.name), written)],
        where=exp.Where(this=exp.true()),
    )


def altered(
    dialect: SqlDialect,
    target: exp.Table,
    one: Drop | Add | Rename | Widen,
) -> exp.Expression:
    """The statement of an alteration."""
    match one:
        case Drop(name=name):
            return drop_column(target, name)
        case Add(column=column):
            return add_column(dialect, target, column)
        case Rename(name=name, new=new):
            return rename_column(target, name, new)
        case Widen(column=column):
            return widen_column(dialect, target, column)


def rename(target: exp.Table, new: exp.Table) -> exp.Alter:
    """RENAME TO another name in the same namespace."""
    return _altered(target, exp.AlterRename(this=new.copy()))


def drop(target: exp.Table) -> exp.Drop:
    """DROP TABLE IF EXISTS."""
    made = _dropped(target.copy(), "TABLE")
    made.set("exists", True)
    return made


def _dropped(what: exp.Expression, kind: str) -> exp.Drop:
    return exp.Drop(tables=[what], kind=kind)


def truncate(target: exp.Table) -> exp.TruncateTable:
    """TRUNCATE TABLE. In MySQL, Snowflake and Redshift it ends the transaction: a merge uses
    DELETE."""
    return exp.TruncateTable(expressions=[target.copy()])


def touch(target: exp.Table) -> exp.Insert:
    """INSERT of no rows: a commit that changes nothing."""
    return exp.Insert(this=target.copy(), expression=_none(target))


def empty(target: exp.Table) -> exp.Insert:
    """INSERT OVERWRITE of no rows: a commit that empties the table. A plain DELETE of Spark would
    carry no token."""
    return exp.Insert(this=target.copy(), expression=_none(target), overwrite=True)


def _none(target: exp.Table) -> exp.Select:
    return trees.select([exp.Star()], target.copy(), where=exp.false())
