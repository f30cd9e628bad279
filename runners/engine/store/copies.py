"""What is remembered of a snapshot that is going on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from replicators.connectors.model.schema import TableId, TableSchema


@dataclass(frozen=True, slots=True)
class CopyChunk:
    """A chunk of a snapshot: the source's `Chunk.spec` and, once it is done, the file and its
    rows."""

    number: int
    spec: Any
    rows_estimated: int = 0
    path: str = ""
    rows: int = 0
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class CopyRow:
    """A keyed table's snapshot that is going on, for a run that has to go on with it. `position` is
    the first view's, `segment` the last segment before it, `layout` the source's word for where
    rows lie, `folder` where the files are."""

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
    """The part of the store that remembers snapshots that are going on."""

    def copy_begun(self, copy: CopyRow) -> None:
        """Remember a snapshot in the place of what was remembered of the table's."""
        ...

    def copy_done(self, table: TableId, chunks: Sequence[CopyChunk]) -> None:
        """Chunks of the remembered snapshot are done: their files are durable."""
        ...

    def copy(self, table: TableId) -> CopyRow | None:
        """The table's snapshot that is going on."""
        ...

    def copy_forget(self, table: TableId) -> None:
        """Nothing can be gone on with; idempotent."""
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
