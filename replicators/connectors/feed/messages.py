"""Turns changes into messages. Users put these onto their wire.

| column | Arrow type | meaning |
|---|---|---|
| `_sequence` | int64 | the change's position in the order of all changes |
| `_op` | int8 | an `Op`; a changed key is a DELETE of the old one, then an INSERT of the new one |
| `_committed_at` | timestamp[us, UTC] | the source's commit time |
| `_transaction` | int64 | the source's transaction number |
| `_part` | int8 | counts the messages of one change, from 0 |
| `key` | binary | NULL for a TRUNCATE, and for a table without a key |
| `value` | binary | NULL: the row is gone (a tombstone) |

Messages are in order. `_sequence` and `_part` together are unique and ascend.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.feed.avro import Binary
from replicators.connectors.feed.last import last_only
from replicators.connectors.feed.options import (
    AVRO,
    DEBEZIUM,
    DIFF,
    KEY_ONLY,
    FeedOptions,
    Origin,
    SchemaIds,
)
from replicators.connectors.feed.rows import Rows, only_changed, rows_of
from replicators.connectors.feed.texts import Texts, resolved_text
from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import TableSchema

MESSAGES = pa.schema(
    [
        pa.field("_sequence", pa.int64(), nullable=False),
        pa.field("_op", pa.int8(), nullable=False),
        pa.field("_committed_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("_transaction", pa.int64(), nullable=False),
        pa.field("_part", pa.int8(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
    ]
)
SLICE_ROWS = 65_536
SLICE_BYTES = 32 << 20
"""Messages that are written at once hold about this much of the rows' memory."""


class Writer(Protocol):
    """Writes keys and values in one format."""

    def keys(self, rows: Rows) -> pa.Array: ...

    def values(self, rows: Rows) -> pa.Array: ...


@dataclass(frozen=True, slots=True)
class Encoder:
    """Encodes the changes of one table and schema version. Thread safe; can be pickled."""

    schema: TableSchema
    options: FeedOptions
    writer: Writer = field(repr=False)

    def encode(self, batch: pa.RecordBatch, resolved_at: float = 0.0) -> pa.RecordBatch:
        """The messages of a batch in the form of `changes.change_schema`. A change that was
        committed before `resolved_at` (`ChangeBatch.resolved_at`) counts as one of then. With
        `last_only`, the batch must have whole transactions."""
        made = list(self.encode_slices(batch, resolved_at))
        if not made:
            return pa.RecordBatch.from_pylist([], MESSAGES)
        return made[0] if len(made) == 1 else pa.concat_batches(made)

    def encode_slices(
        self, batch: pa.RecordBatch, resolved_at: float = 0.0
    ) -> Iterator[pa.RecordBatch]:
        """The same messages, in batches of a moderate size."""
        rows = rows_of(batch, self.schema, self.options, _microseconds(resolved_at))
        if self.options.last_only:
            rows = last_only(rows, self.writer.keys(rows))
        rows = only_changed(rows, self.schema, self.options)
        average = max(1, batch.nbytes // max(1, batch.num_rows))
        step = max(1, min(SLICE_ROWS, SLICE_BYTES // average))
        for begin in range(0, len(rows), step):
            whole = len(rows) <= step
            part = rows if whole else rows.take(np.arange(begin, min(begin + step, len(rows))))
            yield self._messages(part)

    def _messages(self, rows: Rows) -> pa.RecordBatch:
        keys = self.writer.keys(rows).cast(pa.binary())
        is_delete = rows.op == int(Op.DELETE)
        if self.options.shape == KEY_ONLY:
            values = pa.repeat(pa.scalar(b"", pa.binary()), len(rows))
            values = pc.if_else(pa.array(is_delete), pa.scalar(None, pa.binary()), values)
        else:
            values = self.writer.values(rows).cast(pa.binary())
        arrays = [
            rows.sequence,
            pa.array(rows.op.astype(np.int8)),
            rows.committed_at,
            rows.transaction,
            pa.array(2 * rows.part),
            keys,
            values,
        ]
        made = pa.RecordBatch.from_arrays(arrays, schema=MESSAGES)
        if self.options.tombstones and self.options.shape in {DIFF, DEBEZIUM} and rows.key:
            return _with_tombstones(made, is_delete)
        return made


def encoder(
    schema: TableSchema,
    options: FeedOptions,
    origin: Origin | None = None,
    ids: SchemaIds | None = None,
) -> Encoder:
    """The encoder of a table's messages. `ids`: what a registry gave for the schemas of Avro."""
    origin = origin or Origin()
    if options.format == AVRO:
        return Encoder(schema, options, Binary(schema, options, origin, ids))
    return Encoder(schema, options, Texts(schema, options, origin))


def resolved_value(at: float) -> bytes:
    """The value of a message without a key: every change that was committed before `at` (seconds)
    has been sent."""
    return resolved_text(_iso(at))


def not_before(made: pa.RecordBatch, at: float) -> pa.RecordBatch:
    """The messages, none of which says an earlier commit time than this (seconds)."""
    place = MESSAGES.get_field_index("_committed_at")
    times = made.column(place)
    later = np.maximum(times.cast(pa.int64()).to_numpy(), _microseconds(at))
    return made.set_column(place, MESSAGES.field(place), pa.array(later).cast(times.type))


def _microseconds(at: float) -> int:
    """The only rounding of these times: `datetime` rounds some halves the other way, and a message
    could then say an earlier time than the resolved message before it."""
    return round(at * 1_000_000)


def _iso(at: float) -> str:
    moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=_microseconds(at))
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _with_tombstones(made: pa.RecordBatch, is_delete: np.ndarray) -> pa.RecordBatch:
    """The messages, with one without a value after each deletion."""
    if not is_delete.any():
        return made
    place = np.repeat(np.arange(made.num_rows), np.where(is_delete, 2, 1))
    is_second = np.append(False, place[1:] == place[:-1])
    found = made.take(pa.array(place))
    part = found.column("_part").to_numpy() + is_second.astype(np.int8)
    value = pc.if_else(pa.array(is_second), pa.scalar(None, pa.binary()), found.column("value"))
    columns = [*found.columns[:4], pa.array(part.astype(np.int8)), found.column("key"), value]
    return pa.RecordBatch.from_arrays(columns, schema=MESSAGES)
