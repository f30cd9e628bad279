"""Parquet files that tasks write: each with a name of its own, durable, in a folder or a store."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from replicators.connectors import files
from replicators.sources.compared.journal import Portion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WRITTEN = "path string, rows bigint, size bigint"
GROUP_ROWS = 1 << 17
Batches = Iterator[pa.RecordBatch]


def written(rows: DataFrame, folder: str, schema: pa.Schema, most_rows: int) -> tuple[Portion, ...]:
    """Write the rows with these Arrow columns, at most so many to a file. The files are durable
    when this returns."""
    if not files.is_url(folder):
        os.makedirs(folder, exist_ok=True)
    found = rows.mapInArrow(_writing(folder, schema, most_rows), WRITTEN).collect()
    if not files.is_url(folder):
        for above in (folder, os.path.dirname(folder), os.path.dirname(os.path.dirname(folder))):
            files.sync_folder(above)
    done = [Portion(str(r["path"]), int(r["rows"]), int(r["size"])) for r in found]
    return tuple(sorted(done, key=lambda p: p.path))


def _writing(folder: str, schema: pa.Schema, most_rows: int) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        name = uuid.uuid4().hex[:12]
        for number, part in enumerate(_parts(batches, most_rows)):
            path = f"{folder}/{name}-{number:05d}.parquet"
            rows, size = _write(path, schema, part)
            arrays = [pa.array([path]), pa.array([rows], pa.int64()), pa.array([size], pa.int64())]
            yield pa.RecordBatch.from_arrays(arrays, ["path", "rows", "size"])

    return run


def _parts(batches: Batches, most_rows: int) -> Iterator[Batches]:
    """The batches in runs of so many rows. Each run is to be used up before the next one."""
    waiting = (b for b in batches if b.num_rows)
    for first in waiting:
        yield _run(first, waiting, most_rows)


def _run(first: pa.RecordBatch, rest: Batches, most_rows: int) -> Batches:
    rows = first.num_rows
    yield first
    while rows < most_rows:
        batch = next(rest, None)
        if batch is None:
            return
        rows += batch.num_rows
        yield batch


def _write(path: str, schema: pa.Schema, batches: Batches) -> tuple[int, int]:
    """Write one file; returns its rows and bytes. A store gets it whole or not at all."""
    if not files.is_url(path):
        rows = _write_local(path, schema, batches)
        return rows, os.path.getsize(path)
    with tempfile.TemporaryDirectory() as folder:
        local = os.path.join(folder, "rows.parquet")
        rows = _write_local(local, schema, batches)
        files.send(local, path)
        return rows, os.path.getsize(local)


def _write_local(path: str, schema: pa.Schema, batches: Batches) -> int:
    rows = 0
    with open(path, "wb") as out:
        with pq.ParquetWriter(out, schema, compression="zstd", compression_level=1) as writer:
            for batch in batches:
                table = pa.Table.from_batches([batch]).select(schema.names).cast(schema)
                writer.write_table(table, row_group_size=GROUP_ROWS)
                rows += batch.num_rows
        out.flush()
        os.fsync(out.fileno())
    return rows
