"""Rounds: tables merge independently, but meet at one commit sequence, and a watermark is published
there (CORRECTNESS 31).

A round begins with the decode frontier of that moment as its end. A table that has work merges
first to exactly that end and reports its version there. A table without work is there already. Then
each table merges past it: no table waits for another, since the version is known. When all tables
are there, one row publishes the versions. A round leaves out a table that fails, and a table that
takes too long. Later rounds wait for the slow table again once it has passed the end that it
missed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from replicators.connectors.model.changes import last_sequence
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import Watermarked
from runners.engine import failpoints
from runners.engine.changelog.backlog import Backlog
from runners.engine.changelog.frontier import Frontier
from runners.engine.idle import OWN, Idle
from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import Store, TableRow, TableState, is_live
from runners.engine.store.target_table import target_table
from runners.engine.store.watermarks import Watermark

logger = logging.getLogger("replicator.rounds")

PATIENCE_SECONDS = 30.0
VERSIONS_A_TURN = 32
"""How many tables without work are asked for their version in one turn. The limit keeps thousands
of them from queueing ahead of merges."""
BEHIND = "behind"
QUARANTINED = "rows quarantined"


@dataclass
class Round:
    """A round in progress: its end, and which tables have not reached it."""

    segment: int
    position: Position
    committed_at: float
    opened_at: float
    opened_on_clock: float
    awaited: set[TableId] = field(default_factory=set)
    versions: dict[TableId, str] = field(default_factory=dict)

    @property
    def sequence(self) -> int:
        """The sequence that tables merge to."""
        return last_sequence(self.segment)


def cut(reached: Frontier, segment: int) -> Frontier:
    """The frontier, cut off after `segment`."""
    if reached.segment <= segment:
        return reached
    return Frontier(segment, tuple(n for n in reached.closed if n <= segment))


class TableRounds(Protocol):
    """The part of the rounds that a table's jobs call."""

    def limit(self, table: TableId) -> tuple[Frontier, bool]: ...
    def arrive(self, row: TableRow) -> None: ...
    def give_up(self, table: TableId) -> None: ...
    def changed(self, table: TableId) -> None: ...
    def copied(self, table: TableId) -> None: ...
    def turn(
        self,
        rows: Sequence[TableRow],
        busy: Container[TableId],
        start: Callable[[TableRow], None],
    ) -> Watermark | None: ...


class NoRounds:
    """For a target without versions to name: each table merges as far as it can, and no watermark
    is published."""

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog

    def limit(self, table: TableId) -> tuple[Frontier, bool]:
        """The decode frontier."""
        return self._backlog.frontier, False

    def arrive(self, row: TableRow) -> None:
        """Nobody waits for the table."""

    def give_up(self, table: TableId) -> None:
        """The same."""

    def changed(self, table: TableId) -> None:
        """There is no version."""

    def copied(self, table: TableId) -> None:
        """The same."""

    def turn(
        self,
        rows: Sequence[TableRow],
        busy: Container[TableId],
        start: Callable[[TableRow], None],
    ) -> Watermark | None:
        """Nothing to begin."""
        return None


class Rounds:
    """Thread safe. The loop calls `turn`; each table's job calls `limit` before a merge and
    `arrive` after it. `known_until`: the source's time until which everything committed is decoded;
    None before the first heartbeat."""

    def __init__(
        self,
        *,
        store: Store,
        writer: Watermarked,
        backlog: Backlog,
        settings: RunnerSettings,
        replicator: str,
        has_pending: Callable[[TableRow, Frontier], bool],
        known_until: Callable[[], float | None],
        publish: Callable[[Watermark], None] = lambda _: None,
        source_now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        idle: Idle = OWN,
    ) -> None:
        self._same_seconds = settings.round_seconds * idle.round
        self._store = store
        self._writer = writer
        self._backlog = backlog
        self._settings = settings
        self._replicator = replicator
        self._has_pending = has_pending
        self._known_until = known_until
        self._publish_at_target = publish
        self._source_now = source_now
        self._clock = clock
        self._lock = threading.RLock()
        self._round: Round | None = None
        self._opened_at = clock()
        self._last = (-1, 0.0)
        self._begun_at = source_now()
        self._copied_at: dict[TableId, float] = {}
        self._known: dict[TableId, tuple[int, int, str]] = {}
        self._missed: dict[TableId, int] = {}

    # --- the table's job ---
    def limit(self, table: TableId) -> tuple[Frontier, bool]:
        """Up to where the table may merge now, and whether that is before the frontier. It is the
        round's end while the round waits for the table, and otherwise the frontier."""
        with self._lock:
            reached = self._backlog.frontier
            if self._round is None or table not in self._round.awaited:
                return reached, False
            limited = cut(reached, self._round.segment)
            return limited, limited is not reached

    def arrive(self, row: TableRow) -> None:
        """Call it after a merge, from the table's job. If the table is at the round's end now, its
        version is noted. `row` is fresh."""
        with self._lock:
            now = self._round
            if now is None or row.id not in now.awaited:
                return
        end = Frontier(now.segment, ())
        if not is_healthy(row):
            self.give_up(row.id)
        elif row.merged_sequence >= now.sequence or not self._has_pending(row, end):
            self._note(row, now)

    def _note(self, row: TableRow, now: Round) -> None:
        """Note the table's version now. It is not noted where the target's token is not what we
        merged last."""
        try:
            found = self._writer.version(target_table(self._replicator, row))
        except ReplicationError as err:
            logger.warning("The version could not be read: %s", err, extra={"table": str(row.id)})
            found = None
        token = found.token if found else None
        is_ours = token is not None and (
            (token.replicator, token.generation, token.sequence)
            == (self._replicator, row.generation, row.token_sequence)
        )
        with self._lock:
            if found is None or not is_ours:
                now.awaited.discard(row.id)
                return
            self._known[row.id] = (row.generation, row.token_sequence, found.version)
            if self._round is now:
                self._enter(now, row.id, found.version)

    def give_up(self, table: TableId) -> None:
        """The table can't stop at the round's end: this round leaves it out."""
        with self._lock:
            if self._round is not None and table in self._round.awaited:
                self._missed[table] = self._round.sequence
                self._round.awaited.discard(table)

    def changed(self, table: TableId) -> None:
        """The target's table gets another version with the same rows (maintenance)."""
        with self._lock:
            self._known.pop(table, None)

    def copied(self, table: TableId) -> None:
        """The table was copied just now: it holds what was committed until then, so it fits only
        rounds that end later."""
        with self._lock:
            self._known.pop(table, None)
            self._copied_at[table] = self._source_now()

    @staticmethod
    def _enter(now: Round, table: TableId, version: str) -> None:
        if table in now.awaited:
            now.awaited.discard(table)
            now.versions[table] = version

    # --- the loop ---
    def turn(
        self,
        rows: Sequence[TableRow],
        busy: Container[TableId],
        start: Callable[[TableRow], None],
    ) -> Watermark | None:
        """Begin, continue or end a round. Returns the watermark that was published. `start` begins
        the job that notes the version of a table without work."""
        with self._lock:
            if self._round is None:
                self._round, rows = self._begin(rows)
            if self._round is None:
                return None
            self._look(self._round, rows, busy, start)
            is_over = self._clock() - self._round.opened_on_clock >= PATIENCE_SECONDS
            if self._round.awaited and not is_over:
                return None
            ended, self._round = self._round, None
            self._missed.update(dict.fromkeys(ended.awaited, ended.sequence))
        return self._publish(ended, rows)

    def _begin(self, rows: Sequence[TableRow]) -> tuple[Round | None, Sequence[TableRow]]:
        """A round if one is due, and the tables, read after the round's end is known: decoding
        reports a table's faults before the frontier moves past them."""
        now = self._clock()
        known = self._known_until()
        since = now - self._opened_at
        if since < self._settings.round_seconds or known is None:
            return None, rows
        if since < self._same_seconds and self._are_same(rows):
            return None, rows
        last, committed_at = self._backlog.end()
        committed_at = max(known, committed_at)
        if last is None or (last.number, committed_at) == self._last:
            return None, rows
        self._opened_at = now
        self._last = (last.number, committed_at)
        rows = self._store.tables()
        made = Round(last.number, last.position, committed_at, time.time(), now)
        made.awaited = {r.id for r in rows if self._takes_part(r, known)}
        return (made if made.awaited else None), rows

    def _are_same(self, rows: Sequence[TableRow]) -> bool:
        """Whether no table has work or another version than the last round named."""
        return all(
            self._backlog.oldest(row.id) is None
            and self._known.get(row.id, ())[:2] == (row.generation, row.token_sequence)
            for row in rows
            if is_healthy(row)
        )

    def _takes_part(self, row: TableRow, known: float) -> bool:
        missed = self._missed.get(row.id)
        if missed is not None and row.merged_sequence >= missed:
            self._missed.pop(row.id)
            missed = None
        copied_at = self._copied_at.get(row.id, self._begun_at)
        return is_healthy(row) and missed is None and known >= copied_at

    def _look(
        self,
        now: Round,
        rows: Sequence[TableRow],
        busy: Container[TableId],
        start: Callable[[TableRow], None],
    ) -> None:
        by_id = {r.id: r for r in rows if r.id in now.awaited}
        starts = VERSIONS_A_TURN
        for table in list(now.awaited):
            row = by_id.get(table)
            if row is None or not is_healthy(row):
                now.awaited.discard(table)
            elif table in busy or self._backlog.oldest(table) is not None:
                continue
            elif self._known.get(table, ())[:2] == (row.generation, row.token_sequence):
                self._enter(now, table, self._known[table][2])
            elif starts:
                starts -= 1
                start(row)

    def _publish(self, ended: Round, rows: Sequence[TableRow]) -> Watermark | None:
        live = {r.id for r in rows if is_live(r)}
        versions = {t: v for t, v in ended.versions.items() if t in live}
        if not versions:
            return None
        left_out = {r.id: self._why(r) for r in rows if r.id in live and r.id not in versions}
        made = Watermark(
            ended.sequence,
            ended.position,
            ended.committed_at,
            ended.opened_at + self._writer.history_seconds,
            versions,
            left_out,
        )
        failpoints.hit("round_ended")
        self._store.record_watermark(made)
        self._publish_at_target(made)
        return made

    def _why(self, row: TableRow) -> str:
        if row.rows_quarantined and row.state is TableState.REPLICATING:
            return QUARANTINED
        return BEHIND if is_healthy(row) else str(row.state)


def is_healthy(row: TableRow) -> bool:
    """Whether a round may wait for the table. A table with quarantined rows lacks something at
    every moment."""
    return (
        is_live(row)
        and not row.rows_quarantined
        and row.state is TableState.REPLICATING
        and row.is_snapshot_done
        and not row.is_resync_asked
    )
