"""Writes one lane into files; a task runs this. A row goes into the bucket of its commit time, but
never into an older bucket than the row before it. So the names of a table's files sort in the order
of its changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from replicators.connectors import files
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.target import Lane
from replicators.targets.files import layout
from replicators.targets.files.errors import translated
from replicators.targets.files.jsonlines import lines
from replicators.targets.files.records import Records, keeps_before, record_schema, records

FILE_BYTES = 128 << 20
"""Approximate size of a file before compression; this much is held in memory."""
SLICE_BYTES = 32 << 20
"""Bytes that are turned into records at once."""


@dataclass(frozen=True, slots=True)
class Form:
    """The format of the files. `codec` is Arrow's name of the compression; empty for none."""

    ending: str
    codec: str
    is_parquet: bool
    before_images: bool


@dataclass(frozen=True, slots=True)
class DataFile:
    """A written file in a folder of its generation. `bucket` is the microsecond at which its bucket
    begins. `operations` counts rows by operation."""

    bucket: int
    folder: str
    name: str
    lane: int
    rows: int
    size: int
    first: int
    last: int
    version: int
    operations: dict[str, int]

    @property
    def path(self) -> str:
        """The file's path within the generation's folder."""
        return f"{self.folder}/{self.name}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(**data)


@dataclass(frozen=True, slots=True)
class LaneWork:
    """A lane to write below `folder`, a generation's folder. No row goes into a bucket before
    `floor`. A commit time after `ceiling` counts as `ceiling`. File names contain `attempt`, so
    that no two attempts share a name."""

    lane: Lane
    schema: TableSchema
    version: int
    folder: str
    form: Form
    buckets: layout.Buckets
    floor: int
    ceiling: int
    attempt: str


def write_lane(work: LaneWork) -> list[DataFile]:
    """Write the lane's files. They are durable when this returns."""
    with translated(work.schema.id):
        return list(_written(work))


def _written(work: LaneWork) -> Iterator[DataFile]:
    has_before = keeps_before(work.schema, work.form.before_images)
    current, part = work.floor, 0
    growing: _Growing | None = None
    for batch in work.lane.read():
        for piece in _pieces(batch):
            made = records(piece, work.schema, work.version, has_before)
            for bucket, some in _by_bucket(made, current, work):
                if growing and (bucket != current or growing.size >= FILE_BYTES):
                    yield growing.finish(part)
                    growing, part = None, part + 1
                growing = growing or _Growing(work, bucket, has_before)
                growing.add(some)
                current = bucket
    if growing:
        yield growing.finish(part)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split a batch into parts of about `SLICE_BYTES` each."""
    count = min(batch.num_rows, 1 + batch.nbytes // SLICE_BYTES)
    step = -(-batch.num_rows // count) if count else 1
    for begin in range(0, batch.num_rows, step):
        yield batch.slice(begin, step)


def _by_bucket(made: Records, current: int, work: LaneWork) -> Iterator[tuple[int, Records]]:
    """Consecutive records of one bucket, in order."""
    times = made.rows.column("_committed_at").cast(pa.int64()).to_numpy()
    length = work.buckets.micros
    own = np.minimum(times, work.ceiling) // length * length
    buckets = np.maximum.accumulate(np.maximum(own, current))
    cuts = np.flatnonzero(np.diff(buckets)) + 1
    for begin, end in zip([0, *cuts], [*cuts, len(buckets)], strict=True):
        yield int(buckets[begin]), made.slice(int(begin), int(end))


class _Growing:
    """A file that is being built in memory."""

    def __init__(self, work: LaneWork, bucket: int, has_before: bool) -> None:
        self._work, self._bucket = work, bucket
        self._sink = pa.BufferOutputStream()
        codec = work.form.codec
        self._parquet: pq.ParquetWriter | None = None
        self._stream: Any = None
        if work.form.is_parquet:
            schema = record_schema(work.schema, has_before)
            self._parquet = pq.ParquetWriter(self._sink, schema, compression=codec or "none")
        else:
            self._stream = pa.CompressedOutputStream(self._sink, codec) if codec else self._sink
        self.size = self._rows = 0
        self._first = self._last = -1
        self._operations: Counter[str] = Counter()

    def add(self, made: Records) -> None:
        """Append records."""
        rows = made.rows
        if self._parquet:
            self._parquet.write_batch(rows)
        else:
            self._stream.write(lines(made, self._work.schema))
        sequences = rows.column("_sequence")
        if self._first < 0:
            self._first = sequences[0].as_py()
        self._last = sequences[-1].as_py()
        self.size += rows.nbytes
        self._rows += rows.num_rows
        counts = rows.column("_operation").value_counts()
        names, numbers = counts.flatten()
        self._operations.update(dict(zip(names.to_pylist(), numbers.to_pylist(), strict=True)))

    def finish(self, part: int) -> DataFile:
        """Write the file to its final path."""
        work = self._work
        if self._parquet:
            self._parquet.close()
        elif work.form.codec:
            self._stream.close()
        data = self._sink.getvalue()
        name = layout.file_name(
            self._first, self._last, work.lane.number, part, work.attempt, work.form.ending
        )
        made = DataFile(
            self._bucket, work.buckets.folder(self._bucket), name, work.lane.number, self._rows,
            data.size, self._first, self._last,
            work.version, dict(self._operations),
        )  # fmt: skip
        path = f"{work.folder}/{made.path}"
        files.make_durable_folder(path.rpartition("/")[0], work.folder)
        files.publish(path, data)
        return made


def with_floor(work: LaneWork, floor: int) -> LaneWork:
    """The same lane, with `floor` as its oldest bucket."""
    return replace(work, floor=floor)
