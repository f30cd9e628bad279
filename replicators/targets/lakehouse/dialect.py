"""The SQL text of a lakehouse target, for Iceberg and Delta alike: pure functions of schemas to
strings. What other SQL targets have too is rendered from the trees of `connectors.sql`.

Names go in through `quote`, values through `literal`. Nothing here calls a server or uses a Spark
session.
"""

# ruff: noqa: S608 - this module is where SQL is made: names go through `quote`, values through
# `literal`

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlglot import exp

from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import Array, LogicalType, Time
from replicators.connectors.spark import quoted
from replicators.connectors.sql import engines, tables, trees
from replicators.targets.lakehouse.types import fit

SPARK = engines.spark(lambda column: fit(column.type).native)
"""Spark with the lakehouse's types."""

COMMENT = "comment"
"""The property that holds a table's comment, and the key of a column's."""


def quote(name: str) -> str:
    """A name as an identifier of Spark SQL."""
    return quoted(name)


def path(names: Iterable[str]) -> str:
    """Name parts as one qualified identifier."""
    return ".".join(quote(n) for n in names)


def text(value: str) -> str:
    """A text literal."""
    return SPARK.literals.text(value)


def table(path_text: str) -> exp.Table:
    """A table by its identifier, for a tree. It may be a path, a branch or a view."""
    return exp.Table(this=trees.raw(path_text))


def literal(kind: LogicalType, value: Any) -> str:
    """A value as a literal of the target's type. `value` may be an Arrow scalar. Raises ValueError
    for a type that has no literal."""
    return SPARK.literals.literal(Column("", kind, ""), value, fit(kind).native)


def stored(kind: LogicalType, value: str) -> str:
    """An expression that converts a batch's value to the target's type. Only times of day
    differ."""
    match kind:
        case Time():
            return f"date_format(timestamp_micros({value}), 'HH:mm:ss.SSSSSS')"
        case Array(of=Time()):
            return f"transform({value}, e -> {stored(kind.of, 'e')})"
    return value


def read_type(kind: LogicalType) -> str:
    """The type that Spark uses to read a value of a batch."""
    match kind:
        case Time():
            return "BIGINT"
        case Array(of=of):
            return f"ARRAY<{read_type(of)}>"
    return fit(kind).native


def image_ddl(schema: TableSchema) -> str:
    """The schema that Spark uses to read Parquet files of whole rows."""
    return ", ".join(f"{quote(c.name)} {read_type(c.type)}" for c in schema.supported)


def image_columns(schema: TableSchema, types: Mapping[str, str]) -> list[str]:
    """Expressions that read whole rows in the target's types. `types` are the rows' present Spark
    types: a time of day that is text already is not converted."""
    return [
        quote(c.name)
        if types.get(c.name) == "string"
        else f"{stored(c.type, quote(c.name))} AS {quote(c.name)}"
        for c in schema.supported
    ]


def properties(values: Mapping[str, str]) -> str:
    """The inside of TBLPROPERTIES."""
    return ", ".join(f"{text(k)} = {text(v)}" for k, v in sorted(values.items()))


def create(
    target: str,
    schema: TableSchema,
    *,
    provider: str,
    location: str,
    values: Mapping[str, str],
    partition: str = "",
) -> str:
    """CREATE TABLE, with comments. `partition`: its clause. Every column is nullable, so that
    schema changes never have to relax one."""
    place = f" LOCATION {text(location)}" if location else ""
    tree = tables.create(SPARK, table(target), schema.supported)
    for defined, column in zip(tree.this.expressions, schema.supported, strict=True):
        if column.comment:
            said = exp.CommentColumnConstraint(this=trees.raw(text(column.comment)))
            defined.set("constraints", [exp.ColumnConstraint(kind=said)])
    about = f" COMMENT {text(schema.comment)}" if schema.comment else ""
    made = SPARK.sql(tree)
    return f"{made} USING {provider}{partition}{place}{about} TBLPROPERTIES ({properties(values)})"


def comment_column(target: str, column: str, said: str) -> str:
    """ALTER COLUMN with a comment."""
    return f"ALTER TABLE {target} ALTER COLUMN {quote(column)} COMMENT {text(said)}"


def comment_table(target: str, said: str) -> str:
    """SET TBLPROPERTIES with the table's comment."""
    return set_properties(target, {COMMENT: said})


def touch(target: str) -> str:
    """An INSERT of no rows: a commit that only carries a token."""
    return SPARK.sql(tables.touch(table(target)))


def create_tag(target: str, name: str, version: int, minutes: int) -> str:
    """A tag that keeps an Iceberg snapshot for at most `minutes`. The limit matters if nobody is
    left to drop the tag."""
    return (
        f"ALTER TABLE {target} CREATE TAG IF NOT EXISTS {quote(name)} AS OF VERSION {version} "
        f"RETAIN {minutes} MINUTES"
    )


def drop_tag(target: str, name: str) -> str:
    """Drop the tag, so that the snapshot may expire."""
    return f"ALTER TABLE {target} DROP TAG IF EXISTS {quote(name)}"


def add_column(target: str, column: Column) -> str:
    """ADD COLUMN; existing rows get NULL."""
    return SPARK.sql(tables.add_column(SPARK, table(target), column))


def drop_column(target: str, name: str) -> str:
    """DROP COLUMN."""
    return SPARK.sql(tables.drop_column(table(target), name))


def rename_column(target: str, name: str, new: str) -> str:
    """RENAME COLUMN; the rows keep their values."""
    return SPARK.sql(tables.rename_column(table(target), name, new))


def fill_column(target: str, column: Column, value: Any) -> str:
    """UPDATE of one column of every row."""
    return SPARK.sql(tables.fill_column(SPARK, table(target), column, value))


def widen_column(target: str, column: Column) -> str:
    """ALTER COLUMN to a wider type."""
    return SPARK.sql(tables.widen_column(SPARK, table(target), column))


def set_properties(target: str, values: Mapping[str, str]) -> str:
    """SET TBLPROPERTIES."""
    return f"ALTER TABLE {target} SET TBLPROPERTIES ({properties(values)})"


def unset_property(target: str, name: str) -> str:
    """UNSET TBLPROPERTIES."""
    return f"ALTER TABLE {target} UNSET TBLPROPERTIES IF EXISTS ({text(name)})"


def create_view(target: str, query: str, values: Mapping[str, str], *, replaces: bool) -> str:
    """CREATE VIEW. It fails where something has its name, unless it `replaces` the view there."""
    how = "CREATE OR REPLACE VIEW" if replaces else "CREATE VIEW"
    return f"{how} {target} TBLPROPERTIES ({properties(values)}) AS {query}"


def replace_table(target: str, staged: str, values: Mapping[str, str], partition: str = "") -> str:
    """Replace the rows and columns of `target` with those of a staged Delta table, in one
    commit."""
    return (
        f"CREATE OR REPLACE TABLE {target}\nUSING delta{partition}\n"
        f"TBLPROPERTIES ({properties(values)})\nAS SELECT * FROM {staged}"
    )


def snapshots(table: str) -> str:
    """All snapshots of an Iceberg table; `table` is its metadata table."""
    return f"SELECT snapshot_id, parent_id, summary FROM {table}"


def delete_all(target: str) -> str:
    """Delete all rows of a branch, without a token."""
    return SPARK.sql(trees.delete_all(table(target)))
