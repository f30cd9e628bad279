"""One table's changes for a `ChangeSink`: every change in order, in lanes that tasks read. Steps 5
and 6 of the order of writes: deliver, then record. The target has no token, so the store's record
says how far the table is."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from replicators.connectors import files as folder
from replicators.connectors.model.changes import COUNTED, OpCounts, change_schema
from replicators.connectors.target import BatchKind, ChangeBatch, ChangeSink
from runners.engine import failpoints
from runners.engine.apply.merge import Applier
from runners.engine.apply.refused import note_refused, replay_refused
from runners.engine.changelog.frontier import Frontier
from runners.engine.changelog.segments import ChangeLog
from runners.engine.fold.plan import (
    ROWS_A_TASK,
    FoldPlan,
    counting,
    counts_of,
    read_file,
)
from runners.engine.quarantine.decide import refuse_unsupported
from runners.engine.schema.evolution import Evolver
from runners.engine.store.protocol import ChangeFileRow, Store, TableRow
from runners.engine.store.target_table import target_table

logger = logging.getLogger("replicator.deliver")


@dataclass(frozen=True, slots=True)
class ChangeLane:
    """A `Lane` over whole change files: the rows that count in `plan`'s files."""

    number: int
    first: int
    last: int
    rows: int
    plan: FoldPlan

    def read(self) -> Iterator[pa.RecordBatch]:
        """The rows, file by file."""
        schema = change_schema(self.plan.schema)
        for file in self.plan.files:
            yield from counting(read_file(file, schema), self.plan).to_batches()


def lanes_of(plan: FoldPlan, counts: Sequence[OpCounts]) -> tuple[ChangeLane, ...]:
    """The plan's files in as many lanes as there is work for. `counts` says how many rows of each
    file count. Lanes are cut only between two files. So a later change of a key is in the same lane
    or in a later one."""
    shares: list[list[ChangeFileRow]] = []
    sizes: list[tuple[int, int]] = []
    for file, count in zip(plan.files, counts, strict=True):
        if not count.rows:
            continue
        rows, size = sizes[-1] if sizes else (0, 0)
        is_much = rows + count.rows > ROWS_A_TASK or size + file.size_bytes > plan.task_bytes
        if not shares or is_much:
            shares.append([])
            sizes.append((0, 0))
            rows, size = 0, 0
        shares[-1].append(file)
        sizes[-1] = rows + count.rows, size + file.size_bytes
    begins = [plan.after + 1, *(share[0].first_sequence for share in shares[1:])]
    ends = [*(at - 1 for at in begins[1:]), plan.sequence]
    return tuple(
        ChangeLane(number, begins[number], ends[number], size[0], replace(plan, files=tuple(share)))
        for number, (share, size) in enumerate(zip(shares, sizes, strict=True))
    )


def counts_in(file: ChangeFileRow, plan: FoldPlan) -> OpCounts:
    """How many rows of a file count. Where all of them may count, this is the file's recorded
    number."""
    if file.first_sequence <= plan.after or file.first_position < plan.position:
        columns = ["_sequence", "_op", "_position"]
        rows = folder.read_table(file.path, columns=columns)
        return counts_of(counting(rows, replace(plan, files=(file,))))
    reported = file.counts
    kept = zip(
        COUNTED,
        (reported.inserts, reported.updates, reported.deletes, reported.truncates),
        strict=True,
    )
    return OpCounts(*(0 if op in plan.excluded else count for op, count in kept))


class Deliverer(Applier):
    """Delivers tables to a `ChangeSink`."""

    def __init__(
        self,
        sink: ChangeSink,
        store: Store,
        log: ChangeLog,
        replicator: str,
        evolver: Evolver,
    ) -> None:
        super().__init__(store, log, replicator, evolver)
        self._sink = sink

    def recover(self, row: TableRow) -> None:
        """There is no token to compare. Delivery continues after what is recorded: what was
        delivered but not recorded is delivered again."""

    def merge(self, row: TableRow, files: Sequence[ChangeFileRow], reached: Frontier) -> bool:
        """Deliver the first of the files and record it. Rows that the target refused are sent again
        first, where somebody asked for that. False where there are no files."""
        if row.is_replay_asked:
            replay_refused(self._sink, self._store, self._replicator, row)
        if not files:
            return False
        plan = self._plan(row, files, reached)
        refuse_unsupported(row.id, plan)
        counts = [counts_in(f, plan) for f in plan.files]
        total = sum(counts, start=OpCounts())
        if total.rows:
            self._deliver(row, plan, counts)
        if any(f.counts.truncates for f in plan.files):
            self._evolver.emptied(row)
        note_refused(self._sink, self._store, self._replicator, row)
        self._store.record_merged(row.id, plan.sequence, plan.sequence, total)
        failpoints.hit("merge_recorded")
        return True

    def _deliver(self, row: TableRow, plan: FoldPlan, counts: Sequence[OpCounts]) -> None:
        began = time.monotonic()
        batch = ChangeBatch(
            kind=BatchKind.CHANGES,
            schema=plan.schema,
            after=plan.after,
            sequence=plan.sequence,
            lanes=lanes_of(plan, counts),
            resolved_at=row.resolved_at,
        )
        rows = self._sink.deliver(target_table(self._replicator, row), batch)
        failpoints.hit("changes_delivered")
        took = time.monotonic() - began
        logger.debug("Delivered %d changes in %.2f s", rows, took, extra={"table": str(row.id)})
