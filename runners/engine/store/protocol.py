"""What the engine must remember, as a protocol, and its in-memory twin for tests.

Every write is one transaction. It is refused with `run:lease-lost` once another run holds the
lease. Progress never moves back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

from replicators.connectors.model.changes import OpCounts, segment_of
from replicators.connectors.model.modes import KEEPS_PAST, QUARANTINE, RESUMABLE, Mode, mode_for
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import MergeCost
from runners.engine.store.copies import Copies, MemoryCopies
from runners.engine.store.deliveries import Deliveries, MemoryDeliveries
from runners.engine.store.events import Events, MemoryEvents
from runners.engine.store.log_rows import ChangeFileRow as ChangeFileRow
from runners.engine.store.log_rows import SegmentRow as SegmentRow
from runners.engine.store.quarantine import MemoryQuarantine, Quarantine
from runners.engine.store.repairs import MemoryRepairs, Repairs
from runners.engine.store.table_states import EVENTS_STATE as EVENTS_STATE
from runners.engine.store.table_states import TableState as TableState
from runners.engine.store.table_states import is_heard, is_lasting
from runners.engine.store.watermarks import MemoryWatermarks, Watermarks


class Desire(StrEnum):
    """What a person asks of the run."""

    RUN = "run"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class TableRow:
    """A table's progress. `generation` counts the copies that were begun: each has rows and a token
    of its own.

    `merged_sequence`: everything up to it is in the target, or there was nothing to merge.
    `token_sequence`: what the target's own token said after our last commit. `snapshot_position`:
    changes committed before it came by snapshot. `schema` is the target's schema now; versions of
    the target up to `schema_sequence` have another one (0: none).

    What people ask for: `is_chosen` (false: the table is to be removed, and the target's table too
    where `is_drop_asked`), `columns`, `excluded` and `filter` as in `TableSelection`,
    `is_resync_asked`, `rewind_to` (a time in seconds since the epoch), `is_replay_asked` (try
    quarantined rows again), `mode_asked` and `unsupported` (the table's own or the replicator's).

    `mode` is the one that the copy was made in. `failures` counts failures in a row;
    `failing_seconds` is the time spent on them; `is_given_up`: the retry time is used up.
    `starts_after`: the table is not copied; its changes begin after this sequence, with `schema`,
    at `snapshot_position` (None: it is copied).
    `resolved_at`: the last `Resolved.at` of this generation that was recorded for a `ChangeSink`,
    or when its snapshot was read. `spent`: what the table used of the target's budget, by hour.
    """

    id: TableId
    state: TableState = TableState.WAITING
    generation: int = 0
    schema: TableSchema | None = None
    table_uuid: str = ""
    merged_sequence: int = 0
    token_sequence: int = 0
    snapshot_position: int = 0
    starts_after: int | None = None
    schema_sequence: int = 0
    is_snapshot_done: bool = False
    error_code: str = ""
    error_facts: dict[str, str] = field(default_factory=dict)
    retry_at: float | None = None
    failures: int = 0
    failing_seconds: float = 0.0
    is_given_up: bool = False
    is_resync_asked: bool = False
    rewind_to: float | None = None
    is_chosen: bool = True
    is_drop_asked: bool = False
    columns: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    filter: str = ""
    mode: Mode = Mode.MIRROR
    mode_asked: Mode = Mode.MIRROR
    is_replay_asked: bool = False
    rows_quarantined: int = 0
    unsupported: str = "stop"
    resolved_at: float = 0.0
    spent: Mapping[str, int] = field(default_factory=dict)

    @property
    def quarantines(self) -> bool:
        """Whether a row with an unsupported value is quarantined; otherwise the table stops. Only
        modes where the last image of a row is all that counts quarantine: a history would lack the
        quarantined changes. A table without a key does not, since quarantined rows are known by
        their key. Nor does one that leaves inserts out: a quarantined row would be no row of the
        copy."""
        has_place = self.mode in QUARANTINE and (self.schema is None or bool(self.schema.key))
        return self.unsupported == "quarantine" and has_place and not self.leaves_inserts_out

    @property
    def leaves_inserts_out(self) -> bool:
        """Whether the copy keeps only the rows of its snapshot up to date."""
        return "inserts" in self.excluded

    @property
    def keeps_past(self) -> bool:
        """Whether a fresh copy would hold other rows than the present copy must hold. Then only a
        person may ask for one."""
        return self.mode in KEEPS_PAST or self.leaves_inserts_out

    @property
    def needs_exact(self) -> bool:
        """Whether the snapshot has to be of one moment, and may not go on in a later consistent
        snapshot (CORRECTNESS 17, 19). Otherwise chance would decide whether a row that was moved or
        inserted meanwhile counts as one of the snapshot's."""
        return self.mode_asked not in RESUMABLE or self.leaves_inserts_out

    @property
    def selection(self) -> TableSelection:
        """What is copied of the table, if it is chosen."""
        return TableSelection(self.id, self.columns, self.excluded, filter=self.filter)

    @property
    def is_outdated(self) -> bool:
        """Whether the copy was made in another mode or with another row filter than people ask for
        now. Only a fresh copy mends that."""
        if not self.is_snapshot_done or self.schema is None:
            return False
        mode = mode_for(self.mode_asked, self.schema)
        return mode is not self.mode or self.schema.filter != self.filter


@dataclass(frozen=True, slots=True)
class Memory:
    """What a run starts from. `last_segment` is the highest number ever used."""

    position: Position | None
    last_segment: int
    tables: tuple[TableRow, ...]


@dataclass(frozen=True, slots=True)
class TableMetrics:
    """A table's metrics for the pages; lag is None while it is not known."""

    lag_seconds: float | None
    unmerged_since: float | None
    backlog_bytes: int = 0


class Store(Copies, Deliveries, Events, Quarantine, Repairs, Watermarks, Protocol):
    """The engine's memory. All writes carry the lease."""

    def memory(self) -> Memory: ...

    def desire(self) -> Desire:
        """What is asked of this run now."""
        ...

    def renew(self, until: float) -> None:
        """Renew the lease until that time (seconds since the epoch). `run:lease-lost` where another
        run holds it."""
        ...

    # capture
    def record_start(self, position: Position) -> None:
        """Where the log starts, or starts again after its position was lost. Segments of the lost
        log may have higher positions. From now on they end at this position, so that no copy takes
        their changes for later ones."""
        ...

    def record_segment(
        self, segment: SegmentRow, position: Position, files: Sequence[ChangeFileRow] = ()
    ) -> None:
        """Step 2 of the order of writes: segment row and captured position in one transaction.
        `files`: the change files of a segment that is already decoded, listed in the same
        transaction."""
        ...

    def record_position(self, position: Position) -> None:
        """A position without rows (keepalive), before it is acknowledged."""
        ...

    def segments(self) -> list[SegmentRow]:
        """All segments that are kept, by number."""
        ...

    def discard_segments(self, numbers: Sequence[int]) -> list[str]:
        """Forget segments (an open transaction cut by a crash) and their change files. Returns the
        paths of these files. The segments' numbers stay used."""
        ...

    # decode
    def record_decoded(self, numbers: Sequence[int], files: Sequence[ChangeFileRow]) -> None:
        """Step 4: files listed and segments marked, in one transaction."""
        ...

    def change_files(self, table: TableId, *, after: int, upto: int) -> list[ChangeFileRow]:
        """The table's files with `after` < last_sequence and first_sequence <= `upto`, by
        sequence."""
        ...

    # tables
    def tables(self) -> list[TableRow]:
        """Every table that was ever chosen. People may add tables and ask for removals during the
        run."""
        ...

    def table(self, table: TableId) -> TableRow:
        """One table as it is now, without reading the others. KeyError for a table that was never
        chosen."""
        ...

    def table_event(self, table: TableId, event: str, **changes: Any) -> TableRow:
        """The one door for a table's state: `event` of `runners.states.TABLE_TRANSITIONS`, with
        other fields of `TableRow` to change. A compare-and-set with an event row in the same
        transaction."""
        ...

    def table_progress(self, table: TableId, **changes: Any) -> None:
        """Change fields other than the state."""
        ...

    def record_snapshot_rows(self, table: TableId, rows: int, total: int | None) -> None:
        """`rows` rows are copied, of about `total`. None: the earlier estimate holds."""
        ...

    def record_estimates(self, rows: Mapping[TableId, int]) -> None:
        """About how many rows each table has that waits for its copy."""
        ...

    def record_merged(
        self, table: TableId, sequence: int, token: int | None, counts: OpCounts
    ) -> None:
        """Step 6; `token` None: nothing was written to the target."""
        ...

    def record_cost(self, table: TableId, cost: MergeCost) -> None:
        """What the table's last merge cost, for the pages."""
        ...

    def record_resolved(self, resolved: Mapping[TableId, float]) -> None:
        """Each table's `resolved_at`, where it moves forward, in one transaction."""
        ...

    def record_skipped(self, tables: Sequence[TableId], sequence: int) -> None:
        """These tables have no unmerged changes up to `sequence`: they count as merged, and nothing
        was written for that."""
        ...

    def record_metrics(self, metrics: dict[TableId, TableMetrics], facts: dict[str, Any]) -> None:
        """Record metrics for the pages and `TableMetric` rows. `facts`: log bytes, retained bytes,
        hours left, state words."""
        ...

    # pruning
    def drop_changes(self, table: TableId) -> list[str]:
        """Forget all change files of a table. Returns their paths."""
        ...

    def prunable(self, *, older_than: float) -> tuple[list[SegmentRow], list[ChangeFileRow]]:
        """The first segments (a portion of them) that were sealed before that time and that every
        table which needs them has merged, with their change files. A table that can only go on
        after a re-sync needs none: `needs_log`."""
        ...

    def forget(self, segments: Sequence[int]) -> None:
        """Drop the rows of pruned segments and their change files."""
        ...

    def log(self, level: str, text: str, table: TableId | None = None) -> None: ...


# The fields, beside the state, that a table resets when it is to be copied afresh.
FRESH: dict[str, Any] = {
    "is_resync_asked": False,
    "starts_after": None,
    "rewind_to": None,
    "is_snapshot_done": False,
    "retry_at": None,
    "failures": 0,
    "failing_seconds": 0.0,
    "is_given_up": False,
}


def needs_log(row: TableRow) -> bool:
    """Whether the change log must keep what the table has not merged. False where only a re-sync
    can help the table. A table that waits for its copy may get it in a consistent snapshot that is
    open already, so it needs the log."""
    if row.state is TableState.FAILING:
        has_log = row.is_snapshot_done or row.starts_after is not None
        return (row.retry_at is not None or row.is_given_up) and has_log
    return row.state is not TableState.REMOVED


def has_log_after(store: Store, sequence: int) -> bool:
    """Whether every segment with rows after that sequence is still listed. The sequence may lie
    within a segment."""
    following = store.memory().last_segment + 1  # read first: a segment may be recorded meanwhile
    lowest = min((s.number for s in store.segments()), default=following)
    return lowest <= max(1, segment_of(sequence + 1))


def is_copied(store: Store, table: TableId) -> bool:
    """Whether the copy that is being made is still wanted. False where the table failed meanwhile,
    or is no longer copied."""
    row = store.table(table)
    return is_live(row) and row.state is TableState.SNAPSHOTTING


def is_live(row: TableRow) -> bool:
    """Whether the table is copied: it is chosen, and was not removed before."""
    return row.is_chosen and row.state is not TableState.REMOVED


def chosen(store: Store) -> tuple[TableSelection, ...]:
    """What the replicator is asked to copy now."""
    return tuple(r.selection for r in store.tables() if r.is_chosen)


class MemoryStore(
    MemoryCopies,
    MemoryDeliveries,
    MemoryEvents,
    MemoryQuarantine,
    MemoryRepairs,
    MemoryWatermarks,
):
    """The in-memory twin for tests of the engine: the same promises, kept in a dict. `lost` makes
    every write fail with lease-lost."""

    def __init__(self, tables: Sequence[TableId] = ()) -> None:
        self._position: Position | None = None
        self._segments: dict[int, SegmentRow] = {}
        self._last = 0
        self._files: list[ChangeFileRow] = []
        self._tables: dict[TableId, TableRow] = {t: TableRow(t) for t in tables}
        super().__init__()
        self.counts: dict[TableId, OpCounts] = {}
        self.costs: dict[TableId, MergeCost] = {}
        self.events: list[tuple[TableId, str]] = []
        self.estimates: dict[TableId, int] = {}
        self.lines: list[tuple[str, str, TableId | None]] = []
        self.metrics: dict[TableId, TableMetrics] = {}
        self.asked = Desire.RUN
        self.lost = False

    def _write(self) -> None:
        if self.lost:
            raise ReplicationError("run:lease-lost")

    def memory(self) -> Memory:
        return Memory(self._position, self._last, tuple(self._tables.values()))

    def desire(self) -> Desire:
        return self.asked

    def renew(self, until: float) -> None:
        self._write()

    def record_start(self, position: Position) -> None:
        self._write()
        self._position = position
        self._segments = {n: s.ended(position) for n, s in self._segments.items()}

    def record_segment(
        self, segment: SegmentRow, position: Position, files: Sequence[ChangeFileRow] = ()
    ) -> None:
        self._write()
        if segment.number <= self._last:
            raise ValueError(f"segment number {segment.number} was used before")
        self._segments[segment.number] = segment
        self._last = segment.number
        self._files += files
        self.record_position(position)

    def record_position(self, position: Position) -> None:
        self._write()
        if self._position is None or position.ordinal > self._position.ordinal:
            self._position = position

    def segments(self) -> list[SegmentRow]:
        return [self._segments[n] for n in sorted(self._segments)]

    def discard_segments(self, numbers: Sequence[int]) -> list[str]:
        self._write()
        paths = [f.path for f in self._files if f.segment in set(numbers)]
        self.forget(numbers)
        return paths

    def record_decoded(self, numbers: Sequence[int], files: Sequence[ChangeFileRow]) -> None:
        self._write()
        self._files = [f for f in self._files if f.segment not in set(numbers)] + list(files)
        for n in numbers:
            self._segments[n] = replace(self._segments[n], is_decoded=True)

    def change_files(self, table: TableId, *, after: int, upto: int) -> list[ChangeFileRow]:
        found = [
            f
            for f in self._files
            if f.table == table and f.last_sequence > after and f.first_sequence <= upto
        ]
        return sorted(found, key=lambda f: f.first_sequence)

    def tables(self) -> list[TableRow]:
        return list(self._tables.values())

    def table(self, table: TableId) -> TableRow:
        return self._tables[table]

    def table_event(self, table: TableId, event: str, **changes: Any) -> TableRow:
        self._write()
        now, state = self._tables[table], EVENTS_STATE[event]
        changes.setdefault("is_given_up", False)
        given_up, reported = changes["is_given_up"], changes.get("error_code", "")
        lasts = is_lasting(now.error_code, now.retry_at, is_given_up=now.is_given_up)
        if now.state is TableState.FAILING and lasts:
            if not is_heard(event, reported, changes.get("retry_at"), is_given_up=given_up):
                return now
            if event == "table_rewound":
                state = TableState.FAILING
        self._tables[table] = replace(now, state=state, **changes)
        self.events.append((table, event))
        return self._tables[table]

    def table_progress(self, table: TableId, **changes: Any) -> None:
        self._write()
        self._tables[table] = replace(self._tables[table], **changes)

    def record_snapshot_rows(self, table: TableId, rows: int, total: int | None) -> None:
        self._write()

    def record_estimates(self, rows: Mapping[TableId, int]) -> None:
        self._write()
        self.estimates = dict(rows)

    def record_merged(
        self, table: TableId, sequence: int, token: int | None, counts: OpCounts
    ) -> None:
        self._write()
        row = self._tables[table]
        self._tables[table] = replace(
            row,
            merged_sequence=max(sequence, row.merged_sequence),
            token_sequence=row.token_sequence if token is None else token,
        )
        self.counts[table] = self.counts.get(table, OpCounts()) + counts

    def record_cost(self, table: TableId, cost: MergeCost) -> None:
        self._write()
        self.costs[table] = cost

    def record_resolved(self, resolved: Mapping[TableId, float]) -> None:
        self._write()
        for table, at in resolved.items():
            row = self._tables[table]
            self._tables[table] = replace(row, resolved_at=max(at, row.resolved_at))

    def record_skipped(self, tables: Sequence[TableId], sequence: int) -> None:
        for table in tables:
            self.record_merged(table, sequence, None, OpCounts())

    def record_metrics(self, metrics: dict[TableId, TableMetrics], facts: dict[str, Any]) -> None:
        self.metrics.update(metrics)

    def drop_changes(self, table: TableId) -> list[str]:
        self._write()
        gone = [f.path for f in self._files if f.table == table]
        self._files = [f for f in self._files if f.table != table]
        return gone

    def prunable(self, *, older_than: float) -> tuple[list[SegmentRow], list[ChangeFileRow]]:
        merged = min(
            (t.merged_sequence for t in self._tables.values() if needs_log(t)), default=1 << 62
        )
        done = [
            s
            for s in self.segments()
            if s.is_decoded
            and s.sealed_at < older_than
            and ((s.number << 32) | 0xFFFFFFFF) <= merged
        ]
        numbers = {s.number for s in done}
        return done, [f for f in self._files if f.segment in numbers]

    def forget(self, segments: Sequence[int]) -> None:
        self._write()
        gone = set(segments)
        self._segments = {n: s for n, s in self._segments.items() if n not in gone}
        self._files = [f for f in self._files if f.segment not in gone]

    def log(self, level: str, text: str, table: TableId | None = None) -> None:
        self.lines.append((level, text, table))
