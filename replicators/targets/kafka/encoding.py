"""Turns lanes into messages with their partitions. Tasks run this."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from replicators.connectors import files
from replicators.connectors.feed.messages import MESSAGES, Encoder
from replicators.connectors.model.changes import Op, change_schema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import Lane
from replicators.targets.kafka.partitions import partitions
from replicators.targets.kafka.topics import Topic

ROUTED = MESSAGES.append(pa.field("partition", pa.int32(), nullable=False))
OVERHEAD = 300
"""Bytes that a message may have beside key and value: headers and frame."""


@dataclass(frozen=True, slots=True)
class Work:
    """Lanes to encode. `floor`: no message says an earlier commit time (seconds). `path`: the file
    for the messages."""

    lanes: tuple[Lane, ...]
    encoder: Encoder
    topic: Topic
    floor: float
    path: str = ""


def messages(work: Work) -> Iterator[pa.RecordBatch]:
    """The messages in order, with the partition of each. `target:kafka-message-large`"""
    for batch in _batches(work):
        for made in work.encoder.encode_slices(batch, work.floor):
            if made.num_rows:
                yield _checked(_routed(made, work.topic.partitions), work)


def _batches(work: Work) -> Iterator[pa.RecordBatch]:
    if not work.encoder.options.last_only:
        for lane in work.lanes:
            yield from lane.read()
        return
    schema = change_schema(work.encoder.schema)
    rows = pa.Table.from_batches([b for lane in work.lanes for b in lane.read()], schema)
    yield from rows.combine_chunks().to_batches()


def _routed(made: pa.RecordBatch, count: int) -> pa.RecordBatch:
    """A TRUNCATE goes to every partition, so that each reader sees it in its place."""
    place = partitions(made.column("key"), count)
    is_for_all = pc.equal(made.column("_op"), int(Op.TRUNCATE)).to_numpy(zero_copy_only=False)
    if is_for_all.any():
        times = np.where(is_for_all, count, 1)
        index = np.repeat(np.arange(made.num_rows), times)
        begins = np.repeat(np.cumsum(times) - times, times)
        place = np.where(is_for_all[index], np.arange(len(index)) - begins, place[index])
        made = made.take(pa.array(index))
    columns = [*made.columns, pa.array(place.astype(np.int32))]
    return pa.RecordBatch.from_arrays(columns, schema=ROUTED)


def _checked(made: pa.RecordBatch, work: Work) -> pa.RecordBatch:
    lengths = pc.add(_length(made.column("key")), _length(made.column("value")))
    largest = (pc.max(lengths).as_py() or 0) + OVERHEAD
    if largest > work.topic.limit:
        raise ReplicationError(
            "target:kafka-message-large",
            table=work.encoder.schema.id,
            topic=work.topic.name,
            size=largest,
            limit=work.topic.limit,
        )
    return made


def _length(values: pa.Array) -> pa.Array:
    return pc.fill_null(pc.binary_length(values), 0).cast(pa.int64())


def write_messages(work: Work) -> int:
    """Write the messages into a Parquet file, and return their number."""
    rows = 0
    sink: Any = pa.BufferOutputStream() if files.is_url(work.path) else work.path
    with pq.ParquetWriter(sink, ROUTED, compression="lz4", use_dictionary=False) as out:
        for made in messages(work):
            out.write_batch(made)
            rows += made.num_rows
    if files.is_url(work.path):
        files.write(work.path, sink.getvalue())
    return rows


def works(whole: Work, paths: Sequence[str]) -> list[Work]:
    """A work for each lane; one for all where the encoder needs whole transactions."""
    groups = [whole.lanes] if whole.encoder.options.last_only else [(x,) for x in whole.lanes]
    return [
        Work(lanes, whole.encoder, whole.topic, whole.floor, path)
        for lanes, path in zip(groups, paths, strict=False)
    ]
