"""Loads Parquet files and Arrow batches into a table by COPY, in the caller's transaction.

Files are read a part of a row group at a time, so memory does not grow with a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from psycopg import sql

from replicators.connectors import files
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.postgresql.encoding import Encoder, Field, UnfitValue

BATCH_BYTES = 8 << 20
MOST_ROWS = 16_384


def batches_of(paths: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """The files' rows, some megabytes at a time."""
    for path in paths:
        system, inner = files.open_url(path)
        with system.open_input_file(inner) as opened, pq.ParquetFile(opened) as file:
            for group in range(file.num_row_groups):
                facts = file.metadata.row_group(group)
                of_row = max(1, facts.total_byte_size // max(1, facts.num_rows))
                rows = min(MOST_ROWS, max(1, BATCH_BYTES // of_row))
                yield from file.iter_batches(rows, row_groups=[group])


def slices_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches in parts of some megabytes."""
    for batch in batches:
        of_row = max(1, batch.get_total_buffer_size() // max(1, batch.num_rows))
        rows = min(MOST_ROWS, max(1, BATCH_BYTES // of_row))
        for first in range(0, batch.num_rows, rows):
            yield batch.slice(first, rows)


def copy_rows(
    connection: psycopg.Connection[Any],
    into: Sequence[str],
    fields: Sequence[Field],
    batches: Iterable[pa.RecordBatch],
    *,
    is_frozen: bool = False,
) -> int:
    """COPY the batches' columns into a table, and return the number of rows. `is_frozen`: the table
    was made or emptied in this transaction, so its rows need not be written again by VACUUM. A
    driver's error is raised as it is."""
    found = iter(batches)
    first = next(found, None)
    if first is None:
        return 0
    encoder = Encoder(fields, first.schema)
    statement = sql.SQL("COPY {} ({}) FROM STDIN WITH (FORMAT {}{})").format(
        sql.Identifier(*into),
        sql.SQL(", ").join(sql.Identifier(f.name) for f in fields),
        sql.SQL("binary" if encoder.is_binary else "text"),
        sql.SQL(", FREEZE" if is_frozen else ""),
    )
    rows = 0
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        if encoder.head:
            copy.write(encoder.head)
        batch: pa.RecordBatch | None = first
        while batch is not None:
            try:
                copy.write(encoder.encode(batch))
            except UnfitValue as err:
                reason = f"column {err.column}: {err.reason}"
                raise ReplicationError("target:postgresql-value", reason=reason) from err
            rows += batch.num_rows
            batch = next(found, None)
        if encoder.tail:
            copy.write(encoder.tail)
    return rows


def copy_files(
    connection: psycopg.Connection[Any],
    into: Sequence[str],
    fields: Sequence[Field],
    paths: Iterable[str],
    *,
    is_frozen: bool = False,
) -> int:
    """As `copy_rows`, from Parquet files that have the columns by name."""
    return copy_rows(connection, into, fields, batches_of(paths), is_frozen=is_frozen)
