"""What a source plugin provides. Every object made from params is a context manager whose `close` always runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, runtime_checkable

import pyarrow as pa

from replicators.connectors.addresses import Place
from replicators.connectors.capabilities import SourceCapabilities
from replicators.connectors.model.changes import OpCounts
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import (
    Column,
    TableId,
    TableSchema,
    TableSelection,
    TableSummary,
)
from replicators.connectors.problems.problem import Problem
from replicators.connectors.setup import SetupStep, no_setup


class Closing(Protocol):
    """A context manager that closes."""

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...


class Catalog(Closing, Protocol):
    """Looks into the source's tables."""

    def list_tables(self) -> list[TableSummary]:
        """Every table that could be copied, ordered by name; estimates only, no counting."""
        ...

    def describe(self, tables: Sequence[TableSelection]) -> dict[TableId, TableSchema]:
        """The shapes of those tables that exist, chosen columns only (keys are always in); missing ones are left out."""
        ...


class Checks(Closing, Protocol):
    """Preflight."""

    def connection(self) -> list[Problem]:
        """Can it be reached, logged in to, followed? Never raises for what a user can mend; at most 10 s."""
        ...

    def tables(self, tables: Sequence[TableSelection]) -> list[Problem]:
        """Problems of the chosen tables: rights, keys, types, names."""
        ...


@dataclass(frozen=True, slots=True)
class LogBlock:
    """A run of log messages, ready for a raw segment.

    `data` is repeated [u32 little-endian length][message bytes]. `ends_closed`: the block ends at a transaction's end and
    starts outside of one, or ends the one that earlier open blocks began; an open block holds part of exactly one
    transaction. `position` is the end of the last complete transaction so far. `context` is what decoding needs at the
    block's *start* (JSON-able; the engine puts it in the head of a segment that begins with this block) and
    `context_version` changes whenever a relation's shape changed within or before this block: such a block starts a new
    segment. `server_position` is the newest log end the server told.
    """

    data: bytes | bytearray | memoryview
    messages: int
    ends_closed: bool
    position: Position
    context: dict[str, Any]
    context_version: int
    server_position: int
    first_committed_at: float | None = None


class LogReader(Closing, Protocol):
    """Reads the source's log as raw bytes. Used by one thread."""

    def prepare(
        self,
        tables: Sequence[TableSchema],
        position: Position | None,
        wait: ViewWait | None = None,
    ) -> None:
        """Make what is needed at the source (slot, publication) where it is missing and `position` is None, otherwise
        verify that the log continues at `position`: `source:position-lost`, `source:slot-missing`,
        `source:slot-invalidated`. Idempotent. `wait` hears of locks that keep it waiting."""
        ...

    def start(self, position: Position, tables: Sequence[TableSchema]) -> None:
        """Open the stream after `position`; transactions that end at or before it are dropped whole."""
        ...

    def read(self, *, wait_seconds: float, max_bytes: int) -> LogBlock | None:
        """The next block, or None where nothing came within `wait_seconds`. Answers the server's keepalives."""
        ...

    def follow(self, tables: Sequence[TableSchema]) -> None:
        """Another thread says that these tables are chosen now: what the server has not sent yet comes with all of them.
        Nothing to do where `LogControl.add_tables` sees to it at the server."""
        ...

    def acknowledge(self, position: Position) -> None:
        """Tell the source that everything up to `position` is durable. Cheap; safe to repeat."""
        ...

    def idle_position(self) -> Position | None:
        """Where the server says there is nothing to send before, while no transaction is open: may be recorded and then
        acknowledged. None when unknown."""
        ...


@dataclass(frozen=True, slots=True)
class LogStatus:
    """What the source says of its log: bytes it keeps for us, hours until it would give up what was not read (None: no limit, or, where
    it `is_limited`, not known yet). `bytes_per_second`: the rate that the hours assume, None where they do not depend on one."""

    retained_bytes: int = 0
    is_active: bool = False
    hours_left: float | None = None
    server_time: float = 0.0
    end: int = 0
    is_limited: bool = False
    bytes_per_second: float | None = None


class LogControl(Closing, Protocol):
    """Small questions and acts beside the stream, on a connection of its own."""

    def heartbeat(self) -> int:
        """Write a mark into the log, so that the stream moves on an idle database; the log position after it."""
        ...

    def status(self, reached: Position | None = None) -> LogStatus:
        """How much log the source keeps, and for how long for a stream that has come to `reached`; its clock (seconds since
        the epoch)."""
        ...

    def add_tables(
        self, tables: Sequence[TableSchema], wait: ViewWait | None = None
    ) -> Sequence[TableSchema]:
        """Let the stream carry these tables too; idempotent; committed when it returns. Those that it did not carry before:
        what was done to them until now it will never tell. `wait` hears of locks that keep it waiting."""
        ...

    def remove_tables(self, tables: Sequence[TableSchema]) -> None:
        """Take tables out of the stream; idempotent."""
        ...

    def drop(self) -> None:
        """Remove everything this replicator made at the source (slot, publication); idempotent. `source:unreachable`
        where it can't be asked."""
        ...

    def drop_statements(self) -> list[str]:
        """The statements a person would run to do the same."""
        ...


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a table, read by one task; `query` is complete SQL text made by the plugin, quoted by it."""

    table: TableId
    number: int
    query: str
    rows_estimated: int = 0


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction at the source that a consistent view, or the stream's tables, have to wait for: its process there (0: a prepared one,
    known by `name`), how long it has been open, and how long ago its last query began; the `application` of its session, and the
    `lock` that is waited for, where it is that."""

    pid: int
    age_seconds: float | None = None
    query_seconds: float | None = None
    name: str = ""
    application: str = ""
    lock: str = ""

    def __str__(self) -> str:
        who = f"process {self.pid}" if self.pid else f"prepared transaction {self.name!r}"
        who += f" ({self.application})" if self.application else ""
        who += f" with {self.lock}" if self.lock else ""
        age = "" if self.age_seconds is None else f", open for {self.age_seconds:.0f} s"
        query = (
            ""
            if self.query_seconds is None
            else f", its query began {self.query_seconds:.0f} s ago"
        )
        return who + age + query


class ViewWait(Protocol):
    """Hears about once a second that a view, or a table's lock, can't be had yet; gives up by raising."""

    def __call__(self, waited_seconds: float, holders: Sequence[OpenTransaction], /) -> None: ...


class FirstViewOpener(Protocol):
    """Makes the log's start, and opens the view that belongs to it; waits as `ViewOpener` does."""

    def __call__(
        self, params: Any, name: str, reader: LogReader, wait: ViewWait | None = None, /
    ) -> SnapshotSession: ...


class ViewOpener(Protocol):
    """Opens a consistent view of now. `wait` may be called where the source lets it wait; what it raises is raised here,
    and nothing is left at the source then. `after`: as in `ControlOpener`."""

    def __call__(
        self, params: Any, name: str, wait: ViewWait | None = None, after: Position | None = None, /
    ) -> SnapshotSession: ...


class ControlOpener(Protocol):
    """Makes a `LogControl`. `after`: a position that the stream has reached; the positions that are told are in one order with
    it, also where the stream has gone on at another server."""

    def __call__(self, params: Any, name: str, after: Position | None = None, /) -> LogControl: ...


@dataclass(frozen=True, slots=True)
class SnapshotPoint:
    """A consistent view of the source: `token` opens it in other sessions while its holder lives; changes with a commit
    `position` lower than `position.value` are inside."""

    token: str
    position: Position


class SnapshotSession(Closing, Protocol):
    """Holds a consistent view open (CORRECTNESS 16). `create` of a first snapshot also makes the log's start."""

    @property
    def point(self) -> SnapshotPoint: ...

    def is_alive(self) -> bool:
        """Whether the view can still be used."""
        ...

    def plan(self, table: TableSchema, *, rows_per_chunk: int) -> list[Chunk]:
        """Disjoint chunks that cover the table in this view."""
        ...


@runtime_checkable
class ResumableSession(SnapshotSession, Protocol):
    """A session whose chunks stay good in a later one, so that a snapshot that was cut off can go on."""

    def layout(self, table: TableSchema) -> str:
        """Text that stays the same while the table's chunks stay good in later views: a row that no transaction touched is
        in the same chunk of the same plan. Empty where that can't be promised."""
        ...

    def keyed_chunk(self, table: TableSchema, number: int, keys: pa.Table) -> Chunk:
        """A chunk of the rows with these keys; `keys` has the key's columns, a thousand rows at most."""
        ...


@runtime_checkable
class OwnViewSession(SnapshotSession, Protocol):
    """A session whose chunks are read while rows change, but that can read single tables in a view of their own."""

    def point_of(self, table: TableSchema, *, is_exact: bool) -> SnapshotPoint:
        """The point that the chunks of the table's next plan belong to. `is_exact`: every row as it was right there; so it is
        for a table without a key too."""
        ...


class ChunkReader(Protocol):
    """Reads one chunk, inside a Spark task. Picklable by reference: made from params and the point's token."""

    def __call__(self, chunk: Chunk, schema: TableSchema) -> Iterator[pa.RecordBatch]:
        """Batches with `schema.arrow_schema()`, at most some tens of MB each."""
        ...


class RowReader(Closing, Protocol):
    """Reads rows by key as they are now: the last resort for values that the log did not carry (CORRECTNESS 9)."""

    def read(self, table: TableSchema, keys: pa.Table) -> tuple[pa.Table, int]:
        """Those of the rows that are there, with `table.arrow_schema()`, in any order, and a log position: whatever the
        rows show was committed at or before it. `keys` has the key's columns; few thousand rows at most."""
        ...


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where in the log something without rows is: its `_sequence`, when it was committed (microseconds), and its position."""

    sequence: int
    committed_at: int
    position: int


@dataclass(frozen=True, slots=True)
class DecodedTable:
    """The changes of one table, of one version of its shape, in one segment. `shape_at`: a statement changed the shape there; told
    without rows, so that the copy follows though none may ever come."""

    schema: TableSchema
    version: str
    changes: pa.Table
    counts: OpCounts
    shape_at: LogPlace | None = None


@dataclass(frozen=True, slots=True)
class Poison:
    """A table whose bytes can't be decoded: the others of the segment are not touched. `position`: where in the log what
    happened begins; a copy made after it has that in it (0: not known)."""

    table: TableId
    offset: int
    code: str
    facts: dict[str, str] = field(default_factory=dict)
    position: int = 0


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Rows of a table that the segment's head does not name: nothing of them is decoded. `native_id`: the source's own number of the
    table (`TableSchema.native_id`); `position`: the highest position of their transactions."""

    native_id: int
    rows: int
    position: int


class LogDecoder(Protocol):
    """Pure: the same head and body give the same rows and numbers. Runs inside a Spark task; imports no Django."""

    def __call__(
        self, head: dict[str, Any], body: Any, segment: int
    ) -> Iterator[DecodedTable | Poison | PassedOver]:
        """Decode a raw segment's body (a uint8 buffer of [u32 length][message]) column-wise. `head["context"]` is the
        `LogBlock.context` of its first block, `head["tables"]` the frozen selection (`TableSchema.to_json`)."""
        ...


@dataclass(frozen=True, slots=True)
class SourcePlugin:
    """A source's light descriptor: every callable imports its driver inside.

    `decoder` and `chunk_reader` are called in Spark tasks and so are named by dotted path. `setup` is given raw params, also
    half-filled ones, and tells what to do at the source beforehand. `objects` gives kind and name of everything a replicator
    of that slot name makes at the source, and a delete removes. `keeps_values`: of a source that tells `SchemaStep`s, whether a
    conversion from one column to another, by a statement with that type's text, leaves every value as it is; `shape_at`: a
    description by the catalog as rows would tell it at a position, the log being captured up to another (None: they don't fit).
    `places`: the hosts and files that the params lead to, so that they are judged before anything is opened.
    """

    name: str
    label: str
    summary: str
    params: type
    capabilities: SourceCapabilities
    catalog: Callable[[Any], Catalog]
    checks: Callable[[Any], Checks]
    log_reader: Callable[[Any, str], LogReader]
    log_control: ControlOpener
    snapshot_first: FirstViewOpener
    snapshot_again: ViewOpener
    chunk_reader: str
    decoder: str
    translate: Callable[[BaseException], Exception]
    setup: Callable[[Mapping[str, Any]], tuple[SetupStep, ...]] = no_setup
    row_reader: Callable[[Any], RowReader] | None = None
    objects: Callable[[str], list[tuple[str, str]]] = lambda name: []
    keeps_values: Callable[[Column, Column, str], bool] | None = None
    shape_at: Callable[[TableSchema, Position, int], TableSchema | None] | None = None
    places: Callable[[Any], tuple[Place, ...]] = lambda _: ()
    icon: str = "database"
    is_hidden: bool = False

    @property
    def task_modules(self) -> tuple[str, ...]:
        """The modules of what is called in Spark tasks."""
        paths = (self.decoder, self.chunk_reader)
        return tuple(path.partition(":")[0] for path in paths if path)
