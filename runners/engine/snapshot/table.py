"""One table's copy: its consistent snapshot, its generation, and the record of its end."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import replace

from replicators.connectors.model.modes import Mode, mode_for
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.take_over import TakesOver
from replicators.connectors.target import ChangeSink, TargetTable
from runners.engine import failpoints
from runners.engine.capture.stream import Streaming
from runners.engine.errors import fail_again, retry_delay, tried_seconds
from runners.engine.snapshot.consistent import ConsistentSnapshot, SnapshotSource
from runners.engine.store.protocol import Store, TableRow, TableState
from runners.engine.store.target_table import target_table

logger = logging.getLogger("replicator.snapshot")
QUIET_SECONDS = 600.0
CUTS = frozenset({"source:snapshot-lost", "source:connection-lost", "source:unreachable"})


Begin = Callable[[TargetTable, TableSchema, int], str]
"""Begins a table without a copy, with the changes after a sequence. Returns the UUID of the
target's table, empty where it has none. It is safe to run twice."""


def beginning(writer: object) -> Begin | None:
    """How tables begin without a copy at this target; None where they can't."""
    if isinstance(writer, TakesOver):
        return _taken_over(writer)
    if not isinstance(writer, ChangeSink):
        return None

    def begin(table: TargetTable, schema: TableSchema, _: int) -> str:
        writer.begin(table, schema)
        return ""

    return begin


def _taken_over(writer: TakesOver) -> Begin:
    def begin(table: TargetTable, schema: TableSchema, after: int) -> str:
        if table.mode is not Mode.MIRROR:
            raise ReplicationError("target:take-over-mode", table=table.source)
        return writer.take_over(table, schema, after)

    return begin


class TableSnapshots:
    """At most one call at a time for each table, by the table's job."""

    def __init__(
        self,
        store: Store,
        snapshots: SnapshotSource,
        streaming: Streaming,
        replicator: str,
        *,
        begin: Begin | None = None,
        patience: float = math.inf,
    ) -> None:
        self._begin = begin
        self._patience = patience
        self._store = store
        self._snapshots = snapshots
        self._streaming = streaming
        self._replicator = replicator
        self._after: dict[TableId, float] = {}

    def is_due(self, table: TableId) -> bool:
        """Whether the table's copy may begin, or be tried again."""
        return time.monotonic() >= self._after.get(table, 0.0)

    def copy(self, row: TableRow) -> bool:
        """Copy the table and record it, or begin it without a copy. False where the copy was
        interrupted or a stop was asked."""
        began = time.time()
        if row.starts_after is not None and row.schema is not None and self._begin is not None:
            self._begin_without_copy(row, row.schema, row.starts_after)
            return True
        try:
            done = self._copied(row)
        except ReplicationError as err:
            if err.code not in CUTS:
                raise
            logger.warning("The snapshot was cut off: %s", err, extra={"table": str(row.id)})
            self._cut(row, err, began)
            return False
        if done is None:
            return False
        if self._store.table(row.id).state is not TableState.SNAPSHOTTING:
            # It failed meanwhile. The next copy has another generation than what was published.
            return False
        snapshot, uuid, rows = done
        self._store.record_snapshot_rows(row.id, rows, rows)
        self._store.table_event(
            row.id,
            "table_snapshot_done",
            schema=self._streaming.copied(snapshot.schema),
            table_uuid=uuid,
            merged_sequence=snapshot.sequence,
            token_sequence=snapshot.sequence,
            snapshot_position=snapshot.position,
            schema_sequence=0,
            is_snapshot_done=True,
            error_code="",
            error_facts={},
            failures=0,
            failing_seconds=0.0,
        )
        failpoints.hit("snapshot_recorded")
        took = time.time() - began
        logger.info("Copied %d rows in %.0f s.", rows, took, extra={"table": str(row.id)})
        return True

    def _begin_without_copy(self, row: TableRow, schema: TableSchema, after: int) -> None:
        """The table's changes begin where the log began. It is safe to run twice."""
        assert self._begin is not None
        self._store.table_event(
            row.id,
            "table_snapshot_started",
            generation=row.generation + 1,
            is_snapshot_done=False,
            mode=mode_for(row.mode_asked, schema),
        )
        uuid = self._begin(target_table(self._replicator, self._store.table(row.id)), schema, after)
        failpoints.hit("snapshot_begun")
        self._store.table_event(
            row.id,
            "table_snapshot_done",
            table_uuid=uuid,
            merged_sequence=after,
            token_sequence=after,
            schema_sequence=0,
            starts_after=None,
            is_snapshot_done=True,
            error_code="",
            error_facts={},
            failures=0,
            failing_seconds=0.0,
        )
        failpoints.hit("snapshot_recorded")
        logger.info("The table starts without a copy.", extra={"table": str(row.id)})

    def _cut(self, row: TableRow, err: ReplicationError, began: float) -> None:
        """Try again after a growing wait, until the retry time is used up. A try that ran well for
        long counts as progress."""
        now = time.time()
        if now - began >= QUIET_SECONDS:
            row, began = replace(row, failures=0, failing_seconds=0.0), now
        tried, delay = tried_seconds(row, began, now), retry_delay(row.failures)
        if tried + delay >= self._patience:
            fail_again(self._store, row, err, began=began, patience=self._patience)
            return
        self._after[row.id] = time.monotonic() + delay
        self._store.table_progress(row.id, failures=row.failures + 1, failing_seconds=tried)

    def _copied(self, row: TableRow) -> tuple[ConsistentSnapshot, str, int] | None:
        """Copy the table in a consistent snapshot, or resume an interrupted copy. Returns the
        snapshot, the UUID of the target's table and the number of rows; None where a stop was
        asked."""
        snapshot = self._snapshots.snapshot(row.id, is_exact=row.needs_exact)
        if snapshot is None:
            return None
        if not snapshot.schema.columns:
            raise ReplicationError("source:no-columns", table=row.id)
        is_cut = row.state is TableState.SNAPSHOTTING
        table, mode = target_table(self._replicator, row), mode_for(row.mode_asked, snapshot.schema)
        can_go_on = is_cut and mode is row.mode and not row.needs_exact
        known = snapshot.snapshotter.find(table, snapshot.schema) if can_go_on else None
        is_new = known is None
        if is_new:
            self._store.copy_forget(row.id)
        self._store.table_event(
            row.id,
            "table_snapshot_started",
            generation=row.generation + is_new,
            is_snapshot_done=False,
            mode=mode,
        )
        row = self._store.table(row.id)
        table = target_table(self._replicator, row)
        quarantines = replace(row, schema=snapshot.schema).quarantines
        done = snapshot.snapshotter.copy(
            table, snapshot.schema, snapshot.sequence, known,
            quarantines=quarantines, resumes=not row.needs_exact, place=snapshot.place,
        )  # fmt: skip
        return None if done is None else (snapshot, *done)
