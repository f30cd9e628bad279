"""Loads Arrow batches into a table by COPY, some megabytes at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc

from replicators.targets.postgresql.encoding import Encoder, Field
from replicators.targets.postgresql.types import quoted as name

BATCH_BYTES = 8 << 20
MOST_ROWS = 16_384


def slices_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches in parts of some megabytes."""
    for batch in batches:
        of_row = max(1, batch.get_total_buffer_size() // max(1, batch.num_rows))
        rows = min(MOST_ROWS, max(1, BATCH_BYTES // of_row))
        for first in range(0, batch.num_rows, rows):
            yield batch.slice(first, rows)


def copy(
    connection: psycopg.Connection[Any],
    quoted: str,
    columns: Iterable[str | Field],
    batches: Iterable[pa.RecordBatch],
    *,
    is_frozen: bool = False,
    add_labels: Callable[[Field, Sequence[str]], None] = lambda *_: None,
) -> int:
    """Add the rows to the table whose name is `quoted`, and return their number. It runs inside the
    caller's transaction. Columns whose type is given may go in binary; plain names go as text.
    `is_frozen`: the table was made or emptied in this transaction, so VACUUM need not write its
    rows again. `add_labels` is called before rows with further labels of an enum are sent."""
    fields = [Field(c, "") if isinstance(c, str) else c for c in columns]
    found = slices_of(batches)
    first = next(found, None)
    if first is None:
        return 0
    encoder, rows = Encoder(fields, first.schema), 0
    known: dict[str, set[str]] = {}
    for field in fields:
        known.setdefault(field.native, set()).update(field.labels or ())
    form = "binary" if encoder.is_binary else "text"
    options = f"(FORMAT {form}{', FREEZE' if is_frozen else ''})"
    names = ", ".join(name(f.name) for f in fields)
    text = f"COPY {quoted} ({names}) FROM STDIN WITH {options}"
    with connection.cursor() as cursor, cursor.copy(text.encode()) as out:
        out.write(encoder.head)
        for batch in chain([first], found):
            for field in [f for f in fields if f.labels is not None]:
                further = _further(field, batch, known.setdefault(field.native, set()))
                if further:
                    add_labels(field, further)
            out.write(encoder.encode(batch))
            rows += batch.num_rows
        out.write(encoder.tail)
    return rows


def _further(field: Field, batch: pa.RecordBatch, known: set[str]) -> list[str]:
    """The labels in a column that are not known; from now on they are."""
    values = batch.column(field.name)
    if pa.types.is_list(values.type):
        values = values.flatten()
    found = {v for v in pc.unique(values).to_pylist() if v is not None} - known
    known |= found
    return sorted(found)
