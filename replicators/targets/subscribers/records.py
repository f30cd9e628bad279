"""Writes parts: Arrow files of one schema, compressed. A task writes a lane."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors import files
from replicators.connectors.model.changes import change_schema
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.target import Lane
from replicators.targets.subscribers.errors import translated
from replicators.targets.subscribers.layout import Name

PART_BYTES = 32 << 20
"""About the size of a part before compression; this much is held in memory."""
BATCH_ROWS = 16_384
_TABLE = b"table"


@dataclass(frozen=True, slots=True)
class LaneWork:
    """A lane to write into `folder`. A commit time before `floor` (microseconds) counts as `floor`:
    readers were told that nothing older comes."""

    lane: Lane
    schema: TableSchema
    folder: str
    floor: int
    attempt: str
    is_copy: bool


def write_lane(work: LaneWork) -> int:
    """Write the lane's parts, and return the number of rows. They are durable then."""
    with translated(work.schema.id):
        rows = 0
        for number, batches in enumerate(_portions(_floored(work))):
            at = work.lane.number if work.is_copy else None
            rows += write_part(
                work.folder, work.schema, batches, work.lane.number * 1000 + number,
                work.attempt, first=at,
            )  # fmt: skip
        return rows


def _floored(work: LaneWork) -> Iterator[pa.RecordBatch]:
    wanted = change_schema(work.schema)
    place = wanted.get_field_index("_committed_at")
    for batch in work.lane.read():
        if not batch.num_rows:
            continue
        times = batch.column("_committed_at")
        late = pc.max_element_wise(times.cast(pa.int64()), work.floor)
        arrays = [batch.column(f.name) for f in wanted]
        arrays[place] = late.cast(times.type)
        yield pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _portions(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Neighbouring batches, about a part's size together."""
    some: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        some.append(batch)
        size += batch.nbytes
        if size >= PART_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def write_part(
    folder: str,
    schema: TableSchema,
    batches: Iterable[pa.RecordBatch],
    number: int,
    attempt: str,
    first: int | None = None,
) -> int:
    """Write one part, and return its number of rows; nothing for no rows. It is seen whole or not
    at all. `first`: its number in a copy; otherwise the first sequence of its rows."""
    table = pa.Table.from_batches(batches, change_schema(schema))
    if not table.num_rows:
        return 0
    described = json.dumps(schema.bare.to_json()).encode()
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    made = table.schema.with_metadata({_TABLE: described})
    with pa.ipc.new_file(sink, made, options=options) as writer:
        writer.write_table(table.combine_chunks(), max_chunksize=BATCH_ROWS)
    sequences = table.column("_sequence")
    times = pc.min_max(table.column("_committed_at").cast(pa.int64())).as_py()
    name = Name(
        first=sequences[0].as_py() if first is None else first,
        last=sequences[-1].as_py(),
        committed=max(times["min"], 0),
        ended=max(times["max"], 0),
        rows=table.num_rows,
        number=number,
        attempt=attempt,
    )
    files.publish(f"{folder}/{name}", sink.getvalue())
    return int(table.num_rows)


def read_part(path: str) -> tuple[TableSchema, Iterator[pa.RecordBatch]]:
    """The schema of a part, and its rows. OSError."""
    reader = pa.ipc.open_file(files.read(path))
    schema = TableSchema.from_json(json.loads(reader.schema.metadata[_TABLE]))
    plain = change_schema(schema)
    batches = (
        pa.RecordBatch.from_arrays(reader.get_batch(i).columns, schema=plain)
        for i in range(reader.num_record_batches)
    )
    return schema, batches
