"""Mirror: the copy equals the source. Tables without a key take inserts only. Text only."""

# ruff: noqa: S608 - SQL is made here: names go through `quote`, values through `literal`

from __future__ import annotations

from collections.abc import Sequence

from replicators.connectors.model.schema import Column
from replicators.connectors.target import FoldedBatch
from replicators.targets.lakehouse import dialect
from replicators.targets.lakehouse.dialect import image_ddl, quote, stored
from replicators.targets.lakehouse.statements.keys import (
    failing,
    key_match,
    key_ranges,
    unsent_bit,
    unsent_ddl,
    unsent_flag,
)
from replicators.targets.lakehouse.types import fit


def batch_ddl(batch: FoldedBatch) -> str:
    """The schema that Spark uses to read the batch's Parquet files. Times of day are read as
    microseconds."""
    image = image_ddl(batch.schema)
    return image if batch.append_only else ", ".join([image, *unsent_ddl(batch)])


def _source_column(batch: FoldedBatch, column: Column, lost: str) -> str:
    name, plain = quote(column.name), stored(column.type, f"b.{quote(column.name)}")
    if column.name in batch.unsent and batch.has_origins:
        taken = f"b.`_origin` IS NOT NULL AND {unsent_bit(batch, column.name)}"
        found = failing(lost, f"o.{name}", fit(column.type).native)
        return f"CASE WHEN {taken} THEN {found} ELSE {plain} END AS {name}"
    return plain if plain == f"b.{name}" else f"{plain} AS {name}"


def merge_source(
    target: str,
    batch: FoldedBatch,
    view: str,
    *,
    more: Sequence[str] = (),
    lost: str = "o.`_found` IS NULL",
) -> str:
    """A query of the batch's rows in the target's types, with a flag for each unsent column and
    with `more` of the batch's columns. Unsent values that belong to a row under another key are
    read from the target. The statement fails where `lost` is true."""
    shown = [_source_column(batch, c, lost) for c in batch.schema.supported]
    shown += [f"b.{quote(n)}" for n in ("_delete", *more)]
    own = " AND b.`_origin` IS NULL" if batch.has_origins else ""
    shown += [
        f"({unsent_bit(batch, n)}{own}) AS {quote(unsent_flag(batch, n))}" for n in batch.unsent
    ]
    if not (batch.unsent and batch.has_origins):
        return f"SELECT {', '.join(shown)} FROM {view} AS b"
    key = batch.schema.key
    inner = [f"{quote(n)}" for n in dict.fromkeys((*key, *batch.unsent))]
    ranges = key_ranges(batch, "r")
    where = f" WHERE {ranges}" if ranges else ""
    origin = " AND ".join(
        f"{stored(batch.schema.column(n).type, f'b.`_origin`.{quote(n)}')} <=> o.{quote(n)}"
        for n in key
    )
    return (
        f"SELECT {', '.join(shown)} FROM {view} AS b LEFT JOIN "
        f"(SELECT {', '.join(inner)}, TRUE AS `_found` FROM {target} AS r{where}) AS o "
        f"ON b.`_origin` IS NOT NULL AND {origin}"
    )


def merge(target: str, batch: FoldedBatch, view: str) -> str:
    """MERGE of a folded batch. A new row with unsent columns makes the statement fail with
    `ROW_MISSING`. Names that only one side has get no prefix: Spark resolves each name again, and
    with prefixes its name table costs twice as much to build."""
    schema = batch.schema
    columns = list(schema.supported)
    flags = {n: f"s.{quote(unsent_flag(batch, n))}" for n in batch.unsent}

    def updated(column: Column) -> str:
        name = quote(column.name)
        if column.name in flags:
            return f"{name} = CASE WHEN {flags[column.name]} THEN t.{name} ELSE s.{name} END"
        return f"{name} = s.{name}"

    def inserted(column: Column) -> str:
        name = quote(column.name)
        return (
            failing(flags[column.name], name, fit(column.type).native)
            if column.name in flags
            else name
        )

    ranges = key_ranges(batch, "t")
    on = key_match(schema, "t", "s") + (f"\n  AND {ranges}" if ranges else "")
    return (
        f"MERGE INTO {target} AS t\nUSING ({merge_source(target, batch, view)}) AS s\nON {on}\n"
        f"WHEN MATCHED AND s.`_delete` THEN DELETE\n"
        f"WHEN MATCHED THEN UPDATE SET {', '.join(updated(c) for c in columns)}\n"
        "WHEN NOT MATCHED AND NOT s.`_delete` THEN INSERT "
        f"({', '.join(quote(c.name) for c in columns)}) "
        f"VALUES ({', '.join(inserted(c) for c in columns)})"
    )


def _image(batch: FoldedBatch) -> list[str]:
    shown = []
    for column in batch.schema.supported:
        value = stored(column.type, f"b.{quote(column.name)}")
        if column.name in batch.unsent:
            value = failing(unsent_bit(batch, column.name), value, fit(column.type).native)
        shown.append(f"{value} AS {quote(column.name)}")
    return shown


def append(target: str, batch: FoldedBatch, view: str) -> str:
    """INSERT of every row of a batch."""
    return (
        f"INSERT INTO {target}{_names(batch)}\nSELECT {', '.join(_image(batch))} FROM {view} AS b"
    )


def replace(target: str, batch: FoldedBatch, view: str) -> str:
    """INSERT OVERWRITE: the batch's remaining rows become the whole table."""
    where = "" if batch.append_only else " WHERE NOT b.`_delete`"
    return (
        f"INSERT OVERWRITE {target}{_names(batch)}\nSELECT {', '.join(_image(batch))} FROM "
        f"{view} AS b{where}"
    )


def _names(batch: FoldedBatch) -> str:
    return f" ({', '.join(quote(c.name) for c in batch.schema.supported)})"


def statement(target: str, batch: FoldedBatch, view: str) -> str:
    """The statement that applies the batch's rows in one commit."""
    if batch.truncate:
        return replace(target, batch, view)
    return append(target, batch, view) if batch.append_only else merge(target, batch, view)


def without_rows(target: str, batch: FoldedBatch) -> str:
    """The statement for a batch without rows: at most a TRUNCATE."""
    return dialect.truncate(target) if batch.truncate else dialect.touch(target)
