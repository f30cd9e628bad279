"""Append: every change becomes its own row. Text only."""

# ruff: noqa: S608 - SQL is made here: names go through `quote`, values through `literal`

from __future__ import annotations

from replicators.connectors.model.modes import Mode, stored
from replicators.connectors.target import FoldedBatch
from replicators.targets.lakehouse import dialect
from replicators.targets.lakehouse.dialect import image_columns, image_ddl, quote


def batch_ddl(batch: FoldedBatch) -> str:
    """The schema that Spark uses to read the batch's files: the same as the copy's."""
    return image_ddl(stored(batch.schema, Mode.APPEND))


def statement(target: str, batch: FoldedBatch, view: str) -> str:
    """INSERT of every row of a batch."""
    schema = stored(batch.schema, Mode.APPEND)
    names = ", ".join(quote(c.name) for c in schema.supported)
    values = ", ".join(image_columns(schema, {}))
    return f"INSERT INTO {target} ({names})\nSELECT {values} FROM {view}"


def without_rows(target: str, batch: FoldedBatch) -> str:
    """A commit without rows: only the token moves."""
    return dialect.touch(target)
