"""Runs `fold` over the change files of one merge: in this process for few rows, in tasks for many.
Writes the folded rows as Parquet for the target's MERGE. Knows no target."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from replicators.connectors import files
from replicators.connectors.model.changes import (
    COUNTED,
    Op,
    OpCounts,
    change_schema,
    faulty_schema,
)
from replicators.connectors.model.modes import LOGS, ROW_HASH, Mode
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import FoldedBatch, KeyRange
from replicators.connectors.tasks import Tasks
from runners.engine.changelog.segments import raise_if_away, write_error
from runners.engine.fold.buckets import of_bucket
from runners.engine.fold.filtering import filtered
from runners.engine.fold.keyless import fold_counts
from runners.engine.fold.mirror import MAX_KEYS, few_keys, join_ranges, key_ranges
from runners.engine.fold.modes import NEEDS_BARRIERS, folded
from runners.engine.store.protocol import ChangeFileRow

ROWS_HERE = 100_000
ROWS_A_TASK = 400_000
BYTES_HERE = 32 << 20
BYTES_A_TASK = 64 << 20
"""Bytes of change files, which are compressed: rows may be large."""


GROUP_ROWS, GROUP_BYTES = 1 << 20, 32 << 20
"""A row group of a folded file. Spark holds thousands of its rows at once, but only of one group at
a time."""


@dataclass(frozen=True, slots=True)
class FoldPlan:
    """One merge's input: files of one schema version. Their rows count that lie past `after` and
    not before `position`, and whose `_op` is not in `excluded`. `no_inserts`: inserts are read, but
    add no row. `task_bytes`: how many bytes of files one task takes. `times`: the batch is
    `FoldedBatch.timed`, where mode and table can be."""

    schema: TableSchema
    files: tuple[ChangeFileRow, ...]
    after: int
    position: int
    sequence: int
    prefix: str
    excluded: tuple[int, ...] = ()
    mode: Mode = Mode.MIRROR
    no_inserts: bool = False
    task_bytes: int = BYTES_A_TASK
    times: bool = False

    @property
    def timed(self) -> bool:
        """Whether each row says when it was committed."""
        is_plain = self.mode is Mode.MIRROR and not self.no_inserts
        return self.times and is_plain and bool(self.schema.key)

    @property
    def rows(self) -> int:
        return sum(f.counts.rows for f in self.files)

    @property
    def size_bytes(self) -> int:
        return sum(f.size_bytes for f in self.files)

    @property
    def is_small(self) -> bool:
        """Whether this process folds it without tasks."""
        return self.rows <= ROWS_HERE and self.size_bytes <= BYTES_HERE


@dataclass(frozen=True, slots=True)
class FoldPart:
    """What one folding wrote."""

    path: str
    rows: int
    counts: OpCounts
    truncate: bool
    unsent: tuple[str, ...]
    has_origins: bool
    ranges: list[tuple[Any, Any]]
    keys: list[Any]
    truncated_at: datetime | None = None


def read_changes(plan: FoldPlan, *, with_faults: bool = False) -> pa.Table:
    """The rows that count in the plan's files, by sequence, with `faulty_schema` where asked.
    `log:file-corrupt` names the segment in its facts."""
    schema = faulty_schema(plan.schema) if with_faults else change_schema(plan.schema)
    parts = [read_file(file, schema) for file in plan.files]
    return counting(pa.concat_tables(parts) if parts else schema.empty_table(), plan)


def read_file(file: ChangeFileRow, schema: pa.Schema) -> pa.Table:
    """A change file's rows. `log:file-corrupt` where the file is not as it was written."""
    try:
        data = files.read(file.path)
    except OSError as err:
        raise_if_away(file.path, err)
        data = pa.py_buffer(b"")
    if zlib.crc32(data) != file.crc32:
        raise ReplicationError("log:file-corrupt", table=file.table, segment=file.segment)
    return pq.read_table(pa.BufferReader(data), schema=schema)


def _read_bucket(plan: FoldPlan, bucket: int, buckets: int) -> pa.Table:
    """The rows that count in one bucket, by sequence. Every file is read, one after the other. That
    is cheaper than a shuffle between tasks, and only one file is held in memory beside the
    bucket."""
    schema = change_schema(plan.schema)
    key = () if plan.mode in LOGS else plan.schema.key
    moves = any(f.has_key_changes for f in plan.files)
    parts = [
        of_bucket(counting(read_file(file, schema), plan), key, bucket, buckets, moves=moves)
        for file in plan.files
    ]
    return pa.concat_tables(parts).sort_by("_sequence")


def counting(changes: pa.Table, plan: FoldPlan) -> pa.Table:
    """Those of these rows that count for the plan."""
    if plan.excluded:
        left_out = pa.array(plan.excluded, changes.schema.field("_op").type)
        changes = changes.filter(pc.invert(pc.is_in(changes.column("_op"), value_set=left_out)))
    if not any(
        f.first_sequence <= plan.after or f.first_position < plan.position for f in plan.files
    ):
        return changes
    keep = pc.and_(
        pc.greater(changes.column("_sequence"), plan.after),
        pc.greater_equal(changes.column("_position"), plan.position),
    )
    return changes.filter(keep)


def counts_of(changes: pa.Table) -> OpCounts:
    """The number of rows for each operation."""
    found = {
        int(e["values"]): int(e["counts"])
        for e in pc.value_counts(changes.column("_op")).to_pylist()
    }
    return OpCounts(*(found.get(int(op), 0) for op in COUNTED))


def _write(rows: pa.Table, path: str) -> None:
    group = max(1, rows.num_rows * GROUP_BYTES // max(rows.nbytes, 1))
    try:
        files.write_table(
            rows,
            path,
            compression="zstd",
            compression_level=1,
            use_dictionary=False,
            row_group_size=min(group, GROUP_ROWS),
        )
    except OSError as err:
        raise write_error(err) from err


def _count_to_file(
    changes: pa.Table, schema: TableSchema, path: str, *, truncate: bool
) -> FoldPart:
    counted = fold_counts(changes, schema)
    rows = counted.rows
    _write(rows, path)
    digests = rows.column(ROW_HASH).to_pylist() if rows.num_rows <= MAX_KEYS else []
    is_emptied = counted.truncate or truncate
    return FoldPart(path, rows.num_rows, counts_of(changes), is_emptied, (), False, [], digests)


def fold_to_file(
    changes: pa.Table,
    schema: TableSchema,
    path: str,
    *,
    truncate: bool = False,
    mode: Mode = Mode.MIRROR,
    no_inserts: bool = False,
    timed: bool = False,
) -> FoldPart:
    """Fold and write one Parquet file."""
    if mode is Mode.MULTISET:
        return _count_to_file(changes, schema, path, truncate=truncate)
    counts = counts_of(changes)
    if no_inserts:
        counts = replace(counts, inserts=0)
    found = folded(changes, schema, mode, no_inserts=no_inserts, timed=timed)
    if mode is Mode.MIRROR:
        found = filtered(found, schema)
    _write(found.rows, path)
    is_keyed = mode not in LOGS
    return FoldPart(
        path,
        found.rows.num_rows,
        counts,
        found.truncate or truncate,
        found.unsent,
        found.has_origins,
        key_ranges(found, schema) if is_keyed else [],
        few_keys(found, schema) if is_keyed else [],
        found.truncated_at,
    )


def fold_batch(tasks: Tasks, plan: FoldPlan) -> tuple[FoldedBatch, OpCounts]:
    """Fold the plan's files. Returns the batch for the target, and the number of folded rows by
    operation. `quarantine` has to fold files with unsupported values: here these would become NULL
    unseen."""
    unsupported = next((f for f in plan.files if f.faults), None)
    if unsupported is not None:
        raise ReplicationError("log:rows-quarantined", table=unsupported.table)
    parts = [_fold_plan(plan)] if plan.is_small else _fold_in_tasks(tasks, plan)
    return batch_of(plan, parts)


def batch_of(plan: FoldPlan, parts: Sequence[FoldPart]) -> tuple[FoldedBatch, OpCounts]:
    """One batch from the parts that the foldings of a merge wrote."""
    counts = OpCounts()
    for part in parts:
        counts += part.counts
    ranges = join_ranges([p.ranges for p in parts if p.rows])
    batch = FoldedBatch(
        schema=plan.schema,
        paths=tuple(p.path for p in parts if p.rows),
        sequence=plan.sequence,
        rows=sum(p.rows for p in parts),
        unsent=tuple(sorted({n for p in parts for n in p.unsent})),
        has_origins=any(p.has_origins for p in parts),
        truncate=any(p.truncate for p in parts),
        ranges=tuple(KeyRange(low, high) for low, high in ranges),
        append_only=not plan.schema.key and plan.mode is Mode.MIRROR,
        keys=tuple(parts[0].keys) if len(parts) == 1 else (),
        mode=plan.mode,
        truncated_at=min((p.truncated_at for p in parts if p.truncated_at), default=None),
        no_inserts=plan.no_inserts,
        timed=plan.timed,
    )
    return batch, counts


def _fold_plan(plan: FoldPlan) -> FoldPart:
    path = f"{plan.prefix}-0.parquet"
    changes = read_changes(plan)
    return fold_to_file(
        changes,
        plan.schema,
        path,
        mode=plan.mode,
        no_inserts=plan.no_inserts,
        timed=plan.timed,
    )


def _fold_bucket(bucket: int, plan: FoldPlan, buckets: int, truncate: bool) -> FoldPart | None:
    changes = _read_bucket(plan, bucket, buckets)
    if not changes.num_rows:
        return None
    path = f"{plan.prefix}-{bucket}.parquet"
    return fold_to_file(
        changes,
        plan.schema,
        path,
        truncate=truncate,
        mode=plan.mode,
        no_inserts=plan.no_inserts,
        timed=plan.timed,
    )


def _fold_in_tasks(tasks: Tasks, plan: FoldPlan) -> list[FoldPart]:
    is_linked = any(f.has_key_changes and f.unsent for f in plan.files)
    is_emptied = any(f.counts.truncates for f in plan.files)
    is_whole = (plan.timed or plan.mode in NEEDS_BARRIERS) and is_emptied
    # One folding has to follow each row through all of its key changes.
    is_whole |= plan.no_inserts and (is_emptied or any(f.has_key_changes for f in plan.files))
    fits_one = plan.rows <= ROWS_A_TASK and plan.size_bytes <= plan.task_bytes
    if fits_one or is_whole or (is_linked and not plan.schema.full_before):
        return tasks.map(_fold_plan, [plan])
    barrier = -1 if plan.mode in LOGS else _last_truncate(plan)
    truncate = barrier >= 0
    rest = replace(plan, after=max(plan.after, barrier))
    shares = math.ceil(plan.rows / ROWS_A_TASK), math.ceil(plan.size_bytes / plan.task_bytes)
    buckets = max(2, *shares)
    fold = partial(_fold_bucket, plan=rest, buckets=buckets, truncate=truncate)
    parts = [part for part in tasks.map(fold, range(buckets)) if part is not None]
    if truncate and not parts:
        return [FoldPart("", 0, OpCounts(truncates=1), True, (), False, [], [])]
    return parts


def _last_truncate(plan: FoldPlan) -> int:
    """The sequence of the plan's last truncate, or -1."""
    last = -1
    for file in plan.files:
        if file.counts.truncates:
            rows = files.read_table(file.path, columns=["_sequence", "_op", "_position"])
            rows = counting(rows, plan)
            found = rows.filter(pc.equal(rows.column("_op"), int(Op.TRUNCATE))).column("_sequence")
            last = max([last, *found.to_pylist()[-1:]])
    return last
