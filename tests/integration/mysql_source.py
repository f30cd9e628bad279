"""What the tests of the MySQL source share: params, schemas, the log's drain and the decoding of
its blocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from replicators.connectors.log import DecodedTable, LogBlock, Poison
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.connectors.params import parse
from replicators.connectors.problems.problem import Problem, Severity
from replicators.sources.mysql.catalog import MysqlCatalog
from replicators.sources.mysql.checks import MysqlChecks
from replicators.sources.mysql.decode import decode
from replicators.sources.mysql.log import LogControl, LogReader
from replicators.sources.mysql.params import MysqlParams
from replicators.sources.mysql.snapshot import ChunkReader, SnapshotSession
from tests.mysql_servers import SqlDatabase

MEGABYTE = 1 << 20
DEADLINE_SECONDS = 30.0
NAME = "replicator_test"


def params_of(database: SqlDatabase, /, **changes: Any) -> MysqlParams:
    return parse(MysqlParams, {**database.params, **changes})


def describe(database: SqlDatabase, *names: str, **changes: Any) -> list[TableSchema]:
    """The schemas of tables of this database, in this order."""
    ids = [TableId(database.name, name) for name in names]
    with MysqlCatalog(params_of(database, **changes)) as catalog:
        schemas = catalog.describe([TableSelection(i) for i in ids])
    return [schemas[i] for i in ids]


def connection_problems(checks: MysqlChecks) -> list[Problem]:
    """What stands in the way of a connection: without what is only said, as for how long the log is
    kept."""
    return [one for one in checks.connection() if one.severity is not Severity.INFO]


class Follower:
    """A log that is followed from now on."""

    def __init__(self, database: SqlDatabase, *names: str, **changes: Any) -> None:
        self.database = database
        self.params = params_of(database, **changes)
        self.tables = describe(database, *names, **changes)
        self.reader = LogReader(self.params, NAME)
        self.reader.prepare(self.tables, None)
        self.session = SnapshotSession(self.params, NAME)
        self.reader.start(self.session.point.position, self.tables)

    def blocks(self, max_bytes: int = 4 * MEGABYTE) -> list[LogBlock]:
        """All blocks up to the log's end as it is now."""
        with LogControl(self.params, NAME) as control:
            mark = control.heartbeat()
        return read_until(self.reader, mark, max_bytes)

    def changes(self) -> dict[str, pa.Table]:
        """The decoded changes by table, until now; each table in one schema."""
        return {
            name: pa.concat_tables(parts)
            for name, parts in decoded(self.blocks(), self.tables).items()
        }

    def copy(self, number: int = 0, rows_per_chunk: int = 100_000) -> pa.Table:
        """A table as it is."""
        table = self.tables[number]
        read = ChunkReader(self.params, "")
        chunks = self.session.plan(table, rows_per_chunk=rows_per_chunk)
        batches = [b for chunk in chunks for b in read(chunk, table)]
        return pa.Table.from_batches(batches) if batches else table.arrow_schema().empty_table()

    def close(self) -> None:
        self.reader.close()


@contextmanager
def following(database: SqlDatabase, *names: str, **changes: Any) -> Iterator[Follower]:
    """A follower that is closed at the end."""
    follower = Follower(database, *names, **changes)
    try:
        yield follower
    finally:
        follower.close()


def read_until(reader: LogReader, mark: int, max_bytes: int = 4 * MEGABYTE) -> list[LogBlock]:
    """Blocks until everything before `mark` was read."""
    blocks: list[LogBlock] = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        idle = reader.idle_position()
        if idle is not None and idle.ordinal >= mark:
            return blocks
        assert time.monotonic() < deadline, f"{len(blocks)} blocks came, up to {idle}, not {mark}"
        block = reader.read(wait_seconds=0.05, max_bytes=max_bytes)
        if block is not None:
            blocks.append(block)


def runs(blocks: Sequence[LogBlock]) -> list[tuple[dict[str, Any], np.ndarray]]:
    """A context and a body for each run of blocks of one context version, as segments have them."""
    found: list[list[LogBlock]] = []
    for block in blocks:
        if not found or found[-1][0].context_version != block.context_version:
            found.append([])
        found[-1].append(block)
    return [
        (run[0].context, np.frombuffer(b"".join(b.data for b in run), np.uint8)) for run in found
    ]


def decode_all(
    blocks: Sequence[LogBlock], tables: Sequence[TableSchema]
) -> list[DecodedTable | Poison]:
    """Everything that decoding gives, but for schemas that statements alone tell."""
    return [part for part in decode_whole(blocks, tables) if not is_bare_schema(part)]


def is_bare_schema(part: DecodedTable | Poison) -> bool:
    """Whether a statement, and no row, tells this schema."""
    return isinstance(part, DecodedTable) and part.schema_at is not None


def decode_whole(
    blocks: Sequence[LogBlock], tables: Sequence[TableSchema]
) -> list[DecodedTable | Poison]:
    """Everything that decoding gives."""
    return [
        part
        for number, (context, body) in enumerate(runs(blocks), 1)
        for part in decode(
            {"context": context, "tables": [t.to_json() for t in tables]}, body, number
        )
    ]


def decoded(blocks: Sequence[LogBlock], tables: Sequence[TableSchema]) -> dict[str, list[pa.Table]]:
    """The decoded changes by table name; nothing may be poisoned."""
    found: dict[str, list[pa.Table]] = {}
    for part in decode_all(blocks, tables):
        assert isinstance(part, DecodedTable), part
        found.setdefault(part.schema.id.name, []).append(part.changes)
    return found


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for a state."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
