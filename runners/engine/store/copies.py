"""What the store remembers of a snapshot in progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from replicators.connectors.model.schema import TableId, TableSchema


@dataclass(frozen=True, slots=True)
class CopyChunk:
    """A chunk of a snapshot: the source's `Chunk.spec`; once it is done, also the file and its
    number of rows."""

    number: int
    spec: Any
    rows_estimated: int = 0
    path: str = ""
    rows: int = 0
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class CopyRow:
    """A keyed table's snapshot in progress, so that a later run can resume it. `position` is the
    first consistent snapshot's, `segment` the last segment before it, `layout` the source's word
    for where rows lie, `folder` where the files are."""

    table: TableId
    generation: int
    schema: TableSchema
    layout: str
    position: int
    segment: int
    folder: str
    chunks: tuple[CopyChunk, ...]

    def marked(self, done: Sequence[CopyChunk]) -> CopyRow:
        """The copy with exactly these chunks done."""
        by_number = {c.number: c for c in done}
        chunks = (by_number.get(c.number, replace(c, is_done=False)) for c in self.chunks)
        return replace(self, chunks=tuple(chunks))


class Copies(Protocol):
    """The part of the store that remembers snapshots in progress."""

    def copy_begun(self, copy: CopyRow) -> None:
        """Remember a snapshot. It replaces what was remembered for the table."""
        ...

    def copy_done(self, table: TableId, chunks: Sequence[CopyChunk]) -> None:
        """Chunks of the remembered snapshot are done: their files are durable."""
        ...

    def copy(self, table: TableId) -> CopyRow | None:
        """The table's snapshot in progress."""
        ...

    def copy_forget(self, table: TableId) -> None:
        """Forget the table's snapshot: it can't be resumed. Idempotent."""
        ...


class MemoryCopies:
    """The twin in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._copies: dict[TableId, CopyRow] = {}
        super().__init__()

    def _write(self) -> None:
        raise NotImplementedError

    def copy_begun(self, copy: CopyRow) -> None:
        self._write()
        self._copies[copy.table] = copy

    def copy_done(self, table: TableId, chunks: Sequence[CopyChunk]) -> None:
        self._write()
        copy = self._copies[table]
        self._copies[table] = copy.marked([*(c for c in copy.chunks if c.is_done), *chunks])

    def copy(self, table: TableId) -> CopyRow | None:
        return self._copies.get(table)

    def copy_forget(self, table: TableId) -> None:
        self._write()
        self._copies.pop(table, None)
