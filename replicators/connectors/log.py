"""A source that is followed by the bytes of its log: the reader, what decoding gives, and the part
of the plugin that names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol

import pyarrow as pa

from replicators.connectors.closing import Closing
from replicators.connectors.model.changes import OpCounts
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.params import P
from replicators.connectors.snapshot import FirstSnapshotOpener, SnapshotWait


@dataclass(frozen=True, slots=True)
class LogBlock:
    """A run of log messages, ready for a raw segment.

    `data` is repeated [u32 little-endian length][message bytes]. A block with `ends_closed` ends at
    a transaction's end. It also starts outside of a transaction, or ends the transaction that
    earlier open blocks began. An open block holds part of exactly one transaction. `position` is
    the end of the last complete transaction so far.

    `context` is what decoding needs at the block's *start*, as JSON. The engine puts it in the head
    of a segment that begins with this block. `context_version` changes whenever a relation's schema
    changed within or before this block: such a block starts a new segment.
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
        """Where `position` is None, make what is needed at the source (slot, publication) and is
        missing. Otherwise verify that the log continues at `position`: `source:position-lost`,
        `source:slot-missing`, `source:slot-invalidated`. Idempotent. `wait` is called while a lock
        keeps it waiting."""
        ...

    def start(self, position: Position, tables: Sequence[TableSchema]) -> None:
        """Open the stream after `position`. Transactions that end at or before it are dropped as a
        whole."""
        ...

    def read(self, *, wait_seconds: float, max_bytes: int) -> LogBlock | None:
        """The next block, or None where nothing came within `wait_seconds`. It answers the server's
        keepalives."""
        ...

    def follow(self, tables: Sequence[TableSchema]) -> None:
        """Follow these tables from now on: what the server has not sent yet comes with all of them.
        Another thread calls this. It does nothing where `SourceControl.add_tables` does the work at
        the server."""
        ...

    def acknowledge(self, position: Position) -> None:
        """Tell the source that everything up to `position` is durable. Cheap; safe to repeat."""
        ...

    def idle_position(self) -> Position | None:
        """The position before which the server says it has nothing to send, while no transaction is
        open. It may be recorded and then acknowledged. None where it is unknown."""
        ...


@dataclass(frozen=True, slots=True)
class LogPlace:
    """The place in the log of something without rows: its `_sequence`, its commit time
    (microseconds), and its position."""

    sequence: int
    committed_at: int
    position: int


@dataclass(frozen=True, slots=True)
class DecodedTable:
    """The changes of one table, of one version of its schema, in one segment. `schema_at`: the
    place where a statement changed the schema. It is reported even without rows, so that the copy's
    schema changes although no row may ever come."""

    schema: TableSchema
    version: str
    changes: pa.Table
    counts: OpCounts
    schema_at: LogPlace | None = None


@dataclass(frozen=True, slots=True)
class Poison:
    """A table whose bytes can't be decoded. The segment's other tables are not affected.
    `position`: where the failed part begins in the log (0: not known). A copy made after that
    position contains it."""

    table: TableId
    offset: int
    code: str
    facts: dict[str, str] = field(default_factory=dict)
    position: int = 0


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Rows of a table that the segment's head does not name. They are not decoded. `native_id`: the
    source's own number of the table (`TableSchema.native_id`). `position`: the highest position of
    their transactions."""

    native_id: int
    rows: int
    position: int


class LogDecoder(Protocol):
    """A pure function: the same head and body give the same rows and numbers. It runs inside a
    Spark task and imports no Django."""

    def __call__(
        self, head: dict[str, Any], body: Any, segment: int
    ) -> Iterator[DecodedTable | Poison | PassedOver]:
        """Decode a raw segment's body (a uint8 buffer of [u32 length][message]) column-wise.
        `head["context"]` is the `LogBlock.context` of its first block. `head["tables"]` is the
        frozen selection (`TableSchema.to_json`)."""
        ...


@dataclass(frozen=True, slots=True)
class ByteLog(Generic[P]):
    """The part of a plugin whose source has a log of bytes. One thread reads the log into raw
    segments, and tasks decode them later.

    `reader` gets the params and the name of what the replicator makes at the source. `decoder` is a
    `LogDecoder`. It is called in tasks, so it is named by dotted path. So is `grows`, which says
    of a segment's body whether decoding may take far more memory than the body has bytes, because
    it is compressed. Empty: never.
    """

    reader: Callable[[P, str], LogReader]
    snapshot_first: FirstSnapshotOpener[LogReader, P]
    decoder: str
    grows: str = ""
