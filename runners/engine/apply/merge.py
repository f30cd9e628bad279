"""One table's merge: plan from the listed change files, fold, write with the sequence, record.
Steps 5 and 6 of the order of writes."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from replicators.connectors import files as folder
from replicators.connectors.conflicts import Settles
from replicators.connectors.model.changes import (
    OpCounts,
    first_sequence,
    last_sequence,
    segment_of,
)
from replicators.connectors.model.modes import RESUMABLE
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.schema.diff import compare, with_known_labels
from replicators.connectors.target import FoldedBatch, MergeTarget, TargetTable
from replicators.connectors.tasks import Tasks
from runners.engine import failpoints
from runners.engine.apply.refill import Filler
from runners.engine.apply.spending import Spending
from runners.engine.changelog.frontier import Frontier, frontier_at
from runners.engine.changelog.segments import ChangeLog
from runners.engine.fold.filtering import decide, undecided_keys
from runners.engine.fold.plan import BYTES_A_TASK, FoldPlan, fold_batch
from runners.engine.fold.skipped import skipped_operations
from runners.engine.quarantine.decide import fold_with_quarantined
from runners.engine.schema.evolution import Evolver
from runners.engine.store.protocol import ChangeFileRow, Store, TableRow, TableState
from runners.engine.store.target_table import target_table

logger = logging.getLogger("replicator.merge")
ROWS_A_MERGE = 4_000_000
BYTES_A_MERGE = 256 << 20
"""Bytes of change files, which are compressed. Without this limit, a backlog of large documents
would be read into memory at once, again and again."""


def same_schema(old: TableSchema, new: TableSchema) -> bool:
    """Whether a target made for the schema `old` takes rows of `new` as they are."""
    return new.upto <= old.upto and not compare(old, with_known_labels(old, new))


def next_batch(
    files: Sequence[ChangeFileRow],
    reached: Frontier,
    limit: int = ROWS_A_MERGE,
    limit_bytes: int = BYTES_A_MERGE,
) -> tuple[list[ChangeFileRow], int]:
    """The first files that may go into one merge, and the merge's sequence. One merge takes one
    schema version, whole transactions, and about `limit` rows or `limit_bytes`."""
    version = files[0].version
    same: list[ChangeFileRow] = []
    for file in files:
        if file.version != version:
            return same, file.first_sequence - 1
        same.append(file)
    rows, size, cut = 0, 0, None
    ends = set(reached.closed)
    for file in same:
        if cut is not None and file.segment > cut:
            taken = [f for f in same if f.segment <= cut]
            return taken, last_sequence(cut)
        rows += file.counts.rows
        size += file.size_bytes
        if rows >= limit or size >= limit_bytes:
            cut = next((n for n in sorted(ends) if n >= file.segment), None)
    return same, reached.sequence


def fold_plan(
    row: TableRow,
    schema: TableSchema,
    files: tuple[ChangeFileRow, ...],
    after: int,
    sequence: int,
    log: ChangeLog,
) -> FoldPlan:
    """The plan to fold files of one schema, for a merge that ends at `sequence`, of a table that is
    merged up to `after`."""
    left = skipped_operations(row.selection, schema, row.mode)
    return FoldPlan(
        schema=schema,
        files=files,
        after=after,
        position=row.snapshot_position,
        sequence=sequence,
        prefix=log.merge_path(row.id, sequence),
        excluded=left.ops,
        no_inserts=left.no_inserts,
        mode=row.mode,
    )


@dataclass(frozen=True, slots=True)
class Folded:
    """A table's batch, folded and not yet written."""

    row: TableRow
    plan: FoldPlan
    batch: FoldedBatch
    counts: OpCounts

    def remove(self) -> None:
        """Remove the batch's files."""
        for path in self.batch.paths:
            with suppress(OSError):
                folder.remove(path)


class Applier(ABC):
    """Applies decoded changes to the target. One call at a time for each table; several tables may
    run in parallel threads. `Merger` and `deliver.Deliverer` are its two kinds. `task_bytes`: how
    many bytes of change files one task takes."""

    task_bytes = BYTES_A_TASK

    def __init__(self, store: Store, log: ChangeLog, replicator: str, evolver: Evolver) -> None:
        self._store = store
        self._log = log
        self._replicator = replicator
        self._evolver = evolver

    @abstractmethod
    def recover(self, row: TableRow) -> None:
        """Compare the target with what is recorded: once a start, and before a failed table
        continues."""

    @abstractmethod
    def merge(self, row: TableRow, files: Sequence[ChangeFileRow], reached: Frontier) -> bool:
        """Apply the first of the files, and record the table's merged sequence. False where it must
        wait."""

    def is_ahead(self, table: TableId) -> bool:
        """Whether the target may have values of the table from a later moment than the end of its
        last merge."""
        return False

    def pending(self, row: TableRow, reached: Frontier) -> list[ChangeFileRow]:
        """The table's listed files that are neither merged nor in its snapshot."""
        return [f for f in self.unmerged(row) if f.segment <= reached.segment]

    def unmerged(self, row: TableRow) -> list[ChangeFileRow]:
        """The same, also beyond the frontier: decoded changes of transactions that are not
        complete."""
        files = self._store.change_files(
            row.id, after=row.merged_sequence, upto=last_sequence(2**31 - 1)
        )
        return [f for f in files if f.last_position >= row.snapshot_position]

    def _plan(self, row: TableRow, files: Sequence[ChangeFileRow], reached: Frontier) -> FoldPlan:
        """What the next merge folds, once the target has its schema."""
        reached = self.with_ends(files, reached)
        batch_files, sequence = next_batch(files, reached) if files else ([], reached.sequence)
        schema = batch_files[0].schema if batch_files else row.schema
        assert schema is not None
        self._follow(row, schema)
        files = tuple(batch_files)
        plan = fold_plan(row, schema, files, row.merged_sequence, sequence, self._log)
        return replace(plan, task_bytes=self.task_bytes)

    def batch_end(self, files: Sequence[ChangeFileRow], reached: Frontier) -> int:
        """The sequence at which the next merge of these files would end."""
        return next_batch(files, self.with_ends(files, reached))[1]

    def with_ends(self, files: Sequence[ChangeFileRow], reached: Frontier) -> Frontier:
        """The frontier with the ends of all segments that the files need. If there are very many
        segments, the backlog knows only the ends of the late ones. Then a merge of a table that is
        far behind would find no earlier end, and would have no limit."""
        if not files or (reached.closed and reached.closed[0] <= files[0].segment):
            return reached
        return frontier_at(self._store, reached.segment)

    def follow(self, row: TableRow, schema: TableSchema, position: int) -> bool:
        """Bring the copy to a schema that the catalog described before the log's `position`, where
        no change announces it. This happens only once everything up to there is merged. Returns
        whether it was."""
        if self.decoded_upto() < position or self.unmerged(row):
            return False
        reported = self._evolver.reported(schema, self._store.memory().position, position)
        if reported is None:
            return False
        self._follow(row, reported, is_look=True)
        return True

    def _follow(self, row: TableRow, schema: TableSchema, *, is_look: bool = False) -> None:
        if row.schema != schema:
            table = target_table(self._replicator, row)
            self._evolver.follow(row, table, schema, is_look=is_look)

    def decoded_upto(self) -> int:
        """The log position up to which every change is decoded and listed. The captured position is
        read first: the segments that it covers are recorded with it, or before."""
        captured = self._store.memory().position
        done = 0
        for segment in sorted(self._store.segments(), key=lambda s: s.number):
            if not segment.is_decoded:
                return done
            done = segment.position.ordinal if segment.is_closed else done
        return captured.ordinal if captured else done


class Merger(Applier):
    """Merges tables into a `MergeTarget`."""

    def __init__(
        self,
        tasks: Tasks,
        writer: MergeTarget,
        store: Store,
        log: ChangeLog,
        replicator: str,
        filler: Filler,
        evolver: Evolver,
        spending: Spending | None = None,
    ) -> None:
        super().__init__(store, log, replicator, evolver)
        self._tasks = tasks
        self._writer = writer
        self._filler = filler
        self._spending = spending or Spending(store, None)
        self._ahead: set[TableId] = set()
        self._is_timed = isinstance(writer, Settles) and writer.settles

    def is_ahead(self, table: TableId) -> bool:
        """Whether the table's last merge has values that were read at the source, maybe from a
        later moment than the merge's end."""
        return table in self._ahead

    def recover(self, row: TableRow) -> None:
        """Compare the target's token with what is recorded (CORRECTNESS 13), once a start. The
        target wins where it is one merge ahead because a crash prevented the record of that merge.
        The merge's segments are still listed then, since the table needs them. Other tokens come
        from a time that our database does not remember, as after a restore of it."""
        token = self._writer.token(target_table(self._replicator, row))
        if token is None:
            raise ReplicationError("target:table-missing", table=row.id)
        if (token.replicator, token.generation) != (self._replicator, row.generation):
            raise ReplicationError("target:table-replaced", table=row.id)
        if row.table_uuid and token.table_uuid != row.table_uuid:
            raise ReplicationError("target:table-replaced", table=row.id)
        if token.sequence < row.token_sequence:
            raise ReplicationError("target:table-behind", table=row.id)
        if token.sequence > row.merged_sequence and not self._may_end(row, token.sequence):
            raise ReplicationError("target:table-ahead", table=row.id)
        if token.sequence > row.token_sequence:
            merged = max(token.sequence, row.merged_sequence)
            self._store.table_progress(
                row.id, token_sequence=token.sequence, merged_sequence=merged
            )

    def _may_end(self, row: TableRow, sequence: int) -> bool:
        """Whether a merge of the listed files may have ended there: in a listed segment, or right
        before a file (`next_batch`)."""
        return any(s.number == segment_of(sequence) for s in self._store.segments()) or any(
            f.first_sequence == sequence + 1 for f in self.unmerged(row)
        )

    def merge(self, row: TableRow, files: Sequence[ChangeFileRow], reached: Frontier) -> bool:
        """One merge of the first files, or of quarantined rows where there are no files. Then the
        table's merged sequence is recorded. False where the merge must wait for more of the log: a
        row that was read at the source belongs to a later moment, or no sequence is free for
        another commit."""
        began = time.monotonic()
        folded = self.folded(row, files, reached)
        if folded is None:
            return False
        done = time.monotonic()
        try:
            if not self._write(row, folded.batch, is_cut=folded.plan.sequence < reached.sequence):
                return False
        finally:
            folded.remove()
        failpoints.hit("target_merged")
        took = (done - began, time.monotonic() - done)
        logger.debug(
            "Merged %d changes: fold %.2f s, write %.2f s",
            folded.counts.rows,
            *took,
            extra={"table": str(row.id)},
        )
        self.record(folded)
        return True

    def folded(
        self, row: TableRow, files: Sequence[ChangeFileRow], reached: Frontier
    ) -> Folded | None:
        """The next batch of the table, whose copy has the batch's schema then. None where no
        sequence is free for another commit."""
        plan = replace(self._plan(row, files, reached), times=self._is_timed)
        if plan.sequence <= row.token_sequence:
            return None
        batch, counts = fold_with_quarantined(self._store, row, plan) or fold_batch(
            self._tasks, plan
        )
        return Folded(row, plan, batch, counts)

    def record(self, folded: Folded) -> None:
        """Step 6: the batch is in the target."""
        row, sequence = folded.row, folded.plan.sequence
        if any(f.counts.truncates for f in folded.plan.files):
            self._evolver.emptied(row)
        self._store.record_merged(row.id, sequence, sequence, folded.counts)
        failpoints.hit("merge_recorded")

    def _write(self, row: TableRow, batch: FoldedBatch, *, is_cut: bool = False) -> bool:
        """`is_cut`: the batch ends before the frontier, at a limit of its size or at a change of
        the schema."""
        table = target_table(self._replicator, row)
        undecided = undecided_keys(batch)
        if undecided is None:
            try:
                self._commit(table, batch)
            except ReplicationError as err:
                # A row that is read at the source later is not the version of that time.
                if err.code != "target:row-missing" or row.mode not in RESUMABLE:
                    raise
            else:
                self.needed_no_source(row)
                return True
        position = self.decoded_upto()
        waiting = self.unmerged(row)
        filled = self._filler.fill(table, batch, waiting, position, undecided, is_cut=is_cut)
        if filled is None:
            return False
        if undecided is not None:
            decide(filled)
        self._commit(table, filled)
        self._ahead.add(row.id)
        logger.warning(
            "Read rows at the source: the log did not carry all of their values.",
            extra={"table": str(row.id)},
        )
        return True

    def needed_no_source(self, row: TableRow) -> None:
        """A batch of the table was written without rows of the source."""
        self._filler.forget(target_table(self._replicator, row))
        self._ahead.discard(row.id)

    def _commit(self, table: TargetTable, batch: FoldedBatch) -> None:
        self._spending.begin(table.source)
        done = self._writer.merge(table, batch)
        self._spending.end(table.source, done.cost)


def is_behind(row: TableRow, reached: Frontier) -> bool:
    """Whether the table's merged sequence has to follow the frontier where it has no unmerged
    changes.

    Otherwise the log before the frontier could not be pruned.
    """
    is_past = reached.sequence > max(row.merged_sequence, first_sequence(1))
    return is_past and row.state is TableState.REPLICATING
