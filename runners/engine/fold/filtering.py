"""Applies a table's row filter to what a fold gives (CORRECTNESS 20). A row that leaves the filter
becomes a delete by its key; a row that enters it becomes an upsert. Only each key's last image
counts, so earlier images do not matter. No I/O, no Spark."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors import files
from replicators.connectors.filters.arrow import matches
from replicators.connectors.filters.language import Expression, FilterError, columns_of
from replicators.connectors.filters.types import bind
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import FoldedBatch
from runners.engine.fold.mirror import Folded, unsent_matrix


@lru_cache(64)
def bound(schema: TableSchema) -> Expression:
    """The table's filter. `source:filter-invalid` where it no longer fits the table's columns."""
    try:
        return bind(schema.filter, schema)
    except FilterError as err:
        raise ReplicationError(
            "source:filter-invalid", table=schema.id, reason=str(err).rstrip(".")
        ) from err


def kept(rows: pa.Table, schema: TableSchema) -> pa.ChunkedArray:
    """Whether the table's filter is true, for each whole image."""
    return matches(bound(schema), rows)


def filtered(folded: Folded, schema: TableSchema) -> Folded:
    """Turns rows that the filter does not keep into deletes by key. Such a delete changes nothing
    where the target has no such row. Without a key these rows are left out. Rows that lack a value
    which the filter needs stay as they are: undecided."""
    if not schema.filter or not folded.rows.num_rows:
        return folded
    rows = folded.rows
    if not schema.key:
        return replace(folded, rows=rows.filter(kept(rows, schema)))
    gone = rows.column("_delete")
    is_open = pc.or_(gone, pa.array(_undecided(rows, schema)))
    leaves = pc.and_(pc.invert(is_open), pc.invert(kept(rows, schema)))
    place = pa.array(np.arange(rows.num_rows), mask=leaves.to_numpy())
    for name in ("_unsent", "_origin"):
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(name), rows.column(name).take(place))
    at = rows.schema.get_field_index("_delete")
    rows = rows.set_column(at, rows.schema.field("_delete"), pc.or_(gone, leaves))
    return replace(folded, rows=rows)


def _undecided(rows: pa.Table, schema: TableSchema) -> np.ndarray[Any, Any]:
    """Which rows are not deletes and lack a value that the filter needs."""
    partial, unsent = unsent_matrix(rows.column("_unsent"), schema)
    names = columns_of(bound(schema))
    needed = [i for i, at in enumerate(partial) if schema.columns[at].name in names]
    lacks = unsent[:, needed].any(axis=1) if needed else np.zeros(rows.num_rows, bool)
    found: np.ndarray[Any, Any] = lacks & ~rows.column("_delete").to_numpy()
    return found


def undecided_keys(batch: FoldedBatch) -> pa.Table | None:
    """The keys of a batch's undecided rows; None where there are none."""
    if not batch.schema.filter or not set(batch.unsent) & columns_of(bound(batch.schema)):
        return None
    parts = []
    for path in batch.paths:
        rows = files.read_table(path)
        mask = pa.array(_undecided(rows, batch.schema))
        parts.append(rows.filter(mask).select(list(batch.schema.key)))
    keys = pa.concat_tables(parts)
    return keys if keys.num_rows else None


def decide(batch: FoldedBatch) -> None:
    """Write a batch's files again, once the undecided rows have their values."""
    for path in batch.paths:
        rows = filtered(Folded(files.read_table(path), False, (), False), batch.schema).rows
        files.write_table(rows, path, compression="zstd", compression_level=1, use_dictionary=False)
