"""Which rows changed at the source lately, as the change log has it.

Why a row that differs is wrong. The log was captured up to `since` when the source's row was read,
at a later position R. The target was read after it had merged everything up to R. If no listed
change file has a change of this row from `since` on, then the source's row stayed the same from
`since` up to whatever the target had merged: all of that was decoded, so its files were listed. So
the target should have had just this row.

A server may send a commit some moments before its queries see it. So `since` is taken a round
before the source's row is read.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.model.changes import Op, last_sequence
from replicators.connectors.model.schema import TableId
from runners.engine.fold.plan import FoldPlan, read_changes
from runners.engine.store.protocol import ChangeFileRow
from runners.engine.verify.following import Captured, Followed
from runners.engine.verify.hashing import Hashes
from runners.engine.verify.pairs import Plan

MOST_ROWS = 2_000_000
NEVER = 1 << 62


def touched(followed: Followed, table: TableId, since: Captured, plan: Plan) -> Hashes | None:
    """What tells rows apart (`Plan.key_hashes`) of those that changed from `since` on, as they were
    and as they are. None: not known, so any row may have changed. Ask after the target was read."""
    files = followed.change_files(table, after=last_sequence(since.segment - 1), upto=NEVER)
    if followed.first_segment() > max(1, since.segment):
        return None
    files = [f for f in files if f.last_position >= since.position]
    if sum(f.counts.rows for f in files) > MOST_ROWS:
        return None
    found = [np.zeros(0, np.uint64)]
    for file in files:
        if file.schema.key != plan.schema.key or (file.unsent and not plan.key):
            return None
        changes = read_changes(FoldPlan(file.schema, (file,), -1, since.position, NEVER, ""))
        if pc.any(pc.equal(changes.column("_op"), int(Op.TRUNCATE))).as_py():
            return None
        for rows in _images(changes, file, plan):
            found += [plan.key_hashes(b) for b in rows.to_batches() if b.num_rows]
    return np.unique(np.concatenate(found))


def _images(changes: pa.Table, file: ChangeFileRow, plan: Plan) -> Iterator[pa.Table]:
    """The rows after and before the changes, with what tells rows apart."""
    wanted = plan.keys if plan.key else plan.arrow
    yield _fitting(changes, wanted)
    if "_before" in changes.column_names:
        had = changes.filter(pc.is_valid(changes.column("_before"))).column("_before")
        names = [f.name for f in had.type]
        before = pa.table([pc.struct_field(had, n) for n in names], names)
        yield _fitting(before, wanted)


def _fitting(rows: pa.Table, wanted: pa.Schema) -> pa.Table:
    """The wanted columns; one that the file does not have yet is NULL."""
    names = set(rows.column_names)
    arrays = [
        rows.column(f.name).cast(f.type) if f.name in names else pa.nulls(rows.num_rows, f.type)
        for f in wanted
    ]
    return pa.Table.from_arrays(arrays, schema=wanted)
