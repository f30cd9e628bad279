"""What a SQL engine has and lacks, and how its text is written. `engines` has one for each engine;
a target gives it the types.

A mode's statements are made with these facts. Where the dialect has MERGE with everything that a
batch needs, the batch is one MERGE. Where it lacks something, the batch is several statements of
one transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from sqlglot import ErrorLevel, exp

from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Enum, String
from replicators.connectors.sql import trees
from replicators.connectors.sql.literals import Literals

Numbers = Callable[[exp.Select, exp.Expression, exp.Expression, str, exp.Query], exp.Select]
"""Gives a query a whole number per row as a column: `(query, low, high, name, most)` becomes a
query with each row once for every number from `low` to `high`, none where `high` is less than `low`
(Spark: never so). `most` is a query of the highest number of rows that one row becomes."""


class Joined(StrEnum):
    """How an UPDATE or DELETE reads rows of another relation. USING: `UPDATE t SET ... FROM s`,
    `DELETE FROM t USING s`, with aliases. NAMED: `UPDATE t SET ... FROM s`, `DELETE FROM t WHERE
    EXISTS`, where the target has no alias, only its name. TABLES: MySQL's `UPDATE t JOIN s`,
    `DELETE t FROM t JOIN s`."""

    USING = "using"
    NAMED = "named"
    TABLES = "tables"


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """A SQL engine as the statements see it.

    `name` is sqlglot's name for it. `native` is the text of a column's type in the target: the one
    place for types, and the plugin's own. Types must compare byte by byte: where the engine's text
    columns ignore case or trailing blanks, `native` names a binary collation.

    `literals`: how values are written. `numbers`: how a row becomes several. `fail`: an expression
    that makes a statement fail with a text (`steps.CODES`), as a value of a type; None where the
    engine has none: then a `Check` comes before.

    `has_merge`: MERGE. `has_by_source`: its WHEN NOT MATCHED BY SOURCE. `joins_nulls`: MERGE takes
    all of that also where keys may be NULL. `has_null_safe`: a comparison in which NULL equals
    NULL; otherwise it is spelled out. `has_any_value`: ANY_VALUE. `has_booleans`: a condition is a
    value. `is_one_commit`: each statement is a commit of its own, so a batch must be one statement,
    and a batch that changes nothing is a commit too. `has_short_names`: a MERGE's INSERT names its
    values without a prefix. `most_keys`: with more keys than this, their ranges are written.
    `orders`: whether the target orders a column's values as Arrow does, byte by byte. Where it does
    not, such as text under a collation, no ranges are written: they would miss keys (CORRECTNESS
    11). `ignores_blanks`: texts that differ in blanks at their end are equal; then their lengths
    are compared too.
    """

    name: str
    native: Callable[[Column], str]
    literals: Literals
    numbers: Numbers
    fail: Callable[[str, str], exp.Expression] | None = None
    has_merge: bool = True
    has_by_source: bool = True
    joins_nulls: bool = True
    has_null_safe: bool = True
    has_any_value: bool = True
    has_booleans: bool = True
    is_one_commit: bool = False
    has_short_names: bool = False
    joined: Joined = Joined.USING
    most_keys: int = field(default=1000)
    orders: Callable[[Column], bool] = lambda _: True
    ignores_blanks: bool = False

    def sql(self, tree: exp.Expression | exp.Query) -> str:
        """The tree as text. A construct that the dialect lacks raises sqlglot's
        UnsupportedError."""
        if self.name == "tsql":
            return self._of_tsql(tree)
        return tree.sql(dialect=self.name, unsupported_level=ErrorLevel.RAISE)

    def _of_tsql(self, tree: exp.Expression | exp.Query) -> str:
        """SQL Server ends a MERGE by a semicolon, and renames a column by a procedure. sqlglot does
        neither."""
        renamed = tree.find(exp.RenameColumn) if isinstance(tree, exp.Alter) else None
        if renamed is not None:
            place = f"{tree.this.sql(dialect=self.name)}.{renamed.this.sql(dialect=self.name)}"
            new = self.literals.text(renamed.args["to"].name)
            return f"EXEC sp_rename {self.literals.text(place)}, {new}, N'COLUMN'"
        text = tree.sql(dialect=self.name, unsupported_level=ErrorLevel.RAISE)
        return f"{text};" if isinstance(tree, exp.Merge) else text

    def type(self, column: Column) -> exp.Expression:
        """A column's type as a part of a tree."""
        return trees.raw(self.native(column))

    def same(self, left: exp.Expression, right: exp.Expression, column: Column) -> exp.Expression:
        """Equality of two values of a column. NULL equals NULL where the column may be NULL. Where
        it may not, a plain `=` is kept: engines join by it with a hash or an index."""
        if not column.nullable:
            return self._equal(left, right, column)
        if self.has_null_safe:
            return exp.NullSafeEQ(this=left, expression=right)
        both_null = trees.all_of(trees.is_null(left.copy()), trees.is_null(right.copy()))
        return trees.any_of(self._equal(left, right, column), both_null)

    def _equal(self, left: exp.Expression, right: exp.Expression, column: Column) -> exp.Expression:
        plain = trees.equal(left, right)
        if not self.ignores_blanks or not isinstance(column.type, String | Enum):
            return plain
        lengths = [trees.call("OCTET_LENGTH", side.copy()) for side in (left, right)]
        return trees.all_of(plain, trees.equal(*lengths))

    def value(self, condition: exp.Expression) -> exp.Expression:
        """A condition as the value of a boolean column."""
        if self.has_booleans:
            return condition
        return trees.either(condition, trees.raw("CAST(1 AS BIT)"), trees.raw("CAST(0 AS BIT)"))

    def test(self, condition: exp.Expression) -> exp.Expression:
        """A boolean column as a condition of its own; other conditions as they are."""
        if self.has_booleans or not isinstance(condition, exp.Column):
            return condition
        return exp.NEQ(this=condition, expression=trees.whole(0))

    def failing(
        self, condition: exp.Expression, message: str, value: exp.Expression, native: str
    ) -> exp.Expression:
        """The value; where the condition holds, the statement fails. Without `fail` it is only the
        value."""
        if self.fail is None:
            return value
        return trees.either(condition, self.fail(message, native), value)
