"""A source that is followed by the bytes of its log: its reader, what is decoded, and the part of
the plugin that names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from replicators.connectors.closing import Closing
from replicators.connectors.model.changes import OpCounts
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.snapshot import FirstSnapshotOpener, SnapshotWait


@dataclass(frozen=True, slots=True)
class LogBlock:
    """A run of log messages, ready for a raw segment.

    `data` is repeated [u32 little-endian length][message bytes]. `ends_closed`: the block ends at a
    transaction's end and starts outside of one, or ends the one that earlier open blocks began; an
    open block holds part of exactly one transaction. `position` is the end of the last complete
    transaction so far. `context` is what decoding needs at the block's *start* (JSON-able; the
    engine puts it in the head of a segment that begins with this block) and `context_version`
    changes whenever a relation's shape changed within or before this block: such a block starts a
    new segment.
    """

    data: bytes | bytearray | memoryview
    messages: int
    ends_closed: bool
    position: Position
    context: dict[str, Any]
    context_version: int
    first_committed_at: float | None = None


class LogReader(Closing, Protocol):
    """Reads the source's log as raw bytes. Used by one thread."""

    def prepare(
        self,
        tables: Sequence[TableSchema],
        position: Position | None,
        wait: SnapshotWait | None = None,
    ) -> None:
        """Make what is needed at the source (slot, publication) where it is missing and `position`
        is None, otherwise verify that the log continues at `position`: `source:position-lost`,
        `source:slot-missing`, `source:slot-invalidated`. Idempotent. `wait` hears of locks that
        keep it waiting."""
        ...

    def start(self, position: Position, tables: Sequence[TableSchema]) -> None:
        """Open the stream after `position`; transactions that end at or before it are dropped
        whole."""
        ...

    def read(self, *, wait_seconds: float, max_bytes: int) -> LogBlock | None:
        """The next block, or None where nothing came within `wait_seconds`. Answers the server's
        keepalives."""
        ...

    def follow(self, tables: Sequence[TableSchema]) -> None:
        """Another thread says that these tables are chosen now: what the server has not sent yet
        comes with all of them. Nothing to do where `SourceControl.add_tables` sees to it at the
        server."""
        ...

    def acknowledge(self, position: Position) -> None:
        """Tell the source that everything up to `position` is durable. Cheap; safe to repeat."""
        ...

    def idle_position(self) -> Position | None:
        """Where the server says there is nothing to send before, while no transaction is open: may
        be recorded and then acknowledged. None when unknown."""
        ...


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where in the log something without rows is: its `_sequence`, when it was committed
    (microseconds), and its position."""

    sequence: int
    committed_at: int
    position: int


@dataclass(frozen=True, slots=True)
class DecodedTable:
    """The changes of one table, of one version of its shape, in one segment. `shape_at`: a
    statement changed the shape there; told without rows, so that the copy follows though none may
    ever come."""

    schema: TableSchema
    version: str
    changes: pa.Table
    counts: OpCounts
    schema_at: LogPlace | None = None


@dataclass(frozen=True, slots=True)
class Poison:
    """A table whose bytes can't be decoded: the others of the segment are not touched. `position`:
    where in the log what happened begins; a copy made after it has that in it (0: not known)."""

    table: TableId
    offset: int
    code: str
    facts: dict[str, str] = field(default_factory=dict)
    position: int = 0


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Rows of a table that the segment's head does not name: nothing of them is decoded.
    `native_id`: the source's own number of the table (`TableSchema.native_id`); `position`: the
    highest position of their transactions."""

    native_id: int
    rows: int
    position: int


class LogDecoder(Protocol):
    """Pure: the same head and body give the same rows and numbers. Runs inside a Spark task;
    imports no Django."""

    def __call__(
        self, head: dict[str, Any], body: Any, segment: int
    ) -> Iterator[DecodedTable | Poison | PassedOver]:
        """Decode a raw segment's body (a uint8 buffer of [u32 length][message]) column-wise.
        `head["context"]` is the `LogBlock.context` of its first block, `head["tables"]` the frozen
        selection (`TableSchema.to_json`)."""
        ...


@dataclass(frozen=True, slots=True)
class ByteLog:
    """The part of a plugin whose source has a log of bytes: one thread reads it into raw segments,
    and tasks decode those later.

    `reader` gets params and the name of what the replicator makes at the source. `decoder` is a
    `LogDecoder`; it is called in tasks, and so it is named by dotted path.
    """

    reader: Callable[[Any, str], LogReader]
    snapshot_first: FirstSnapshotOpener[LogReader]
    decoder: str
