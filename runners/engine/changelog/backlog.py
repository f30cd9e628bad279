"""What is captured, decoded and not yet merged. It is kept in memory, so that the loop queries the
store only when something changed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId
from runners.engine.changelog.frontier import Frontier, frontier
from runners.engine.store.protocol import ChangeFileRow, SegmentRow

TRIM_PAST = 4096
OPEN = 1 << 62
"""Stands for the position of a segment that ends within a transaction: no consistent snapshot lies
behind it."""


class Backlog:
    """Thread safe. It holds the segments in order with their marks. If there are very many, it
    holds the last ones, and only the ends of the others. Per table it holds the commit time of the
    oldest unmerged change. `stirred` is set whenever something was decoded, and by the
    scheduler at the end of each job."""

    def __init__(self, segments: Sequence[SegmentRow], last_segment: int) -> None:
        self._lock = threading.Lock()
        self.stirred = threading.Event()
        self._segments: dict[int, SegmentRow] = {s.number: s for s in segments}
        self._decoded = {s.number for s in segments if s.is_decoded}
        self._ends: dict[int, int] = {}
        self._last = last_segment
        self._oldest: dict[TableId, float] = {}
        self._touched: dict[TableId, int] = {}
        self._bytes: dict[TableId, int] = {}
        self._committed: dict[int, float] = {}
        self._committed_at = 0.0
        self._frontier = self._reach()

    def sealed(self, row: SegmentRow, files: Sequence[ChangeFileRow] = ()) -> None:
        """A segment was recorded, with its change files where it is already decoded."""
        with self._lock:
            self._segments[row.number] = row
            if row.is_decoded:
                self._decode([row.number], files)

    def begun_again(self, start: Position) -> None:
        """The log starts at this position. Everything before belongs to a log that was lost."""
        with self._lock:
            self._segments = {n: s.ended(start) for n, s in self._segments.items()}
            self._ends = {n: min(e, start.ordinal) for n, e in self._ends.items()}

    def dropped(self, numbers: Iterable[int]) -> None:
        """Segments were discarded or pruned."""
        with self._lock:
            for number in numbers:
                self._segments.pop(number, None)
                self._ends.pop(number, None)
                self._decoded.discard(number)
                self._last = max(self._last, number)

    def undecoded(self, limit: int) -> list[SegmentRow]:
        """The first segments that wait for decoding."""
        with self._lock:
            waiting = [s for n, s in sorted(self._segments.items()) if n not in self._decoded]
        return waiting[:limit]

    def decoded(self, numbers: Sequence[int], files: Sequence[ChangeFileRow]) -> None:
        """Segments were decoded and their files listed."""
        with self._lock:
            self._decode(numbers, files)

    def _decode(self, numbers: Sequence[int], files: Sequence[ChangeFileRow]) -> None:
        self._decoded.update(numbers)
        for file in files:
            self._touched[file.table] = self._touched.get(file.table, 0) + 1
            self._bytes[file.table] = self._bytes.get(file.table, 0) + file.size_bytes
            at = self._oldest.get(file.table)
            self._oldest[file.table] = min(file.first_committed_at, at or file.first_committed_at)
            at = self._committed.get(file.segment, 0.0)
            self._committed[file.segment] = max(at, file.last_committed_at)
        self._frontier = self._reach()
        for number in [n for n in self._committed if n <= self._frontier.segment]:
            self._committed_at = max(self._committed_at, self._committed.pop(number))
        if len(self._segments) > TRIM_PAST:
            self._trim()
        self.stirred.set()

    def _reach(self) -> Frontier:
        rows = [(n, s.is_closed, n in self._decoded) for n, s in sorted(self._segments.items())]
        return frontier(rows, self._last)

    def _trim(self) -> None:
        keep = sorted(self._segments)[-TRIM_PAST // 2 :]
        edge = min(keep[0], self._frontier.segment)
        for number in [n for n in self._segments if n < edge]:
            row = self._segments.pop(number)
            self._ends[number] = row.position.ordinal if row.is_closed else OPEN
            self._decoded.discard(number)

    @property
    def frontier(self) -> Frontier:
        """Up to where merges may go."""
        return self._frontier

    def end(self) -> tuple[SegmentRow | None, float]:
        """The frontier's segment (None where it is no longer kept), and the last commit time that
        was seen up to it."""
        with self._lock:
            return self._segments.get(self._frontier.segment), self._committed_at

    def is_done(self, table: TableId, position: int, captured: int) -> bool:
        """Whether everything up to the log's `position` is decoded, and the table's part of it
        merged. `captured`: how far the log is captured; ask for it before this call."""
        with self._lock:
            if self._oldest.get(table) is not None:
                return False
            if len(self._segments) == len(self._decoded):
                return captured >= position
            last = self._segments.get(self._frontier.segment)
            return last is not None and last.position.ordinal >= position

    def last_before(self, position: int) -> int:
        """The last closed segment whose transactions all ended at or before `position`; 0 for
        none."""
        with self._lock:
            ends = self._ends | {
                n: s.position.ordinal for n, s in self._segments.items() if s.is_closed
            }
            lowest = min([*self._ends, *self._segments], default=self._last + 1)
        return max((n for n, end in ends.items() if end <= position), default=lowest - 1)

    def touched(self, table: TableId) -> int:
        """A number that changes whenever files of the table are listed. For `mark`: ask for it
        before you ask the store."""
        return self._touched.get(table, 0)

    def mark(self, table: TableId, unmerged: Sequence[ChangeFileRow], touched: int) -> None:
        """Note the table's unmerged files, as the store gave them after `touched` was asked.
        Changes nothing where files were listed since."""
        with self._lock:
            if self._touched.get(table, 0) != touched:
                return
            self._bytes[table] = sum(f.size_bytes for f in unmerged)
            if unmerged:
                self._oldest[table] = unmerged[0].first_committed_at
            else:
                self._oldest.pop(table, None)

    def oldest(self, table: TableId) -> float | None:
        """When the table's oldest unmerged change was committed at the source."""
        return self._oldest.get(table)

    def tables(self) -> set[TableId]:
        """The tables with unmerged changes."""
        with self._lock:
            return set(self._oldest)

    def size_bytes(self, table: TableId) -> int:
        """Bytes of the table's change files that are not merged."""
        return self._bytes.get(table, 0)

    @property
    def undecoded_bytes(self) -> int:
        """Bytes of the segments that wait for decoding."""
        with self._lock:
            waiting = self._segments.keys() - self._decoded
            return sum(self._segments[n].size_bytes for n in waiting)

    @property
    def waiting(self) -> int:
        """How many segments wait for decoding."""
        return len(self._segments) - len(self._decoded)
