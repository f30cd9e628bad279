"""How Spark reads a folded batch's files, and the statement that applies them in one commit. The
statements themselves are `connectors.sql`'s."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from replicators.connectors.model.modes import OCCURRENCE, ROW_HASH, Mode, stored
from replicators.connectors.sql import merge, trees
from replicators.connectors.sql.relation import relation
from replicators.connectors.sql.steps import Statement
from replicators.connectors.target import FoldedBatch
from replicators.targets.lakehouse import dialect
from replicators.targets.lakehouse.dialect import SPARK, image_ddl, quote, read_type


def batch_ddl(batch: FoldedBatch) -> str:
    """The schema that Spark uses to read the batch's Parquet files. Times of day are read as
    microseconds."""
    if batch.mode is Mode.APPEND:
        return image_ddl(stored(batch.schema, Mode.APPEND))
    if batch.mode is Mode.MULTISET:
        return f"{image_ddl(batch.schema)}, {quote(ROW_HASH)} BINARY, {quote(OCCURRENCE)} BIGINT"
    if batch.append_only or not batch.schema.key:
        return image_ddl(batch.schema)
    fields = [image_ddl(batch.schema), "`_delete` BOOLEAN"]
    if batch.unsent:
        fields.append("`_unsent` BINARY")
    if relation(batch).moved:
        key = ", ".join(
            f"{quote(n)}: {read_type(batch.schema.column(n).type)}" for n in batch.schema.key
        )
        fields.append(f"`_origin` STRUCT<{key}>")
    if batch.mode is Mode.SOFT_DELETE:
        fields += ["`_deleted_at` TIMESTAMP", *(["`_sequence` BIGINT"] * batch.no_inserts)]
    if batch.mode is Mode.HISTORY:
        fields.append("`_valid_from` TIMESTAMP, `_valid_to` TIMESTAMP")
    return ", ".join(fields)


def _bit(batch: FoldedBatch, column: str) -> str:
    """Whether a row lacks a column's value: bit i of `_unsent` for column i."""
    at = [c.name for c in batch.schema.columns].index(column)
    byte = f"conv(hex(substring(`_unsent`, {at // 8 + 1}, 1)), 16, 10)"
    return f"coalesce((CAST({byte} AS INT) & {1 << (at % 8)}) <> 0, FALSE)"


def staged(batch: FoldedBatch, view: str) -> exp.Subquery:
    """The staged relation: a query of the batch's view. Names that only one side has get no prefix:
    Spark resolves each name again, and with prefixes its name table costs twice as much to
    build."""
    made = relation(batch)
    shown: list[exp.Expression] = []

    def show(text: str, name: str) -> None:
        plain = text == quote(name)
        shown.append(trees.column(name) if plain else trees.called(trees.raw(text), name))

    for column in made.own:
        show(dialect.stored(column.type, quote(column.name)), column.name)
    if made.delete:
        show("`_delete`", made.delete)
    for name, flag in made.unsent:
        show(_bit(batch, name), flag)
    if made.moved:
        show("`_origin` IS NOT NULL", made.moved)
    for name, origin in made.origins:
        kind = batch.schema.column(name).type
        show(dialect.stored(kind, f"`_origin`.{quote(name)}"), origin)
    for column in made.more:
        show("`_sequence`" if column.name == made.rank else quote(column.name), column.name)
    return exp.Subquery(this=trees.select(shown, dialect.table(view)))


def statement(target: str, batch: FoldedBatch, view: str) -> str:
    """The statement that applies the batch in one commit. Without rows: at most a TRUNCATE."""
    (step,) = merge.steps(SPARK, dialect.table(target), staged(batch, view), batch)
    if not isinstance(step, Statement):
        raise TypeError("Spark fails inside its statement")
    return SPARK.sql(step.tree)


def missing(target: str, batch: FoldedBatch, view: str) -> str:
    """The keys of batch rows with unsent values whose old row is not in the table, as they are in
    the batch: a time of day in microseconds."""
    rows = staged(batch, view)
    query = merge.missing(SPARK, dialect.table(target), rows, batch)
    inside = query.find(exp.Subquery)
    for at, name in enumerate(batch.schema.key):
        kind = batch.schema.column(name).type
        if inside is None or dialect.stored(kind, "x") == "x":
            continue
        plain = f"_replicator_key_{at}"
        inside.this.append("expressions", trees.called(trees.column(name), plain))
        query.expressions[at].replace(trees.called(trees.column(plain), name))
    return SPARK.sql(query)


reads_rows: Callable[[FoldedBatch], bool] = merge.has_rows
"""Whether the statement reads the batch's view."""
