"""Decides what to do next for each table: snapshot, merge, retry, re-sync, maintain. Each table has
one job at a time; a fault stops only its table."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from replicators.connectors.model.schema import TableId, TableSelection
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import Maintained, Resolved, Target
from replicators.connectors.together import MergesTogether
from runners.engine.apply.maintenance import Upkeep, ends_more, maintenance_text
from runners.engine.apply.merge import Applier, Merger, is_behind
from runners.engine.apply.repair import Repairer
from runners.engine.apply.resolve import Resolver
from runners.engine.apply.rewind import Rewinder
from runners.engine.apply.together import Together, is_due_again
from runners.engine.capture.stream import Streaming
from runners.engine.changelog.backlog import Backlog
from runners.engine.checkpoints.rounds import TableRounds
from runners.engine.decode.thread import Decoding
from runners.engine.errors import ends_run, fail_again
from runners.engine.pacing import Pacing
from runners.engine.schema.drift import SchemaDrift, SchemaDrifts
from runners.engine.schema.evolution import Evolver, ResyncDue
from runners.engine.schema.watch import Look
from runners.engine.settings import RunnerSettings
from runners.engine.snapshot.consistent import SnapshotSource
from runners.engine.snapshot.table import TableSnapshots, beginning
from runners.engine.store.protocol import (
    FRESH,
    Store,
    TableRow,
    TableState,
    has_log_after,
    is_live,
)
from runners.engine.store.target_table import target_table
from runners.engine.watchdog import Watchdog

logger = logging.getLogger("replicator.tables")
SKIP_SECONDS = 30.0
REMOVAL_SECONDS = 60.0
RESOLVED_A_JOB = 500
GROUP = TableId("", "")
"""Stands for all tables that merge together, where merges are paced."""
TOGETHER = "merge of all tables"


class Scheduler:
    """Schedules the tables' jobs on a few threads. `snapshots` gives the snapshotter of the present
    consistent snapshot with the described tables, its point and the sequence that its tables start
    at. `together`: the target, where all tables merge in one commit."""

    def __init__(
        self,
        *,
        store: Store,
        merger: Applier,
        writer: Target,
        backlog: Backlog,
        watchdog: Watchdog,
        settings: RunnerSettings,
        replicator: str,
        snapshots: SnapshotSource,
        decoding: Decoding,
        streaming: Streaming,
        evolver: Evolver,
        rounds: TableRounds,
        rewinder: Rewinder | None,
        resolver: Resolver | None = None,
        repairer: Repairer | None = None,
        together: MergesTogether | None = None,
        spared: Callable[[TableId], float] = lambda _: 0.0,
        drops_vanished: bool = False,
        is_spark_lost: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._merger = merger
        self._writer = writer
        self._backlog = backlog
        self._watchdog = watchdog
        self._settings = settings
        self._replicator = replicator
        self._snapshots = snapshots
        self._decoding = decoding
        self._streaming = streaming
        self._evolver = evolver
        self._drops_vanished = drops_vanished
        self._is_spark_lost = is_spark_lost
        self._drifts = SchemaDrifts(evolver, streaming.is_done)
        self._rounds = rounds
        self._rewinder = rewinder
        self._resolver = resolver
        self._repairer = repairer
        merges = isinstance(merger, Merger)  # a delivery costs the same in one or in several
        self._pacing = Pacing(
            backlog,
            settings.merge_seconds,
            spared,
            is_in_bulk=lambda: merges and streaming.is_in_bulk,
        )
        self._table_snapshots = TableSnapshots(
            store,
            snapshots,
            streaming,
            replicator,
            begin=beginning(writer),
            patience=settings.retry_seconds,
        )
        self._pool = ThreadPoolExecutor(settings.merge_parallel, "table")
        self._copies = ThreadPoolExecutor(1, "snapshot")
        self._busy: dict[TableId, Future[Any]] = {}
        self._upkeep = Upkeep(settings.maintain_every_commits)
        self._removals: dict[TableId, float] = {}
        self._quiet: dict[int, TableRow] = {}
        self._skipped_at = time.monotonic()
        self._together = self._group(together) if together is not None else None
        self._is_gathering = False

    def _group(self, writer: MergesTogether) -> Together:
        assert isinstance(self._merger, Merger)
        return Together(
            merger=self._merger,
            writer=writer,
            store=self._store,
            backlog=self._backlog,
            replicator=self._replicator,
            guard=self._guarded,
            extend=partial(self._watchdog.extend, TOGETHER),
            threads=self._settings.merge_parallel,
        )

    def turn(self) -> bool:
        """Look at every table once and start what is due. Returns whether any table waits for its
        copy or is being copied. Raises what must stop the run."""
        for table, future in list(self._busy.items()):
            if future.done():
                del self._busy[table]
                future.result()
        rows = self._store.tables()
        self._pacing.turn()
        restless = self._restless(rows)
        for row in restless:
            if row.id not in self._busy and not self._is_gathered(row):
                self._consider(row)
        if self._together is not None:
            self._gather(self._together, rows, restless)
        self._resolve_idle(rows)
        self._rounds.turn(rows, self._busy, self._note_version)
        if time.monotonic() - self._skipped_at > SKIP_SECONDS:
            self._skipped_at = time.monotonic()
            self._skip_idle(rows)
        copying = {TableState.WAITING, TableState.SNAPSHOTTING}
        return any(r.state in copying and r.is_chosen for r in restless)

    def _restless(self, rows: Sequence[TableRow]) -> list[TableRow]:
        """The tables that may have something to do. With thousands of idle tables, a turn must not
        look into each.

        The store gives the same object for a row that did not change. So a row that was quiet is
        still quiet.
        """
        stirred = self._backlog.tables() | self._drifts.tables() | self._upkeep.tables()
        if self._repairer is not None:
            stirred = stirred | self._repairer.look(rows)
        quiet = self._quiet
        if len(quiet) > 2 * len(rows):
            quiet.clear()
        found = []
        for row in rows:
            if id(row) not in quiet:
                if not is_quiet(row):
                    found.append(row)
                    continue
                quiet[id(row)] = row
            if stirred and row.id in stirred:
                found.append(row)
        return found

    def waits_for_jobs(self, *, is_copying: bool) -> bool:
        """Whether nothing can be started before something is decoded or a job ends: `Backlog` is
        stirred by both."""
        is_copied = not is_copying or bool(self._busy)
        return is_copied and self._backlog.tables() <= self._busy.keys()

    def see(self, look: Look) -> None:
        """A look into the source's catalog is done. The next turns do what it means for each
        table."""
        self._drifts.see(look)
        self._store.tables_appeared(look.appeared)

    def drain(self) -> None:
        """Wait for the running jobs; start no more."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._copies.shutdown(wait=True, cancel_futures=True)
        if self._together is not None:
            self._together.close()

    def _consider(self, row: TableRow) -> None:
        if not is_live(row):
            self._choose(row)
            return
        if row.is_resync_asked or row.is_outdated:
            self._start(row, "restart", self._restart_in_new_snapshot, self._pool)
            return
        if self._act_on_drift(row):
            return
        if self._backlog.size_bytes(row.id) > self._settings.table_limit_bytes:
            self._drop_backlog(row)
            return
        match row.state:
            case TableState.WAITING | TableState.SNAPSHOTTING:
                if self._table_snapshots.is_due(row.id):
                    self._start(row, "snapshot", self._snapshot, self._copies)
            case TableState.FAILING:
                self._retry(row)
            case TableState.REPLICATING:
                self._keep_up(row)
            case _:
                pass

    def _keep_up(self, row: TableRow) -> None:
        """What people asked for comes before merges. A repair waits now and then, and lets merges
        happen meanwhile."""
        if row.rewind_to is not None:
            self._start(row, "rewind", self._rewind, self._pool)
        elif self._repairer is not None and self._repairer.is_due(row):
            self._start(row, "repair", partial(self._repair, self._repairer), self._pool)
        else:
            self._merge_if_due(row)

    def _act_on_drift(self, row: TableRow) -> bool:
        drift = self._drifts.of(row)
        if drift is None:
            return False
        if drift.is_gone and self._drops_vanished and self._store.table_vanished(row.id):
            logger.info("The table is gone at the source.", extra={"table": str(row.id)})
        elif drift.error is not None and drift.is_refused:
            self._start(row, "withdrawal", partial(self._withdraw, drift.error), self._pool)
        elif drift.error is not None:
            self._fault(row, drift.error, time.time())
        elif drift.resync:
            self._evolver.resync(row, drift.resync)
        elif drift.called is not None:
            self._evolver.renamed(row, drift.called)
        elif drift.schema is not None:
            self._start(row, "schema change", partial(self._follow, drift), self._pool)
        return True

    def _follow(self, drift: SchemaDrift, row: TableRow) -> None:
        assert drift.schema is not None
        self._rounds.changed(row.id)
        self._merger.follow(row, drift.schema, drift.position)

    def _withdraw(self, err: ReplicationError, row: TableRow) -> None:
        self._streaming.withdraw(TableSelection(row.id), row.schema)
        raise err

    def _choose(self, row: TableRow) -> None:
        if row.is_chosen:
            self._restart(row, "table_added", schema=None)
        elif row.state is not TableState.REMOVED and time.monotonic() >= self._removals.get(
            row.id, 0
        ):
            self._removals[row.id] = time.monotonic() + REMOVAL_SECONDS
            self._start(row, "removal", self._remove, self._pool)

    def _drop_backlog(self, row: TableRow) -> None:
        """The table holds more of the change log than its share: it fails and its part is dropped,
        so that the others have space (CORRECTNESS 28)."""
        limit = f"{self._settings.table_limit_bytes >> 20} MiB"
        self._fail(row, ReplicationError("log:table-over-limit", table=row.id, limit=limit))
        self._decoding.drop(row.id)

    def _remove(self, row: TableRow) -> None:
        """The table is no longer chosen: it leaves the stream and the change log. The target's
        table is dropped only where a person asked for that. It is safe to run twice: a repeat after
        a crash changes nothing."""
        self._streaming.withdraw(TableSelection(row.id), row.schema)
        if row.is_drop_asked:
            self._writer.drop(target_table(self._replicator, row))
            self._store.forget_versions(row.id)
        self._decoding.drop(row.id)
        # Chosen again meanwhile, it may be in a consistent snapshot whose log was just dropped.
        self._snapshots.forget(row.id)
        self._store.table_event(
            row.id,
            "table_removed",
            table_uuid="" if row.is_drop_asked else row.table_uuid,
            is_drop_asked=False,
            is_resync_asked=False,
        )
        self._removals.pop(row.id, None)
        logger.info("The table was removed.", extra={"table": str(row.id)})

    def _restart_in_new_snapshot(self, row: TableRow) -> None:
        """Copy the table afresh in a new consistent snapshot. One that is open already may be older
        than the change that the fresh copy has to contain."""
        self._snapshots.forget(row.id)
        self._restart(row)

    def _restart(self, row: TableRow, event: str = "table_waits", **changes: Any) -> None:
        """Re-sync: a new generation that starts with a snapshot (CORRECTNESS 15). The old rows stay
        until it is done. A table that is chosen again is known only by its name: `schema` None."""
        fresh = {"error_code": "", "error_facts": {}, **FRESH, **changes}
        self._store.table_event(row.id, event, **fresh)

    def _retry(self, row: TableRow) -> None:
        if not is_due_again(row, time.time()):
            return
        if not row.is_snapshot_done:
            self._store.table_event(
                row.id, "table_waits", retry_at=None, error_code="", error_facts={}
            )
        elif self._is_of_group(row):
            return
        elif has_log_after(self._store, row.merged_sequence):
            self._start(row, "merge", self._merge, self._pool)
        else:  # No log is kept for a table that waits for a person.
            self._fail(row, ReplicationError("log:table-pruned", table=row.id))

    def _merge_if_due(self, row: TableRow) -> None:
        """Start maintenance if it is due, otherwise a merge if there is work. A table with work is
        maintained later than an idle one: merges come first (CORRECTNESS 32)."""
        has_work = self._backlog.oldest(row.id) is not None or row.is_replay_asked
        is_kept_up = isinstance(self._writer, Maintained)
        if is_kept_up and self._upkeep.is_due(row.id, has_work=has_work):
            self._start(row, "maintain", self._maintain, self._pool)
        elif self._is_of_group(row):
            return
        elif has_work and self._pacing.is_due(row.id):
            self._pacing.begun(row.id)
            self._start(row, "merge", self._merge, self._pool)

    # All tables in one commit

    def _is_of_group(self, row: TableRow) -> bool:
        """Whether the table merges with the others."""
        return self._together is not None and not self._together.is_alone(row.id)

    def _is_gathered(self, row: TableRow) -> bool:
        """Whether the table has to be free for the next merge of all tables."""
        return self._is_gathering and self._together is not None and self._together.has_place(row)

    def _gather(
        self, together: Together, rows: Sequence[TableRow], restless: Sequence[TableRow]
    ) -> None:
        """Start a merge of all tables, if it is due and none of them is busy. Otherwise no other
        jobs of them are started until they are free."""
        self._is_gathering = False
        has_work = any(together.has_work(row) for row in restless)
        if together.is_waiting or not has_work or not self._pacing.is_due(GROUP):
            return
        group = [row for row in rows if together.has_place(row)]
        self._is_gathering = any(row.id in self._busy for row in group)
        if not self._is_gathering:
            self._pacing.begun(GROUP)
            job = self._submitted(self._pool, self._merge_together, together, group)
            self._busy |= {row.id: job for row in group}

    def _merge_together(self, together: Together, rows: Sequence[TableRow]) -> None:
        with self._watchdog.step(TOGETHER):
            step = together.merge(rows)
            for part in step.parts:
                if part.files or part.row.is_replay_asked or part.row.state is TableState.FAILING:
                    self._merged(part.row, is_replayed=part.folded is not None)
        self._pacing.ended(GROUP, is_cut=step.is_cut)

    def _merged(self, row: TableRow, *, is_replayed: bool) -> None:
        """A table is well after a merge of all tables."""
        if row.is_replay_asked and is_replayed:
            self._replayed(row)
        elif row.is_replay_asked:
            self._streaming.mark()
        self._mark(row.id)
        self._is_well(row)

    def _note_version(self, row: TableRow) -> None:
        """A table without work is at the round's end already: only read its version."""
        self._start(row, "version", self._rounds.arrive, self._pool)

    def _start(
        self,
        row: TableRow,
        step: str,
        job: Callable[[TableRow], None],
        pool: ThreadPoolExecutor,
    ) -> None:
        self._busy[row.id] = self._submitted(pool, self._guarded, row, step, job)

    def _submitted(
        self, pool: ThreadPoolExecutor, job: Callable[..., Any], *args: Any
    ) -> Future[Any]:
        """Start a job. Its end stirs the run."""
        started = pool.submit(job, *args)
        started.add_done_callback(lambda _: self._backlog.stirred.set())
        return started

    def _guarded(self, row: TableRow, step: str, job: Callable[[TableRow], None]) -> bool:
        """Run a job. Its fault becomes the table's state, unless it is a fault of the run. Returns
        whether there was none."""
        try:
            began = time.time()
            with self._watchdog.step(f"{step} of {row.id}"):
                self._with_spark(row, job)
            return True
        except ResyncDue as due:
            self._evolver.resync(self._store.table(row.id), due.text)
        except ReplicationError as err:
            if err.code == "log:file-corrupt":
                self._decoding.again(int(err.facts["segment"]), err.table)
            elif ends_run(err):
                raise
            else:
                self._fault(row, err, began)
        except Exception as err:
            logger.exception("%s of %s failed.", step, row.id, extra={"table": str(row.id)})
            unknown = ReplicationError(
                "internal:unexpected", table=row.id, name_of_error=type(err).__name__
            )
            self._fail(row, unknown, began)
        return False

    def _with_spark(self, row: TableRow, job: Callable[[TableRow], None]) -> None:
        """Run a job with Spark. An error that follows the end of Spark's JVM is no fault of the
        table."""
        try:
            job(row)
        except Exception as err:
            if self._is_spark_lost():
                raise ReplicationError("run:spark-lost") from err
            raise

    def _fault(self, row: TableRow, err: ReplicationError, began: float) -> None:
        """The table fails, unless the policy is to copy it afresh."""
        now = self._store.table(row.id)
        if self._evolver.mends(now, err.code):
            logger.warning("The table is copied afresh: %s", err, extra={"table": str(row.id)})
            self._evolver.resync(now, err.message.text)
        else:
            self._fail(row, err, began)

    def _fail(self, row: TableRow, err: ReplicationError, began: float | None = None) -> None:
        """The table fails. It is tried again until its retry time is used up. `began`: when the
        failed job began."""
        logger.error("%s", err, extra={"table": str(row.id)}, exc_info=err.__cause__ is not None)
        fail_again(self._store, row, err, began=began, patience=self._settings.retry_seconds)

    def _merge(self, row: TableRow) -> None:
        reached, is_cut = self._rounds.limit(row.id)
        if self._together is not None:
            reached, is_cut = self._together.limit(), False
        if row.state is TableState.FAILING:  # Its comparison with the target may have failed.
            self._merger.recover(row)
            row = self._store.table(row.id)
        files = self._merger.pending(row, reached)
        if files or row.is_replay_asked:
            if not self._merger.merge(row, files, reached):
                if row.is_replay_asked and not files:
                    self._streaming.mark()
                self._rounds.give_up(row.id)
                self._pacing.ended(row.id)
                return
            if row.is_replay_asked:
                self._replayed(row)
            self._upkeep.merged(row.id)
            if self._merger.is_ahead(row.id):
                self._rounds.give_up(row.id)
        self._mark(row.id)
        fresh = self._store.table(row.id)
        self._resolve(fresh)
        self._rounds.arrive(fresh)
        self._pacing.ended(row.id, is_cut=is_cut or fresh.merged_sequence < reached.sequence)
        if self._together is not None:
            self._together.caught_up(row.id)
        self._is_well(row)

    def _is_well(self, row: TableRow) -> None:
        """A merge of the table ended without a fault."""
        if row.state is TableState.FAILING:
            self._store.table_event(
                row.id,
                "table_recovered",
                error_code="",
                error_facts={},
                retry_at=None,
                failures=0,
                failing_seconds=0.0,
            )
        elif row.failures:
            self._store.table_progress(row.id, failures=0, failing_seconds=0.0)

    def _replayed(self, row: TableRow) -> None:
        """The quarantined rows were tried again. The request stays where a person accepted more of
        them meanwhile."""
        fresh = self._store.table(row.id)
        waiting = self._store.quarantined(row.id, row.generation, fresh.merged_sequence)
        if not any(p.is_accepted for p in waiting):
            self._store.table_progress(row.id, is_replay_asked=False)

    def _snapshot(self, row: TableRow) -> None:
        if self._table_snapshots.copy(row):
            self._rounds.copied(row.id)
            self._mark(row.id)

    def _rewind(self, row: TableRow) -> None:
        if self._rewinder is None:
            refused = ReplicationError("target:no-rewind", table=row.id)
            self._store.table_event(
                row.id, "table_rewind_refused", error_code=refused.code,
                error_facts=refused.facts, rewind_to=None,
            )  # fmt: skip
            return
        self._rounds.changed(row.id)
        self._rewinder.rewind(row)
        self._mark(row.id)

    def _repair(self, repairer: Repairer, row: TableRow) -> None:
        if repairer.may_write(row.id):
            self._rounds.changed(row.id)
        repairer.turn(self._store.table(row.id))

    def _mark(self, table: TableId) -> None:
        """Update the table's oldest unmerged change, also beyond the frontier."""
        touched = self._backlog.touched(table)
        self._backlog.mark(table, self._merger.unmerged(self._store.table(table)), touched)

    def _maintain(self, row: TableRow) -> None:
        assert isinstance(self._writer, Maintained)
        self._rounds.changed(row.id)
        started = time.monotonic()
        table = target_table(self._replicator, row)
        try:
            done = maintenance_text(self._writer.maintain(table, self._settings.keep_seconds))
        except Exception as err:
            if ends_more(err):
                raise
            seconds = self._upkeep.failed(row.id)
            text = "The target's files could not be tidied up, tried again in %.0f s: %s"
            is_unknown = not isinstance(err, ReplicationError)
            logger.warning(text, seconds, err, extra={"table": str(row.id)}, exc_info=is_unknown)
            return
        self._upkeep.done(row.id)
        took = time.monotonic() - started
        logger.debug("Maintained in %.1f s%s.", took, done, extra={"table": str(row.id)})

    def _resolve(self, row: TableRow) -> None:
        """After a delivery, in the table's job: record and report how far the table is resolved
        now, where that is due."""
        mark = self._resolver.due(row) if self._resolver is not None else None
        if self._resolver is not None and mark is not None:
            self._resolver.record({row.id: mark})
            self._resolver.tell(row, mark)

    def _resolve_idle(self, rows: list[TableRow]) -> None:
        """Tables without work are resolved too: one job records the marks of many in one
        transaction, and reports each."""
        if self._resolver is None:
            return
        due = [(r, m) for r in rows if r.id not in self._busy and (m := self._resolver.due(r))]
        for first in range(0, len(due), RESOLVED_A_JOB):
            part = due[first : first + RESOLVED_A_JOB]
            job = self._submitted(self._pool, self._resolve_all, self._resolver, part)
            self._busy |= {row.id: job for row, _ in part}

    def _resolve_all(self, resolver: Resolver, due: list[tuple[TableRow, Resolved]]) -> None:
        resolver.record({row.id: mark for row, mark in due})
        for row, mark in due:
            self._guarded(row, "mark", partial(resolver.tell, mark=mark))

    def _skip_idle(self, rows: list[TableRow]) -> None:
        """Where all tables merge together, none may seem to be further than the others."""
        reached = self._backlog.frontier
        waiting = self._backlog.tables() | self._busy.keys()
        if self._together is not None and waiting:
            self._together.skips = True
            return
        behind = [r.id for r in rows if is_behind(r, reached) and r.id not in waiting]
        if behind:
            self._store.record_skipped(behind, reached.sequence)


def is_quiet(row: TableRow) -> bool:
    """Whether nothing is asked of the table. Then only the log, a look or its maintenance gives it
    work."""
    return (
        is_live(row)
        and row.state is TableState.REPLICATING
        and row.rewind_to is None
        and not (row.is_resync_asked or row.is_replay_asked or row.is_outdated)
    )
