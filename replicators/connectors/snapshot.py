"""How a source is copied: consistent snapshots of its tables, and their chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from replicators.connectors.closing import Closing
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.params import P_contra


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a table, read by one task. `spec` says which part, in the plugin's own form, as
    plain JSON: a text, numbers, lists. The engine keeps `spec` and hands it to the `ChunkReader`,
    and never looks into it."""

    table: TableId
    number: int
    spec: Any
    rows_estimated: int = 0


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction at the source for which a consistent snapshot, or the stream's tables, must
    wait. `pid` is its process there (0: a prepared transaction, known by `name`). `age_seconds`:
    how long it has been open. `query_seconds`: how long ago its last query began. `application` is
    that of its session. `lock` is the lock that is waited for, if it is a lock."""

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


class SnapshotWait(Protocol):
    """Called about once a second while a consistent snapshot, or a table's lock, can't be had yet.
    It raises in order to give up."""

    def __call__(self, waited_seconds: float, holders: Sequence[OpenTransaction], /) -> None: ...


R_contra = TypeVar("R_contra", contravariant=True)


class FirstSnapshotOpener(Protocol[R_contra, P_contra]):
    """Decides where the source's changes begin for this replicator, and opens the consistent
    snapshot of that place. `reader` is of the source's kind, prepared and not started. It waits as
    `SnapshotOpener` does."""

    def __call__(
        self, params: P_contra, name: str, reader: R_contra, wait: SnapshotWait | None = None, /
    ) -> SnapshotSession: ...


class SnapshotOpener(Protocol[P_contra]):
    """Opens a consistent snapshot of now. `wait` may be called while the source makes it wait. An
    exception of `wait` is raised here too, and then nothing is left at the source. `after`: as in
    `ControlOpener`."""

    def __call__(
        self,
        params: P_contra,
        name: str,
        wait: SnapshotWait | None = None,
        after: Position | None = None,
        /,
    ) -> SnapshotSession: ...


@dataclass(frozen=True, slots=True)
class SnapshotPoint:
    """A consistent snapshot of the source. `token` opens it in other sessions while its holder
    lives. It contains the changes with a commit position lower than `position.ordinal`."""

    token: str
    position: Position


class SnapshotSession(Closing, Protocol):
    """Holds a consistent snapshot open (CORRECTNESS 16). `create` of a first snapshot also makes
    the log's start."""

    @property
    def point(self) -> SnapshotPoint: ...

    def is_alive(self) -> bool:
        """Whether the consistent snapshot can still be used."""
        ...

    def plan(self, table: TableSchema, *, rows_per_chunk: int) -> list[Chunk]:
        """Disjoint chunks that cover the table in this consistent snapshot."""
        ...


@runtime_checkable
class ResumableSession(SnapshotSession, Protocol):
    """A session whose chunks stay good in a later session, so that an interrupted snapshot can go
    on."""

    def layout(self, table: TableSchema) -> str:
        """A text that stays the same while the table's chunks stay good in later consistent
        snapshots: a row that no transaction touched is in the same chunk of the same plan. Empty
        where the source can't promise that."""
        ...

    def keyed_chunk(self, table: TableSchema, number: int, keys: pa.Table) -> Chunk:
        """A chunk of the rows with these keys. `keys` has the key's columns, and at most a thousand
        rows."""
        ...


@runtime_checkable
class OwnSnapshotSession(SnapshotSession, Protocol):
    """A session whose chunks are read while rows change. It can also read single tables in a
    consistent snapshot of their own."""

    def point_of(self, table: TableSchema, *, is_exact: bool) -> SnapshotPoint:
        """The point that the chunks of the table's next plan belong to. `is_exact`: the chunks have
        every row exactly as it was at that point. This always holds for a table without a key."""
        ...


class ChunkReader(Protocol):
    """Reads one chunk, inside a Spark task. It is made from params and the point's token, and
    pickled by reference."""

    def __call__(self, chunk: Chunk, schema: TableSchema) -> Iterator[pa.RecordBatch]:
        """Batches with `schema.arrow_schema()`, at most some tens of MB each."""
        ...
