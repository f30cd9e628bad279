"""Rewinds one table to a time inside the keep window. It makes a staging copy of an older version
of the target, applies the changes since then to it again from the change log, and publishes it in
one commit (CORRECTNESS 15).

The table's own job does it, so its live rows do not change meanwhile, and the copy is level with
them at the end. Readers see the live rows until then. A rewind that is not possible is refused with
the reason, and the table continues as it was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol, runtime_checkable

from replicators.connectors import files as folder
from replicators.connectors.model.changes import last_sequence, segment_of
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import KeptVersion, MergeTarget, Rewindable, TargetTable
from replicators.connectors.tasks import Tasks
from runners.engine import failpoints
from runners.engine.apply.merge import fold_plan, next_batch, same_schema
from runners.engine.changelog.frontier import frontier_at
from runners.engine.changelog.segments import ChangeLog
from runners.engine.fold.filtering import undecided_keys
from runners.engine.fold.plan import fold_batch
from runners.engine.store.protocol import (
    ChangeFileRow,
    Store,
    TableRow,
    has_log_after,
)
from runners.engine.store.target_table import target_table

logger = logging.getLogger("replicator.rewind")

NEVER = last_sequence(2**31 - 1)


def reported(seconds: float) -> str:
    """A time as messages show it."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def sequence_at(files: list[ChangeFileRow], moment: float, merged: int) -> int:
    """The last sequence before any change that was committed after `moment`, in whole change files.
    `merged` where no such change exists."""
    later = [f.first_sequence for f in files if f.last_committed_at > moment]
    return min([*(s - 1 for s in later), merged])


@runtime_checkable
class RewindTarget(MergeTarget, Rewindable, Protocol):
    """The parts of a target that a rewind needs."""


class Rewinder:
    """One call at a time for each table, by its job. `on_progress` hears of each part that is
    applied again. A rewind that is stopped between two parts begins again in the next run."""

    def __init__(
        self,
        tasks: Tasks,
        writer: RewindTarget,
        store: Store,
        log: ChangeLog,
        replicator: str,
        *,
        on_progress: Callable[[TableId], None] = lambda _: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._tasks = tasks
        self._writer = writer
        self._store = store
        self._log = log
        self._replicator = replicator
        self._on_progress = on_progress
        self._should_stop = should_stop

    def rewind(self, row: TableRow) -> None:
        """Rewind the table to `rewind_to`, or refuse that. Raises only what stops the run, and the
        error of a damaged change file, which is then decoded again."""
        row = self.adopt(row)
        if row.rewind_to is None:
            return
        table = replace(target_table(self._replicator, row), generation=row.generation + 1)
        try:
            self._rewind(row, table, row.rewind_to)
        except ReplicationError as err:
            if err.code == "log:file-corrupt" or err.table is None:
                raise
            self._writer.abandon_rewind(table)
            logger.warning("Not rewound: %s", err.message.text, extra={"table": str(row.id)})
            self._store.table_event(
                row.id, "table_rewind_refused", error_code=err.code, error_facts=err.facts,
                rewind_to=None,
            )  # fmt: skip

    def adopt(self, row: TableRow) -> TableRow:
        """Finish a rewind that was killed between publishing and recording. Then the target's token
        has the next generation, and only a requested rewind can have written it. Returns the row
        after that."""
        if row.rewind_to is None:
            return row
        token = self._writer.token(target_table(self._replicator, row))
        is_done = token is not None and (
            (token.replicator, token.generation) == (self._replicator, row.generation + 1)
            and token.table_uuid == row.table_uuid
        )
        if token is None or not is_done:
            return row
        # After a kill the staging copy may still exist, and with it files of the live table.
        table = target_table(self._replicator, row)
        self._writer.abandon_rewind(replace(table, generation=row.generation + 1))
        return self._record(row, token.sequence)

    def _record(self, row: TableRow, sequence: int) -> TableRow:
        return self._store.table_event(
            row.id,
            "table_rewound",
            generation=row.generation + 1,
            token_sequence=sequence,
            merged_sequence=max(sequence, row.merged_sequence),
            rewind_to=None,
        )

    def _rewind(self, row: TableRow, table: TargetTable, moment: float) -> None:
        assert row.schema is not None
        files = [
            f
            for f in self._store.change_files(row.id, after=0, upto=row.merged_sequence)
            if f.last_position >= row.snapshot_position
        ]
        if row.quarantines or row.rows_quarantined or any(f.faults for f in files):
            raise ReplicationError("target:rewind-quarantined", table=row.id)
        found = self._found(row, sequence_at(files, moment, row.merged_sequence), moment)
        since = [f for f in files if f.last_sequence > found.sequence]
        is_older = row.schema_sequence > 0 and found.sequence <= row.schema_sequence
        if is_older or any(not same_schema(row.schema, f.schema) for f in since):
            raise ReplicationError("target:rewind-schema", table=row.id)
        self._store.table_event(row.id, "table_rewind_started")
        self._writer.begin_rewind(table, found.version)
        failpoints.hit("rewind_begun")
        if not self._replay(row, table, since, found.sequence):
            return
        failpoints.hit("rewind_replayed")
        self._writer.publish_snapshot(table, row.schema, row.merged_sequence)
        failpoints.hit("rewind_published")
        self._record(row, row.merged_sequence)
        rows = sum(f.counts.rows for f in since)
        text = f"Rewound to {reported(moment)}: {rows:,} changes were applied again."
        self._store.log("INFO", text, row.id)

    def _found(self, row: TableRow, wanted: int, moment: float) -> KeptVersion:
        """The version to begin with. Refused where the target or the change log does not reach back
        far enough."""
        found = self._writer.version_at(target_table(self._replicator, row), wanted)
        if found is None or found.sequence > wanted:
            earliest = reported(found.committed_at) if found else "now"
            raise ReplicationError(
                "target:rewind-too-early", table=row.id, asked=reported(moment), earliest=earliest
            )
        is_present = found.sequence == row.token_sequence
        if not is_present and not has_log_after(self._store, found.sequence):
            segments = self._store.segments()
            earliest = reported(segments[0].sealed_at) if segments else "now"
            raise ReplicationError(
                "log:rewind-too-early", table=row.id, asked=reported(moment), earliest=earliest
            )
        return found

    def _replay(
        self, row: TableRow, table: TargetTable, files: list[ChangeFileRow], after: int
    ) -> bool:
        """Apply the files to the staging copy, in merges like those of a table that replicates.
        They end where the live rows do: at a transaction's end. False where a stop was asked before
        that."""
        end = frontier_at(self._store, segment_of(row.merged_sequence))
        while files:
            self._on_progress(row.id)
            if self._should_stop():
                return False
            batch_files, sequence = next_batch(files, end)
            sequence = min(sequence, row.merged_sequence)
            self._apply(row, table, batch_files, after, sequence)
            after = sequence
            files = [f for f in files if f.last_sequence > after]
        self._on_progress(row.id)
        return True

    def _apply(
        self,
        row: TableRow,
        table: TargetTable,
        files: list[ChangeFileRow],
        after: int,
        sequence: int,
    ) -> None:
        plan = fold_plan(row, files[0].schema, tuple(files), after, sequence, self._log)
        batch, _ = fold_batch(self._tasks, plan)
        try:
            if undecided_keys(batch) is not None:  # the source knows only the present row
                raise ReplicationError("target:row-missing", table=row.id)
            self._writer.merge_staged(table, batch)
        finally:
            for path in batch.paths:
                with suppress(OSError):
                    folder.remove(path)
