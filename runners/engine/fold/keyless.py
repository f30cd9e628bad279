"""Folds the changes of a table without a key whose log carries whole before images: how often each
row came or went. A pure function from Arrow to Arrow (CORRECTNESS 6, 9, 12). No I/O, no Spark.

An insert adds its row, a delete takes away its before image, an update does both. One statement
applies the result per distinct row to the copy. Changes before a TRUNCATE do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.model.changes import Op
from replicators.connectors.model.modes import OCCURRENCE, ROW_HASH
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from runners.engine.fold.filtering import kept
from runners.engine.fold.row_hash import row_hashes

_INSERT, _UPDATE, _DELETE = int(Op.INSERT), int(Op.UPDATE), int(Op.DELETE)


@dataclass(frozen=True, slots=True)
class Counted:
    """`rows`: the table's columns, `_row_hash`, and `_occurrence`: how many of these rows are added
    (or, below 0, removed). Each row occurs once, none with 0."""

    rows: pa.Table
    truncate: bool


def fold_counts(changes: pa.Table, schema: TableSchema) -> Counted:
    """Fold `changes` (a change file's columns, ascending `_sequence`, one schema version).
    `source:before-missing` where an update or a delete came without its before image."""
    op = changes.column("_op").to_numpy()
    barriers = np.flatnonzero(op == int(Op.TRUNCATE))
    if len(barriers):
        changes = changes.slice(int(barriers[-1]) + 1)
        op = changes.column("_op").to_numpy()
    came, gone = np.flatnonzero(op != _DELETE), np.flatnonzero(op != _INSERT)
    images = _images(changes, schema, came, gone)
    sign = np.concatenate([np.ones(len(came), np.int64), np.full(len(gone), -1, np.int64)])
    if schema.filter:
        mask = kept(images, schema)
        images, sign = images.filter(mask), sign[mask.to_numpy()]
    hashes = row_hashes(images, images.column_names)
    rows = _net(images.append_column(ROW_HASH, hashes), sign)
    return Counted(rows, bool(len(barriers)))


def _images(
    changes: pa.Table,
    schema: TableSchema,
    came: np.ndarray[Any, Any],
    gone: np.ndarray[Any, Any],
) -> pa.Table:
    """The after images of rows `came`, then the before images of rows `gone`."""
    table_schema = schema.arrow_schema()
    after = changes.select(table_schema.names).take(pa.array(came)).cast(table_schema)
    if not len(gone):
        return after
    is_sent = "_before" in changes.column_names
    before = changes.column("_before").combine_chunks().take(pa.array(gone)) if is_sent else None
    if before is None or before.null_count:
        raise ReplicationError("source:before-missing", table=schema.id)
    return pa.concat_tables(
        [
            after,
            pa.table([before.field(n) for n in table_schema.names], names=table_schema.names).cast(
                table_schema
            ),
        ]
    )


def _net(rows: pa.Table, sign: np.ndarray[Any, Any]) -> pa.Table:
    """Each distinct row once, with the sum of its signs where that is not 0."""
    encoded = pc.dictionary_encode(rows.column(ROW_HASH).combine_chunks())
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes = encoded.indices.to_numpy()
    count = len(encoded.dictionary)
    net = np.zeros(count, np.int64)
    np.add.at(net, codes, sign)
    first = np.zeros(count, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    kept = np.flatnonzero(net)
    return rows.take(pa.array(first[kept])).append_column(OCCURRENCE, pa.array(net[kept]))


def with_hashes(rows: pa.Table, columns: list[str], schema: pa.Schema) -> pa.Table:
    """Rows of a snapshot, with the digest of their `columns` where `schema`, in which they are
    staged, has a column for it."""
    if ROW_HASH not in schema.names or ROW_HASH in rows.column_names:
        return rows
    rows = rows.append_column(ROW_HASH, row_hashes(rows, columns))
    return rows.append_column(OCCURRENCE, pa.nulls(rows.num_rows, pa.int64()))
