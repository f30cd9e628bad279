"""Merges of all tables in one commit of the target (CORRECTNESS 35): a group of tables goes from
one end of a source's transaction to a later one, and readers of the target see nothing between.

One call of `merge` is one step of the group. Each table's changes up to the same end are folded and
loaded. Then one commit applies all of them with their tokens, and each table is recorded. A table
whose fault it is fails alone, and the step is done again without it. A table that is behind the
group (it was copied, or it failed before) takes part as soon as one batch brings it to the group's
end. Until then it merges by itself, up to the group's end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from replicators.connectors.model.changes import last_sequence, segment_of
from replicators.connectors.model.modes import RESUMABLE
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.message import Retry
from replicators.connectors.together import MergesTogether, ReadyMerge
from runners.engine import failpoints
from runners.engine.apply.merge import Folded, Merger, is_behind
from runners.engine.changelog.backlog import Backlog
from runners.engine.changelog.frontier import Frontier
from runners.engine.errors import RETRY_LAST_SECONDS
from runners.engine.fold.filtering import undecided_keys
from runners.engine.store.protocol import (
    ChangeFileRow,
    Store,
    TableRow,
    TableState,
    has_log_after,
    is_live,
)
from runners.engine.store.target_table import target_table

logger = logging.getLogger("replicator.together")

MOST_SECONDS = 30.0
"""The longest time that all tables wait because none of them could be merged."""
SLACK_SECONDS = 1.0
"""Tables that failed together are tried again together: their next tries are about this far
apart."""

Guard = Callable[[TableRow, str, Callable[[TableRow], None]], bool]
"""Runs a table's step. A fault becomes the table's state. Returns whether there was none."""


@dataclass(eq=False, slots=True)
class Part:
    """A table in one step of the group. `upto`: where its next batch by itself would end."""

    row: TableRow
    files: Sequence[ChangeFileRow] = ()
    upto: int = 0
    folded: Folded | None = None

    def has_until(self, sequence: int) -> bool:
        """Whether it has changes up to there."""
        return bool(self.files) and self.files[0].first_sequence <= sequence


@dataclass(frozen=True, slots=True)
class Step:
    """What a step did. `parts`: the tables that are well, with what is merged of them. `is_cut`:
    the step ended before other changes that were there already."""

    parts: list[Part] = field(default_factory=list)
    is_cut: bool = False


def is_due_again(row: TableRow, now: float) -> bool:
    """Whether a failing table's next try is due. A time further away than any wait was set by a
    clock that has been set back since."""
    return row.retry_at is not None and not 0 < row.retry_at - now <= RETRY_LAST_SECONDS


class Together:
    """The group. The scheduler starts at most one `merge` at a time. `extend` gives a step the time
    that so many rows take."""

    def __init__(
        self,
        *,
        merger: Merger,
        writer: MergesTogether,
        store: Store,
        backlog: Backlog,
        replicator: str,
        guard: Guard,
        extend: Callable[[int], None],
        threads: int,
    ) -> None:
        self._merger = merger
        self._writer = writer
        self._store = store
        self._backlog = backlog
        self._replicator = replicator
        self._guard = guard
        self._extend = extend
        self._pool = ThreadPoolExecutor(threads, "together")
        self._alone: set[TableId] = set()
        self._resumes_at = 0.0
        merged = (r.merged_sequence for r in store.tables() if r.state is TableState.REPLICATING)
        self._end = segment_of(max(merged, default=0))
        self.skips = False

    def close(self) -> None:
        """End its threads."""
        self._pool.shutdown()

    # --- the loop ---
    def has_place(self, row: TableRow) -> bool:
        """Whether the table takes part in the next step. A failing table does once its next try is
        due."""
        if row.id in self._alone or not (is_live(row) and row.is_snapshot_done):
            return False
        if row.is_resync_asked or row.is_outdated:
            return False
        if row.state is TableState.FAILING:
            return is_due_again(row, time.time() + SLACK_SECONDS)
        return row.state is TableState.REPLICATING

    def has_work(self, row: TableRow) -> bool:
        """Whether the table is a reason for a step."""
        if not self.has_place(row):
            return False
        if row.state is TableState.FAILING:
            return is_due_again(row, time.time())
        return row.is_replay_asked or self._backlog.oldest(row.id) is not None

    @property
    def is_waiting(self) -> bool:
        """Whether the group failed as a whole, and is not tried again yet."""
        return 0 < self._resumes_at - time.time() <= MOST_SECONDS

    def is_alone(self, table: TableId) -> bool:
        """Whether the table merges by itself, up to the group's end."""
        return table in self._alone

    def limit(self) -> Frontier:
        """Up to where a table merges by itself."""
        reached = self._backlog.frontier
        if reached.segment <= self._end:
            return reached
        return Frontier(self._end, tuple(n for n in reached.closed if n <= self._end))

    def caught_up(self, table: TableId) -> None:
        """A merge of the table by itself ended: it may take part again."""
        self._alone.discard(table)

    # --- a step, in a job ---
    def merge(self, rows: Sequence[TableRow]) -> Step:
        """One step of the group of these tables."""
        reached = self._backlog.frontier
        parts = [part for row in rows if (part := self._look(row, reached)) is not None]
        busy = [part for part in parts if part.files]
        if busy:
            first = min(busy, key=lambda part: part.files[0].first_sequence)
            reached = self._merger.with_ends(first.files, reached)
        level = [p for p in busy if not p.has_until(last_sequence(self._end))] or busy
        most = min((p.upto for p in level), default=reached.sequence)
        ends = (n for n in (*reached.closed, reached.segment) if last_sequence(n) <= most)
        end = max(ends, default=0)
        if busy and not any(p.has_until(last_sequence(end)) for p in busy):
            return Step(self._split([p for p in level if p.upto == most], reached), is_cut=True)
        limit = Frontier(end, tuple(n for n in reached.closed if n <= end))
        self._alone |= {
            p.row.id for p in busy if p.has_until(limit.sequence) and p.upto < limit.sequence
        }
        parts = [p for p in parts if p.row.id not in self._alone]
        failed = self._merge_to(parts, limit)
        well = [p for p in parts if p not in failed]
        if self.skips:
            self.skips = False
            idle = [p.row for p in well if not p.files and not p.row.is_replay_asked]
            behind = [row.id for row in idle if is_behind(row, limit)]
            self._store.record_skipped(behind, limit.sequence)
        return Step(well, is_cut=end < reached.segment)

    def _look(self, row: TableRow, reached: Frontier) -> Part | None:
        """What the table has to merge; None where that can't be known."""
        if self._backlog.oldest(row.id) is None and row.state is TableState.REPLICATING:
            return Part(row)
        found: list[Part] = []

        def look(row: TableRow) -> None:
            if row.state is TableState.FAILING:
                if not has_log_after(self._store, row.merged_sequence):
                    raise ReplicationError("log:table-pruned", table=row.id)
                self._merger.recover(row)
                row = self._store.table(row.id)
            files = self._merger.pending(row, reached)
            upto = self._merger.batch_end(files, reached) if files else 0
            found.append(Part(row, files, upto))

        return found[0] if self._guard(row, "look", look) else None

    def _split(self, parts: Sequence[Part], reached: Frontier) -> list[Part]:
        """A transaction of the source changed a table's rows before and after it changed its
        columns. The rows before are merged by themselves: no batch holds both."""
        return [p for p in parts if self._merge_alone(p, p.files, reached)]

    def _merge_alone(self, part: Part, files: Sequence[ChangeFileRow], limit: Frontier) -> bool:
        def merge(row: TableRow) -> None:
            self._merger.merge(row, files, limit)

        return self._guard(part.row, "merge", merge)

    def _merge_to(self, parts: Sequence[Part], limit: Frontier) -> set[Part]:
        """Merge the tables to the end `limit`. Returns those that failed."""
        taking = [p for p in parts if p.has_until(limit.sequence) or p.row.is_replay_asked]
        self._extend(sum(f.counts.rows for p in taking for f in self._files(p, limit)))
        folded = list(self._pool.map(lambda part: self._fold(part, limit), taking))
        failed = {p for p, is_well in zip(taking, folded, strict=True) if not is_well}
        ready = [p for p in taking if p not in failed and p.folded is not None]
        beside = [p for p in ready if p.folded and undecided_keys(p.folded.batch) is not None]
        try:
            merged, more = self._commit([p for p in ready if p not in beside], failed)
            for part in merged:
                assert part.folded is not None
                self._merger.needed_no_source(part.row)
                self._merger.record(part.folded)
        finally:
            for part in ready:
                if part.folded is not None:
                    part.folded.remove()
        if merged or not taking:
            self._end = max(self._end, limit.segment)
        for part in (*beside, *more):
            if not self._merge_alone(part, self._files(part, limit), limit):
                failed.add(part)
        if failed and not merged:
            self._wait(failed)
        return failed

    def _wait(self, failed: set[Part]) -> None:
        """Nothing was merged. Where that may pass, as when the target does not answer, the group
        goes on as a whole once all of these tables are tried again."""
        rows = [self._store.table(part.row.id) for part in failed]
        codes = {row.error_code for row in rows}
        if all(code and ReplicationError(code).retry is Retry.AUTO for code in codes):
            again = max(row.retry_at or 0.0 for row in rows)
            self._resumes_at = min(again, time.time() + MOST_SECONDS)

    @staticmethod
    def _files(part: Part, limit: Frontier) -> list[ChangeFileRow]:
        return [f for f in part.files if f.segment <= limit.segment]

    def _fold(self, part: Part, limit: Frontier) -> bool:
        def fold(row: TableRow) -> None:
            part.folded = self._merger.folded(row, self._files(part, limit), limit)

        return self._guard(part.row, "fold", fold)

    def _commit(
        self, parts: Sequence[Part], failed: set[Part]
    ) -> tuple[Sequence[Part], Sequence[Part]]:
        """One commit of the tables. Where it fails by a fault that may be gone at once, it is tried
        once more. Then the tables whose fault it is are left out, and fail. Returns the tables that
        were merged, and those that need rows of the source, so that they merge by themselves."""
        left, more, is_again = list(parts), list[Part](), False
        while left:
            faults = self._try(left)
            if not faults:
                failpoints.hit("target_merged")
                return left, more
            is_passing = all(_is_passing(err) for err in faults.values())
            if is_passing and not is_again:
                is_again = True
                logger.info("The merge of %d tables is tried once more.", len(left))
                continue
            left = [p for p in left if p not in faults]
            for part, err in faults.items():
                if _lacks_row(err) and part.row.mode in RESUMABLE:
                    more.append(part)
                else:
                    self._guard(part.row, "merge", _raising(err))
                    failed.add(part)
        return [], more

    def _try(self, parts: Sequence[Part]) -> dict[Part, Exception]:
        """Load and commit. Returns the faults by table; all tables have it where it is none of
        theirs."""
        self._extend(2 * sum(p.folded.batch.rows for p in parts if p.folded))
        found = list(self._pool.map(self._ready, parts))
        faults = {p: f for p, f in zip(parts, found, strict=True) if isinstance(f, Exception)}
        if faults:
            return faults
        try:
            merges = [f for f in found if isinstance(f, ReadyMerge)]
            if merges:
                self._writer.merge_together(merges)
        except Exception as err:  # noqa: BLE001 - each table's guard says what it means
            table = err.table if isinstance(err, ReplicationError) else None
            return {p: err for p in parts if p.row.id == table} or dict.fromkeys(parts, err)
        return {}

    def _ready(self, part: Part) -> ReadyMerge | Exception | None:
        assert part.folded is not None
        try:
            return self._writer.ready(target_table(self._replicator, part.row), part.folded.batch)
        except Exception as err:  # noqa: BLE001 - the caller decides
            return err


def _is_passing(err: Exception) -> bool:
    return isinstance(err, ReplicationError) and err.retry is Retry.AUTO


def _lacks_row(err: Exception) -> bool:
    return isinstance(err, ReplicationError) and err.code == "target:row-missing"


def _raising(err: Exception) -> Callable[[TableRow], None]:
    def fail(_: TableRow) -> None:
        raise err

    return fail
