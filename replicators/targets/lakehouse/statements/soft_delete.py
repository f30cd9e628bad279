"""Soft delete: a deleted row stays with a flag and its last values. Text only."""

# ruff: noqa: S608 - SQL is made here: names go through `quote`, values through `literal`

from __future__ import annotations

from replicators.connectors.model.modes import Mode, extra_columns
from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Timestamp
from replicators.connectors.target import FoldedBatch
from replicators.targets.lakehouse import dialect
from replicators.targets.lakehouse.dialect import image_ddl, literal, quote
from replicators.targets.lakehouse.statements.keys import (
    failing,
    key_match,
    key_ranges,
    unsent_ddl,
    unsent_flag,
)
from replicators.targets.lakehouse.statements.mirror import merge_source
from replicators.targets.lakehouse.types import fit

DELETED, DELETED_AT = (quote(c.name) for c in extra_columns(Mode.SOFT_DELETE))


def batch_ddl(batch: FoldedBatch) -> str:
    """The schema that Spark uses to read the batch's files. `_deleted_at` is set on rows with
    `_delete`."""
    return ", ".join([image_ddl(batch.schema), *unsent_ddl(batch), f"{DELETED_AT} TIMESTAMP"])


def statement(target: str, batch: FoldedBatch, view: str) -> str:
    """MERGE of a folded batch: upserts rows and flags deleted ones. Unsent columns keep the
    target's values. If the target lacks the unsent values of a living row, the statement fails. A
    deleted row without them is flagged with its known values. A TRUNCATE flags every other living
    row in the same commit."""
    columns = batch.schema.supported
    flags = {n: f"s.{quote(unsent_flag(batch, n))}" for n in batch.unsent}
    lost = "o.`_found` IS NULL AND NOT b.`_delete`"
    source = merge_source(target, batch, view, more=("_deleted_at",), lost=lost)
    ranges = "" if batch.truncate else key_ranges(batch, "t")
    on = key_match(batch.schema, "t", "s") + (f"\n  AND {ranges}" if ranges else "")
    updated = ", ".join(_updated(c, flags) for c in columns)
    names = ", ".join(quote(c.name) for c in columns)
    inserted = ", ".join(_inserted(c, flags) for c in columns)
    return (
        f"MERGE INTO {target} AS t\nUSING ({source}) AS s\nON {on}\n"
        f"WHEN MATCHED THEN UPDATE SET {updated}, {DELETED} = s.`_delete`, {DELETED_AT} = "
        f"s.{DELETED_AT}\n"
        f"WHEN NOT MATCHED THEN INSERT ({names}, {DELETED}, {DELETED_AT}) "
        f"VALUES ({inserted}, s.`_delete`, s.{DELETED_AT})"
    ) + (rest_flagged(batch) if batch.truncate else "")


def _updated(column: Column, flags: dict[str, str]) -> str:
    name = quote(column.name)
    if column.name in flags:
        return f"{name} = CASE WHEN {flags[column.name]} THEN t.{name} ELSE s.{name} END"
    return f"{name} = s.{name}"


def _inserted(column: Column, flags: dict[str, str]) -> str:
    name = quote(column.name)
    if column.name not in flags:
        return name
    return failing(f"{flags[column.name]} AND NOT s.`_delete`", name, fit(column.type).native)


def _flag_set(batch: FoldedBatch) -> str:
    at = literal(Timestamp(6, zone=True), batch.truncated_at)
    return f"{DELETED} = TRUE, {DELETED_AT} = {at}"


def rest_flagged(batch: FoldedBatch) -> str:
    """The end of a MERGE for a batch with a TRUNCATE: it flags the living rows that the batch does
    not name."""
    return f"\nWHEN NOT MATCHED BY SOURCE AND NOT t.{DELETED} THEN UPDATE SET {_flag_set(batch)}"


def without_rows(target: str, batch: FoldedBatch) -> str:
    """For a TRUNCATE, flag every living row. Otherwise only the token moves."""
    if not batch.truncate:
        return dialect.touch(target)
    none = f"SELECT {', '.join(quote(k) for k in batch.schema.key)} FROM {target} WHERE FALSE"
    on = key_match(batch.schema, "t", "s")
    return f"MERGE INTO {target} AS t\nUSING ({none}) AS s\nON {on}{rest_flagged(batch)}"
