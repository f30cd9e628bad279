"""What the tests of the PostgreSQL source share: params, schemas, the log's drain and the decoding
of its blocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from replicators.connectors.log import DecodedTable, LogBlock, PassedOver
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.connectors.params import parse
from replicators.sources.postgresql.catalog import PostgresqlCatalog
from replicators.sources.postgresql.decode import decode
from replicators.sources.postgresql.log import LogControl, LogReader
from replicators.sources.postgresql.params import PostgresqlParams
from replicators.sources.postgresql.snapshot import ChunkReader, SnapshotSession, snapshot_first
from tests.servers import Database

MEGABYTE = 1 << 20
DEADLINE_SECONDS = 20.0


def params_of(database: Database, /, **changes: Any) -> PostgresqlParams:
    return parse(PostgresqlParams, {**database.params, **changes})


def describe(database: Database, *names: str) -> list[TableSchema]:
    """The schemas of tables of the schema public, in this order."""
    ids = [TableId("public", name) for name in names]
    with PostgresqlCatalog(params_of(database)) as catalog:
        schemas = catalog.describe([TableSelection(i) for i in ids])
    return [schemas[i] for i in ids]


def begin(
    database: Database, slot: str, tables: Sequence[TableSchema]
) -> tuple[LogReader, SnapshotSession]:
    """A first start: publications, slot, snapshot, and the stream from its point."""
    params = params_of(database)
    reader = LogReader(params, slot)
    reader.prepare(tables, None)
    session = snapshot_first(params, slot, reader)
    reader.start(session.point.position, tables)
    return reader, session


def read_until(reader: LogReader, is_enough: Callable[[list[LogBlock]], bool]) -> list[LogBlock]:
    """Blocks until the condition holds."""
    blocks: list[LogBlock] = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_enough(blocks):
        assert time.monotonic() < deadline, f"only {len(blocks)} blocks came"
        block = reader.read(wait_seconds=0.05, max_bytes=4 * MEGABYTE)
        if block is not None:
            blocks.append(block)
    return blocks


def read_all(reader: LogReader, control: LogControl) -> list[LogBlock]:
    """All blocks up to a heartbeat sent now."""
    mark = control.heartbeat()

    def is_past(blocks: list[LogBlock]) -> bool:
        idle = reader.idle_position()
        return idle is not None and idle.ordinal >= mark

    return read_until(reader, is_past)


def changes(blocks: Sequence[LogBlock], tables: Sequence[TableSchema]) -> dict[str, list[pa.Table]]:
    """The decoded changes by table name, a segment for each run of blocks of one context
    version."""
    found: dict[str, list[pa.Table]] = {}
    runs: list[list[LogBlock]] = []
    for block in blocks:
        if not runs or runs[-1][0].context_version != block.context_version:
            runs.append([])
        runs[-1].append(block)
    for number, run in enumerate(runs, 1):
        head = {"context": run[0].context, "tables": [t.to_json() for t in tables]}
        body = np.frombuffer(b"".join(b.data for b in run), np.uint8)
        for part in decode(head, body, number):
            if isinstance(part, PassedOver):
                continue
            assert isinstance(part, DecodedTable), part
            found.setdefault(part.schema.id.name, []).append(part.changes)
    return found


def snapshot(
    session: SnapshotSession, database: Database, table: TableSchema, rows_per_chunk: int = 1000
) -> pa.Table:
    """The table as the session's view has it."""
    read = ChunkReader(params_of(database), session.point.token)
    batches = [
        batch
        for chunk in session.plan(table, rows_per_chunk=rows_per_chunk)
        for batch in read(chunk, table)
    ]
    return pa.Table.from_batches(batches, schema=table.arrow_schema())


def messages(blocks: Sequence[LogBlock]) -> str:
    """The kinds of all messages, a letter each, with a bar after each block."""
    kinds = []
    for block in blocks:
        data, at = bytes(block.data), 0
        while at < len(data):
            kinds.append(chr(data[at + 4]))
            at += 4 + int.from_bytes(data[at : at + 4], "little")
        kinds.append("|")
    return "".join(kinds)
