"""The schema of change files: the columns beside the table's own, and what their values mean.

| column | Arrow type | meaning |
|---|---|---|
| `_sequence` | int64 | segment number << 32 | row number in the segment |
| `_op` | int8 | an `Op` |
| `_committed_at` | timestamp[us, UTC] | the source's commit time |
| `_transaction` | int64 | the source's transaction number |
| `_position` | int64 | the transaction's commit position, comparable with a snapshot's point |
| `_unchanged` | binary, NULL where all was sent | bit i (byte i >> 3, bit i & 7) set: column i was not sent |
| the table's columns | `TableSchema.arrow_schema()` | the after image; for a delete the key, the rest NULL |
| `_before` | struct, NULL where none was sent | the old key, or the whole old row where `full_before` |

A file in which some rows hold unsupported values has two more columns, `FAULT_FIELDS`:

| column | Arrow type | meaning |
|---|---|---|
| `_faulty` | binary, NULL where all is well | bit i set: the value of column i could not be carried; it is NULL in the row |
| `_fault_reason` | string | column and reason, for people |
"""  # noqa: E501

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import pyarrow as pa

from replicators.connectors.model.schema import TableSchema

SEQUENCE_SHIFT = 32


class Op(IntEnum):
    """What happened to a row, or (truncate) to the whole table. READ: a snapshot found the row;
    only a `ChangeSink` gets this."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2
    TRUNCATE = 3
    READ = 4


META_FIELDS = (
    pa.field("_sequence", pa.int64(), nullable=False),
    pa.field("_op", pa.int8(), nullable=False),
    pa.field("_committed_at", pa.timestamp("us", tz="UTC"), nullable=False),
    pa.field("_transaction", pa.int64(), nullable=False),
    pa.field("_position", pa.int64(), nullable=False),
    pa.field("_unchanged", pa.binary(), nullable=True),
)
FAULT_FIELDS = (
    pa.field("_faulty", pa.binary(), nullable=True),
    pa.field("_fault_reason", pa.string(), nullable=True),
)
BATCH_COLUMNS = ("_delete", "_origin", "_unsent", "_found", "_bucket", "_row")
"""The columns that a folded batch has beside the table's own, in its file or while it is
written."""
COUNTED = (Op.INSERT, Op.UPDATE, Op.DELETE, Op.TRUNCATE)
"""The operations of the log, in the order of `OpCounts`."""
RESERVED = frozenset(
    {f.name for f in (*META_FIELDS, *FAULT_FIELDS)} | {"_before"} | set(BATCH_COLUMNS)
)


def is_reserved(column: str) -> bool:
    """Whether a table must not have a column of this name. Spark does not tell upper from lower
    case."""
    return column.casefold() in RESERVED


def before_fields(schema: TableSchema) -> list[pa.Field]:
    """The fields of `_before`: the whole row with `full_before`, otherwise the key's columns."""
    image = schema.arrow_schema()
    if schema.full_before:
        return list(image)
    return [image.field(name) for name in schema.key]


def change_schema(schema: TableSchema) -> pa.Schema:
    """The Arrow schema of a table's change file. A table without a key has no `_before`, unless the
    log has its whole old rows."""
    before = before_fields(schema)
    tail = [pa.field("_before", pa.struct(before), nullable=True)] if before else []
    return pa.schema([*META_FIELDS, *schema.arrow_schema(), *tail])


def faulty_schema(schema: TableSchema) -> pa.Schema:
    """`change_schema` with the two columns that mark unsupported values."""
    return pa.schema([*change_schema(schema), *FAULT_FIELDS])


def first_sequence(segment: int) -> int:
    """The smallest sequence of a segment's rows."""
    return segment << SEQUENCE_SHIFT


def last_sequence(segment: int) -> int:
    """The largest sequence that a row of a segment can have; it is the merge bound after that
    segment."""
    return (segment << SEQUENCE_SHIFT) | 0xFFFFFFFF


def segment_of(sequence: int) -> int:
    """The number of the segment that contains a sequence."""
    return sequence >> SEQUENCE_SHIFT


@dataclass(frozen=True, slots=True)
class OpCounts:
    """Rows by operation."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    truncates: int = 0

    @property
    def rows(self) -> int:
        return self.inserts + self.updates + self.deletes + self.truncates

    def __add__(self, other: OpCounts) -> OpCounts:
        return OpCounts(
            self.inserts + other.inserts,
            self.updates + other.updates,
            self.deletes + other.deletes,
            self.truncates + other.truncates,
        )
