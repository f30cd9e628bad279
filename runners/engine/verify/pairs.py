"""Reads one side of a table in tasks, and writes a *pair file* for each part: the hash of every row
with its key. A pair file has a record batch for each bucket, so that a bucket of both sides can be
compared without the others. Buckets are chosen by the key's hash; without a key by the row's.

So the order in which databases sort keys does not matter, each side is read once, and memory holds
one part, or one bucket of both sides.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors import files
from replicators.connectors.model.changes import FAULT_FIELDS
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.reading import CurrentRows
from replicators.connectors.snapshot import Chunk, ChunkReader
from runners.engine.fold.filtering import kept
from runners.engine.verify.hashing import KEY_SEED, ROW_SEED, Hashes, hashes, unmatched

HASH = "_hash"
ROWS_A_FILE = 500_000
ROWS_A_BUCKET = 500_000
MOST_BUCKETS = 4096


@dataclass(frozen=True, slots=True)
class Plan:
    """How both sides are read. `columns` are compared, in this order; `key` is among them (empty:
    none). `folder`: where pair files go. `limit`: how many candidates a bucket, or a search, gives
    at most."""

    schema: TableSchema
    columns: tuple[str, ...]
    key: tuple[str, ...]
    folder: str
    buckets: int
    limit: int

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema of the compared columns."""
        arrow = self.schema.arrow_schema()
        return pa.schema([arrow.field(n) for n in self.columns])

    @property
    def keys(self) -> pa.Schema:
        """The Arrow schema of the key's columns."""
        arrow = self.schema.arrow_schema()
        return pa.schema([arrow.field(n) for n in self.key])

    def key_hashes(self, rows: pa.RecordBatch) -> Hashes:
        """What tells rows apart: the key's hash, or the row's."""
        return hashes(rows, list(self.key), KEY_SEED) if self.key else self.row_hashes(rows)

    def row_hashes(self, rows: pa.RecordBatch) -> Hashes:
        """A hash of the compared columns."""
        return hashes(rows, list(self.columns), ROW_SEED)


def buckets_for(rows: int) -> int:
    """How many buckets so many rows need."""
    return max(1, min(MOST_BUCKETS, -(-rows // ROWS_A_BUCKET)))


@dataclass(frozen=True, slots=True)
class Part:
    """What was read of one side: its pair files, rows and bytes in Arrow, and the keys of rows with
    values that can't be carried (IPC, empty: none)."""

    paths: tuple[str, ...]
    rows: int
    size_bytes: int
    held: bytes = b""


class _Writer:
    """Gathers rows and writes pair files."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._schema = pa.schema([pa.field(HASH, pa.uint64()), *plan.keys])
        self._parts: list[tuple[np.ndarray[Any, Any], pa.RecordBatch]] = []
        self._waiting = 0
        self.paths: list[str] = []
        self.rows = self.size_bytes = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Rows with the compared columns."""
        if not rows.num_rows:
            return
        plan = self._plan
        found = plan.row_hashes(rows)
        key = hashes(rows, list(plan.key), KEY_SEED) if plan.key else found
        bucket = (key % np.uint64(plan.buckets)).astype(np.uint16)
        arrays = [pa.array(found), *(rows.column(n) for n in plan.key)]
        self._parts.append((bucket, pa.RecordBatch.from_arrays(arrays, schema=self._schema)))
        self._waiting += rows.num_rows
        self.rows += rows.num_rows
        self.size_bytes += rows.nbytes
        if self._waiting >= ROWS_A_FILE:
            self.flush()

    def flush(self) -> None:
        """Write what is gathered."""
        if not self._waiting:
            return
        bucket = np.concatenate([b for b, _ in self._parts])
        rows = pa.Table.from_batches([r for _, r in self._parts])
        self._parts, self._waiting = [], 0
        rows = rows.take(pa.array(np.argsort(bucket, kind="stable"))).combine_chunks()
        ends = np.cumsum(np.bincount(bucket, minlength=self._plan.buckets))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, self._schema) as writer:
            start = 0
            for end in ends.tolist():
                writer.write_batch(_one(rows.slice(start, end - start)))
                start = end
        path = f"{self._plan.folder}/{uuid.uuid4().hex}.arrow"
        files.write(path, sink.getvalue())
        self.paths.append(path)


def _one(rows: pa.Table) -> pa.RecordBatch:
    batches = rows.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=rows.schema)


# --- reading -------------------------------------------------------------------------------------
def supported(
    batches: Iterable[pa.RecordBatch], plan: Plan, held: list[pa.Table]
) -> Iterator[pa.RecordBatch]:
    """A chunk's rows with the compared columns. Rows with values that can't be carried are left out
    as the copy leaves them out; their keys go to `held`."""
    fault = FAULT_FIELDS[0].name
    for batch in batches:
        if fault in batch.schema.names:
            is_held = pc.is_valid(batch.column(fault))
            if plan.key:
                rows = pa.Table.from_batches([batch.filter(is_held)])
                held.append(rows.select(list(plan.key)))
            batch = batch.filter(pc.invert(is_held))
        yield batch.select(list(plan.columns))


def read_source(chunk: Chunk, *, read: ChunkReader, plan: Plan) -> Part:
    """The task for a chunk of the source."""
    writer, held = _Writer(plan), list[pa.Table]()
    for batch in supported(read(chunk, plan.schema), plan, held):
        writer.add(batch)
    writer.flush()
    keys = to_ipc(pa.concat_tables(held)) if held else b""
    return Part(tuple(writer.paths), writer.rows, writer.size_bytes, keys)


def read_target(rows: CurrentRows, *, plan: Plan) -> Part:
    """The task for the target's rows, or for a part of them."""
    writer = _Writer(plan)
    for batch in rows.rows(plan.columns):
        writer.add(batch.cast(plan.arrow))
    writer.flush()
    return Part(tuple(writer.paths), writer.rows, writer.size_bytes)


# --- comparing -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Bucket:
    """One bucket and the pair files of both sides."""

    number: int
    source: tuple[str, ...]
    target: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows of a bucket that the sides do not have equally often. `keys`: their keys, each once
    (IPC), at most the plan's limit; `count`: how many there are in all. Without a key: `rows` has a
    line for each row's hash, with how often source and target have it."""

    count: int
    keys: bytes = b""
    rows: bytes = b""


def compare(bucket: Bucket, *, plan: Plan) -> Candidates:
    """The task for a bucket."""
    ours = [_bucket(path, bucket.number) for path in bucket.source]
    theirs = [_bucket(path, bucket.number) for path in bucket.target]
    found = unmatched(_sorted(ours), _sorted(theirs))
    if not len(found):
        return Candidates(0)
    if not plan.key:
        return Candidates(len(found), rows=found[: plan.limit].tobytes())
    odd = found[:, 0]
    parts = [plan.keys.empty_table()]
    for batch in (*ours, *theirs):
        hit = np.isin(batch.column(0).to_numpy(), odd)
        if hit.any():
            rows = pa.Table.from_batches([batch.filter(pa.array(hit))])
            parts.append(rows.select(list(plan.key)))
    keys = distinct(pa.concat_tables(parts))
    return Candidates(keys.num_rows, to_ipc(keys.slice(0, plan.limit)))


def _bucket(path: str, number: int) -> pa.RecordBatch:
    place = files.open_file(path) if files.is_url(path) else pa.memory_map(path)
    return pa.ipc.open_file(place).get_batch(number)


def _sorted(batches: list[pa.RecordBatch]) -> Hashes:
    parts = [b.column(0).to_numpy() for b in batches]
    return np.sort(np.concatenate(parts)) if parts else np.zeros(0, np.uint64)


def distinct(keys: pa.Table) -> pa.Table:
    """Each key once. Works for lists too."""
    names = keys.column_names
    if not keys.num_rows:
        return keys
    batch = _one(keys)
    _, first = np.unique(hashes(batch, names, KEY_SEED), return_index=True)
    return keys.take(pa.array(np.sort(first)))


# --- searching -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Found:
    """Rows that a search found (IPC): all compared columns. `read` rows and `size` bytes in Arrow
    were looked at."""

    rows: bytes
    count: int
    read: int
    size: int


def search_source(chunk: Chunk, *, read: ChunkReader, plan: Plan, wanted: Hashes) -> Found:
    """The task that looks for rows in a chunk of the source, by `Plan.key_hashes`. `wanted` is
    sorted."""
    return _search(supported(read(chunk, plan.schema), plan, []), plan, wanted)


def search_target(rows: CurrentRows, *, plan: Plan, wanted: Hashes) -> Found:
    """The same in the target's rows."""
    return _search((b.cast(plan.arrow) for b in rows.rows(plan.columns)), plan, wanted)


def _search(batches: Iterable[pa.RecordBatch], plan: Plan, wanted: Hashes) -> Found:
    parts = [plan.arrow.empty_table()]
    read = size = 0
    for batch in batches:
        read, size = read + batch.num_rows, size + batch.nbytes
        hit = np.isin(plan.key_hashes(batch), wanted) if batch.num_rows else np.zeros(0, bool)
        if hit.any():
            parts.append(pa.Table.from_batches([batch.filter(pa.array(hit))]))
    rows = pa.concat_tables(parts)
    return Found(to_ipc(rows), rows.num_rows, read, size)


def filtered(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """The rows that the table's filter keeps."""
    return rows.filter(kept(rows, schema)) if schema.filter and rows.num_rows else rows


def to_ipc(rows: pa.Table) -> bytes:
    """The rows as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue().to_pybytes())


def from_ipc(data: bytes) -> pa.Table:
    """The rows from bytes."""
    return pa.ipc.open_stream(data).read_all()


def warm() -> None:
    """Compile what tasks use, or load it from numba's cache."""
    from runners.engine.verify import hashing

    hashing.warm()
