"""How a source is copied: consistent views of its tables, and their chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from replicators.connectors.closing import Closing
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a table, read by one task. `spec` says which part, in the plugin's own words, as
    plain JSON: a text, numbers, lists. The engine keeps it and hands it to the `ChunkReader`, and
    never looks into it."""

    table: TableId
    number: int
    spec: Any
    rows_estimated: int = 0


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction at the source that a consistent view, or the stream's tables, have to wait for:
    its process there (0: a prepared one, known by `name`), how long it has been open, and how long
    ago its last query began; the `application` of its session, and the `lock` that is waited for,
    where it is that."""

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
    """Hears about once a second that a view, or a table's lock, can't be had yet; gives up by
    raising."""

    def __call__(self, waited_seconds: float, holders: Sequence[OpenTransaction], /) -> None: ...


R_contra = TypeVar("R_contra", contravariant=True)


class FirstSnapshotOpener(Protocol[R_contra]):
    """Decides where the source's changes begin for this replicator, and opens the view that belongs
    to that place. `reader` is the kind's own, prepared and not started. It waits as
    `SnapshotOpener` does."""

    def __call__(
        self, params: Any, name: str, reader: R_contra, wait: SnapshotWait | None = None, /
    ) -> SnapshotSession: ...


class SnapshotOpener(Protocol):
    """Opens a consistent view of now. `wait` may be called where the source lets it wait; what it
    raises is raised here, and nothing is left at the source then. `after`: as in
    `ControlOpener`."""

    def __call__(
        self,
        params: Any,
        name: str,
        wait: SnapshotWait | None = None,
        after: Position | None = None,
        /,
    ) -> SnapshotSession: ...


@dataclass(frozen=True, slots=True)
class SnapshotPoint:
    """A consistent view of the source: `token` opens it in other sessions while its holder lives;
    changes with a commit position lower than `position.ordinal` are inside."""

    token: str
    position: Position


class SnapshotSession(Closing, Protocol):
    """Holds a consistent view open (CORRECTNESS 16). `create` of a first snapshot also makes the
    log's start."""

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
    """A session whose chunks stay good in a later one, so that a snapshot that was cut off can go
    on."""

    def layout(self, table: TableSchema) -> str:
        """Text that stays the same while the table's chunks stay good in later views: a row that no
        transaction touched is in the same chunk of the same plan. Empty where that can't be
        promised."""
        ...

    def keyed_chunk(self, table: TableSchema, number: int, keys: pa.Table) -> Chunk:
        """A chunk of the rows with these keys; `keys` has the key's columns, a thousand rows at
        most."""
        ...


@runtime_checkable
class OwnSnapshotSession(SnapshotSession, Protocol):
    """A session whose chunks are read while rows change, but that can read single tables in a view
    of their own."""

    def point_of(self, table: TableSchema, *, is_exact: bool) -> SnapshotPoint:
        """The point that the chunks of the table's next plan belong to. `is_exact`: every row as it
        was right there; so it is for a table without a key too."""
        ...


class ChunkReader(Protocol):
    """Reads one chunk, inside a Spark task. Picklable by reference: made from params and the
    point's token."""

    def __call__(self, chunk: Chunk, schema: TableSchema) -> Iterator[pa.RecordBatch]:
        """Batches with `schema.arrow_schema()`, at most some tens of MB each."""
        ...
