"""What a store lists of the change log: its raw segments and its change files."""

from __future__ import annotations

from dataclasses import dataclass, replace

from replicators.connectors.model.changes import OpCounts
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """A sealed raw segment. `position` is the end of the last transaction that was complete at its
    seal. `is_closed`: the segment ends at a transaction's end. `crc32` and `size_bytes` are of the
    whole file."""

    number: int
    path: str
    size_bytes: int
    crc32: int
    position: Position
    is_closed: bool
    messages: int = 0
    is_decoded: bool = False
    sealed_at: float = 0.0

    def ended(self, start: Position) -> SegmentRow:
        """The segment once the log has begun again at `start`. Its own positions belong to a log
        that was lost."""
        return self if self.position.ordinal <= start.ordinal else replace(self, position=start)


@dataclass(frozen=True, slots=True)
class ChangeFileRow:
    """A change file: one table and one schema version of one segment. `faults`: the number of rows
    with unsupported values."""

    table: TableId
    segment: int
    path: str
    version: str
    schema: TableSchema
    counts: OpCounts
    first_sequence: int
    last_sequence: int
    first_committed_at: float
    last_committed_at: float
    first_position: int
    last_position: int
    size_bytes: int
    crc32: int
    unsent: tuple[str, ...] = ()
    has_key_changes: bool = False
    faults: int = 0
