"""What a target gives that keeps changes for those who ask for them: its files, and how they are
read, joined and removed. The program's web process and a task use it; both run beside the run that
writes. It knows no Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from replicators.connectors.model.schema import TableId, TableSchema


@dataclass(frozen=True, slots=True)
class KeptTable:
    """A generation of a table: `replicator` is the owner's id."""

    source: TableId
    replicator: str
    generation: int


@dataclass(frozen=True, slots=True)
class Part:
    """A file with rows of one schema. Of changes, it has every row with `first` <= `_sequence` <=
    `last` that the target took. `committed_at` and `ended_at`: the first and the last commit time
    of its rows (seconds since the epoch)."""

    path: str
    first: int
    last: int
    rows: int
    size_bytes: int
    committed_at: float
    ended_at: float


@dataclass(frozen=True, slots=True)
class Kept:
    """What is there of a generation. `copy` has the rows as they were at the sequence `base`.
    `changes` has every change after `base`, in order; no two parts overlap. `has_copy` False: the
    rows at `base` are not kept."""

    base: int
    copy: tuple[Part, ...]
    changes: tuple[Part, ...]
    has_copy: bool = True

    @property
    def size_bytes(self) -> int:
        """The size of all changes."""
        return sum(p.size_bytes for p in self.changes)


@dataclass(frozen=True, slots=True)
class KeepLimits:
    """How long changes wait for the slowest subscriber, and how many bytes of a table."""

    seconds: float
    size_bytes: int


class PulledFeed(Protocol):
    """The files of a `ChangeSink`. A part that is listed may be removed by `keep` meanwhile; list
    again then. Errors are OSError."""

    @property
    def limits(self) -> KeepLimits:
        """What people set."""
        ...

    def kept(self, table: KeptTable, upto: int) -> Kept | None:
        """What is there, of changes up to the sequence `upto`, which the program has recorded. None
        where the table is not there or belongs to somebody else."""
        ...

    def read(self, part: Part) -> tuple[TableSchema, Iterator[pa.RecordBatch]]:
        """The schema of a part, and its rows with `changes.change_schema`."""
        ...

    def join(self, table: KeptTable, parts: Iterable[Part]) -> None:
        """Make one part of neighbouring parts; parts of different schemas stay apart."""
        ...

    def copy_file(
        self, table: KeptTable, base: int, number: int, schema: TableSchema,
        rows: Iterable[pa.RecordBatch],
    ) -> None:  # fmt: skip
        """Write a file of a new copy at the sequence `base`. It counts once `copy_done` says so."""
        ...

    def copy_done(self, table: KeptTable, base: int, *, has_rows: bool) -> None:
        """From now on the table's copy is the one at `base`. Older changes and copies are
        removed."""
        ...
