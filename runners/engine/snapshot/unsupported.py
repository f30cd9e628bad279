"""Takes rows with unsupported values out of a snapshot's chunk: they are quarantined, or the table
stops."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import Chunk, ChunkReader
from runners.engine.errors import unsupported
from runners.engine.quarantine.decide import check_limit, of_snapshot, quarantined_rows
from runners.engine.sizes import NO_LIMITS, Limits
from runners.engine.store.quarantine import QuarantinedRow

NUMBERS_A_CHUNK = 1 << 20


class SupportedRows:
    """A `ChunkReader` for one chunk that keeps rows with unsupported values in `held`. Where it may
    not, it raises `source:value-unsupported`, or `source:value-too-large` for a row beyond the
    limits."""

    def __init__(self, read: ChunkReader, *, quarantines: bool, limits: Limits = NO_LIMITS) -> None:
        self._read = read
        self._quarantines = quarantines
        self._limits = limits
        self._held: list[pa.Table] = []

    def __call__(self, chunk: Chunk, schema: TableSchema) -> Iterator[pa.RecordBatch]:
        for batch in map(self._small, self._read(chunk, schema), repeat(schema)):
            if "_faulty" not in batch.schema.names:
                yield batch
                continue
            is_unsupported = pc.is_valid(batch.column("_faulty"))
            self._keep(pa.Table.from_batches([batch.filter(is_unsupported)]), schema)
            yield batch.filter(pc.invert(is_unsupported)).select(schema.arrow_schema().names)

    def _small(self, batch: pa.RecordBatch, schema: TableSchema) -> pa.RecordBatch:
        if self._limits.are_kept(batch.nbytes):
            return batch
        rows = self._limits.held(pa.Table.from_batches([batch]), schema)
        return rows.combine_chunks().to_batches()[0]

    def _keep(self, rows: pa.Table, schema: TableSchema) -> None:
        if not self._quarantines:
            code, facts = unsupported(rows.column("_fault_reason")[0].as_py())
            raise ReplicationError(code, table=schema.id, **facts)
        self._held.append(rows)
        check_limit(schema.id, sum(t.num_rows for t in self._held))

    @property
    def held(self) -> bytes | None:
        """The quarantined rows, to be sent to the driver."""
        if not self._held:
            return None
        sink = pa.BufferOutputStream()
        table = pa.concat_tables(self._held)
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue().to_pybytes())


def held_rows(held: bytes, schema: TableSchema, position: int, number: int) -> list[QuarantinedRow]:
    """What the store keeps of chunk `number`: inserts from before the log, with their own negative
    sequences."""
    rows = pa.ipc.open_stream(held).read_all()
    first = -(number + 1) * NUMBERS_A_CHUNK
    changes = of_snapshot(rows, schema, position, first)
    return quarantined_rows(changes, schema, first - 1)
