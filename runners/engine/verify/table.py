"""Compares one table: read both sides, compare their hashes bucket by bucket, and look again at the
rows that differ."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from replicators.connectors import files
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.reading import CurrentRows, ReadsRows
from runners.engine.job import Job
from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import TableRow
from runners.engine.store.target_table import target_table
from runners.engine.verify import reading
from runners.engine.verify.comparable import Scope, scope
from runners.engine.verify.following import Captured, Followed, Follower, Stopped
from runners.engine.verify.hashing import KEY_SEED, hashes
from runners.engine.verify.pairs import Part, Plan, buckets_for, distinct, from_ipc
from runners.engine.verify.reading import KeyedLookup, ScanLookup, Source, Tools, target_lookup
from runners.engine.verify.report import (
    Kind,
    Listener,
    Options,
    Outcome,
    Step,
    TableProgress,
    TableReport,
)
from runners.engine.verify.settle import Odd, Pending, Settled, settle

logger = logging.getLogger("replicator.verify")

NEWEST = (1 << 62) - 1
Opened = Callable[[], AbstractContextManager[Source]]


@dataclass(frozen=True, slots=True)
class Work:
    """What comparing needs. `opened` opens a consistent snapshot of the source. `now` gives the end
    of the source's log, and makes an idle stream move on. `folder`: for pair files."""

    job: Job
    followed: Followed
    target: ReadsRows
    tools: Tools
    settings: RunnerSettings
    options: Options
    listener: Listener
    folder: str
    opened: Opened
    now: Callable[[], int]


@dataclass(slots=True)
class _State:
    """What is known of the table so far."""

    row: TableRow
    scope: Scope
    rows: int = 0
    estimate: int | None = None
    step: Step = Step.WAIT
    read_seconds: float = 0.0
    compared_seconds: float = 0.0
    report: dict[str, Any] = field(default_factory=dict)


def verify_table(work: Work, row: TableRow) -> TableReport:
    """Compare the table. An error ends its report, not the others'."""
    began = time.time()
    report = TableReport(
        row.id, Outcome.EQUAL, began, began, generation=row.generation, mode=str(row.mode)
    )
    try:
        found = scope(row, work.job.target)
    except ReplicationError as err:
        return _ended(report, Outcome.NOT_COMPARED, err)
    state = _State(row, found)
    report = replace(report, left_out=found.left_out, notes=found.notes)
    try:
        done = replace(_TableVerifier(work, state).verify(report), ended_at=time.time())
        logger.info(
            "Compared %d rows in %.1f s (reading %.1f s, comparing hashes %.1f s): %s.",
            done.rows_source,
            done.ended_at - began,
            state.read_seconds,
            state.compared_seconds,
            done.outcome,
            extra={"table": str(row.id)},
        )
        return done
    except Stopped:
        return _ended(replace(report, **state.report), Outcome.STOPPED)
    except ReplicationError as err:
        logger.warning("%s", err.message.text, extra={"table": str(row.id)}, exc_info=True)
        return _ended(replace(report, **state.report), Outcome.FAILED, err)
    except Exception as err:
        logger.exception("Unexpected error.", extra={"table": str(row.id)})
        facts = {"name_of_error": type(err).__name__}
        return replace(
            _ended(replace(report, **state.report), Outcome.FAILED),
            code="internal:unexpected",
            facts=facts,
        )


def _ended(
    report: TableReport, outcome: Outcome, err: ReplicationError | None = None
) -> TableReport:
    report = replace(report, outcome=outcome, ended_at=time.time())
    return report if err is None else replace(report, code=err.code, facts=dict(err.facts))


class _TableVerifier:
    """One table's comparison."""

    def __init__(self, work: Work, state: _State) -> None:
        self._work = work = replace(work, tools=replace(work.tools, on_turn=self._tell))
        self._state = state
        self._row = state.row
        self._follower = Follower(
            work.followed,
            state.row,
            seconds=work.options.wait_seconds + 2 * work.settings.merge_seconds,
            should_stop=work.listener.should_stop,
            nudge=self._nudge,
            on_wait=self._tell,
        )

    def _nudge(self) -> None:
        self._work.now()

    def _tell(self, step: Step | None = None) -> None:
        state = self._state
        state.step = step or state.step
        now = TableProgress(self._row.id, state.step, state.rows, state.estimate)
        self._work.listener.progress(now)

    @contextmanager
    def _current(self) -> Iterator[CurrentRows]:
        table = target_table(self._work.job.replicator, self._row)
        with self._work.target.open_rows(table, self._state.scope.schema) as rows:
            yield rows

    def verify(self, report: TableReport) -> TableReport:
        """Read, compare, and look again."""
        self._tell(Step.WAIT)
        since = self._work.followed.captured()
        with ExitStack() as stack:
            plan, parts = self._read(stack.enter_context(self._work.opened()), stack)
        pending, count = self._candidates(plan, *parts)
        self._remove_files(parts)
        ours = parts[0]
        held = [from_ipc(p.held) for p in ours if p.held]
        pending, waiting = self._without_quarantined(pending, plan, held)
        self._state.report["quarantined"] = waiting
        checked = len(pending)
        if not checked:
            self._follower.now()
            return replace(report, **self._state.report)
        pending = pending.where(np.arange(checked) < self._work.options.checked)
        settled = self._settled(pending, plan, since)
        is_more = count - waiting > len(pending)
        return self._concluded(report, settled, plan, is_more=is_more)

    # --- reading ---------------------------------------------------------------------------------
    def _read(self, source: Source, stack: ExitStack) -> tuple[Plan, tuple[list[Part], list[Part]]]:
        """Both sides, side by side: the target at or past the snapshot's position."""
        work, state = self._work, self._state
        draft = Plan(state.scope.schema, state.scope.columns, state.scope.schema.key, "", 1, 0)
        position = source.position(draft)
        chunks = source.chunks(
            draft, work.tools.throttle.rows_a_chunk(work.settings.rows_per_chunk)
        )
        state.estimate = sum(c.rows_estimated for c in chunks) or None
        plan = replace(
            draft,
            folder=work.folder,
            buckets=buckets_for(state.estimate or 0),
            limit=work.options.checked,
        )
        sequence = self._caught_up(position)
        state.report |= {"position": position, "sequence": sequence}
        self._tell(Step.READ)
        began = time.monotonic()
        with self._current() as rows:
            pool = ThreadPoolExecutor(1, "verify-target")
            try:
                theirs = pool.submit(reading.read_target, work.tools, plan, rows)
                ours = reading.read_source(
                    source, stack, work.opened, work.tools, plan, chunks, self._on_part
                )
                found = work.tools.result(theirs)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
        state.read_seconds = time.monotonic() - began
        state.report["rows_target"] = sum(p.rows for p in found)
        return plan, (ours, found)

    def _caught_up(self, position: int) -> int:
        """Wait until the target has everything up to there, and return up to which sequence it is
        merged. A paused replicator's target stays where it is."""
        try:
            return self._follower.wait(position).merged_sequence
        except ReplicationError as err:
            if err.code != "verify:paused":
                raise
            return self._follower.now().merged_sequence

    def _on_part(self, part: Part) -> None:
        state = self._state
        state.rows += part.rows
        if state.estimate is not None:
            state.estimate = max(state.estimate, state.rows)
        state.report["rows_source"] = state.rows
        state.report["bytes_source"] = state.report.get("bytes_source", 0) + part.size_bytes
        self._tell()

    # --- comparing -------------------------------------------------------------------------------
    def _candidates(self, plan: Plan, ours: list[Part], theirs: list[Part]) -> tuple[Pending, int]:
        """The rows that differ, and how many there are."""
        self._tell(Step.COMPARE)
        began = time.monotonic()
        found = reading.compare(self._work.tools, plan, ours, theirs)
        self._state.compared_seconds = time.monotonic() - began
        if not plan.key:
            rows, count = reading.hashes_of(found, plan.limit)
            return Pending(rows, None), count
        keys = [plan.keys.empty_table(), *(from_ipc(c.keys) for c in found if c.keys)]
        return Pending.of_keys(pa.concat_tables(keys), plan), sum(c.count for c in found)

    def _remove_files(self, parts: tuple[list[Part], list[Part]]) -> None:
        files.remove_all([path for side in parts for part in side for path in part.paths])

    def _without_quarantined(
        self, pending: Pending, plan: Plan, held: list[pa.Table]
    ) -> tuple[Pending, int]:
        """The rows that do not wait in the quarantine, and how many do."""
        if not plan.key:
            return pending, 0
        row = self._row
        images = self._work.followed.quarantined(row.id, row.generation, NEWEST)
        for image in (pa.ipc.open_stream(q.image).read_all() for q in images):
            if all(n in image.column_names for n in plan.key):
                held = [*held, image.select(list(plan.key))]
        if not held:
            return pending, 0
        keys = distinct(pa.concat_tables([k.cast(plan.keys) for k in held]))
        out = [hashes(b, list(plan.key), KEY_SEED) for b in keys.to_batches()]
        return pending.where(~np.isin(pending.hashes, np.concatenate(out))), keys.num_rows

    # --- looking again ---------------------------------------------------------------------------
    def _settled(self, pending: Pending, plan: Plan, since: Captured) -> Settled:
        work = self._work
        reader = work.job.row_reader(work.job.verify_slot, work.followed.position)
        look = (
            KeyedLookup(reader, work.tools, plan)
            if plan.key and reader is not None
            else ScanLookup(
                work.opened,
                work.tools,
                plan,
                work.tools.throttle.rows_a_chunk(work.settings.rows_per_chunk),
                work.now,
            )
        )
        return settle(
            pending,
            plan,
            followed=work.followed,
            follower=self._follower,
            since=since,
            rounds=work.options.rounds,
            read_source=look,
            read_target=target_lookup(self._current, work.tools, plan),
            on_round=lambda: self._tell(Step.CHECK),
        )

    def _concluded(
        self, report: TableReport, settled: Settled, plan: Plan, *, is_more: bool
    ) -> TableReport:
        kinds, most = self._state.scope.kinds, self._work.options.listed
        wrong = [found.of(kinds) for found in settled.wrong]
        left = settled.open.of(kinds) if settled.open is not None else None
        counts = {kind: sum(found.count(kind) for found in wrong) for kind in Kind}
        listed = [d for found in wrong for d in found.listed(most, plan)][:most]
        opened = len(left.pending) if left is not None else 0
        outcome = Outcome.DIFFERENT if sum(counts.values()) else Outcome.EQUAL
        if outcome is Outcome.EQUAL and (opened or is_more):
            outcome = Outcome.UNSETTLED
        error = settled.error
        return replace(
            report,
            **self._state.report,
            outcome=outcome,
            missing=counts[Kind.MISSING],
            extra=counts[Kind.EXTRA],
            different=counts[Kind.DIFFERENT],
            unsettled=opened,
            is_more=is_more,
            differences=tuple(listed),
            undecided=_listed(left, most, plan),
            code=error.code if error is not None and opened else "",
            facts=dict(error.facts) if error is not None and opened else {},
        )


def _listed(left: Odd | None, most: int, plan: Plan) -> tuple[Any, ...]:
    return left.listed(most, plan) if left is not None else ()
