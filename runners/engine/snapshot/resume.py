"""Resumes a table's snapshot whose consistent snapshot ended with its session or with the run
(CORRECTNESS 17).

Why it is exact. P is the log position of the first consistent snapshot, V that of the present one.
Chunks are ranges of a table's physical places. The finished chunks were read in earlier consistent
snapshots, at P or later.
1. A row that no transaction touched between P and V is the same in every consistent snapshot, and
   lies at the same place. Only an update moves a row, or a rewrite of the whole table, which
   `layout` shows. So the row was copied exactly once, as it is at V.
2. Every row that was touched between P and V is in the log with its key, and with its old key where
   the key changed. All log of the table since P was kept, and is decoded up to V before the touched
   keys are read.
3. So the rows with these keys are taken out of all chunks, wherever and as often as they were
   copied. Those of these keys that exist are read once more, by key, in the present snapshot.
The staged rows are then the table at V, as if it had been read in one piece: the log is applied
from V on. No image is ever completed from another moment's row. So unsent values, changed keys and
reused keys need no special care.

The snapshot starts again where this does not hold: the log has a gap since P, the table has another
schema or was rewritten, there was a TRUNCATE, or too many rows were touched. The snapshot of a
table without a key always starts again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from replicators.connectors.model.changes import Op, last_sequence
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.target import SnapshotPlace
from runners.engine.fold.plan import FoldPlan, read_changes
from runners.engine.store.copies import CopyRow
from runners.engine.store.protocol import ChangeFileRow, Store, has_log_after

TOUCHED_ROWS = 1_000_000
KEYS_A_CHUNK = 1000
WAIT_SECONDS = 0.2
FULL_SECONDS = 150.0
"""Somewhat more than twice the time between two prunings: by then the space that another table held
is free."""
NEVER = 2**62


class StartAgain(Exception):
    """What was copied can't be used any more; the text says why."""


def is_log_whole(store: Store, copy: CopyRow) -> bool:
    """Whether every segment after the copy's first consistent snapshot is still listed."""
    return has_log_after(store, last_sequence(copy.segment))


def finished(copy: CopyRow, place: SnapshotPlace) -> CopyRow:
    """The copy. A chunk is marked as not done where its file, or its portion in the target, is
    missing or differs from its record."""
    if place.direct is not None:
        written = place.direct.rows()
        return copy.marked(
            [c for c in copy.chunks if c.is_done and written.get(c.number) == c.rows]
        )

    def is_there(path: str, rows: int) -> bool:
        try:
            return bool(pq.read_metadata(path).num_rows == rows)
        except (OSError, pa.ArrowInvalid):
            return False

    return copy.marked([c for c in copy.chunks if c.is_done and is_there(c.path, c.rows)])


def wait_for_log(
    store: Store,
    copy: CopyRow,
    position: int,
    should_stop: Callable[[], bool],
    *,
    is_log_full: Callable[[], bool] = lambda: False,
    on_progress: Callable[[], None] = lambda: None,
    timer: Callable[[], float] = time.monotonic,
) -> list[ChangeFileRow] | None:
    """The table's change files since the copy's first consistent snapshot, once all log before
    `position` is decoded; None where a stop was asked. `on_progress` hears when more of it is
    captured or decoded. Raises `StartAgain` where nothing moves for `FULL_SECONDS` because the log
    waits for space: this copy is what keeps the log from being pruned."""
    upto: int | None = None
    seen: tuple[int, int | None] | None = None
    moved_at = timer()
    while not should_stop():
        memory = store.memory()
        reached = memory.position.ordinal if memory.position is not None else -1
        if upto is None and reached >= position:
            upto = memory.last_segment
        left = None  # not known before all of it is captured
        if upto is not None:
            left = sum(not s.is_decoded for s in store.segments() if s.number <= upto)
        if left == 0:
            files = store.change_files(copy.table, after=0, upto=NEVER)
            return [f for f in files if f.last_position >= copy.position]
        if (reached, left) != seen:
            seen, moved_at = (reached, left), timer()
            on_progress()
        elif is_log_full() and timer() - moved_at > FULL_SECONDS:
            raise StartAgain("the change log is full and can't be pruned before this copy is done")
        time.sleep(WAIT_SECONDS)
    return None


def touched_keys(files: Sequence[ChangeFileRow], copy: CopyRow, place: SnapshotPlace) -> pa.Table:
    """The present and former keys of the rows in the change files, each once, typed as in the
    target's files."""
    names = list(copy.schema.key)
    if sum(f.counts.rows for f in files) > TOUCHED_ROWS:
        raise StartAgain("too many rows changed since")
    found = [pa.schema([place.arrow.field(n) for n in names]).empty_table()]
    for file in files:
        if file.schema.key != copy.schema.key or any(
            file.schema.column(n) != copy.schema.column(n) for n in names
        ):
            raise StartAgain("the table's key changed since")
        changes = read_changes(FoldPlan(file.schema, (file,), -1, copy.position, NEVER, ""))
        if pc.any(pc.equal(changes.column("_op"), int(Op.TRUNCATE))).as_py():
            raise StartAgain("the table was emptied since")
        before = changes.column("_before")
        had = changes.filter(pc.is_valid(before)).column("_before")
        olds = [pc.struct_field(had, n) for n in names]
        for columns in ([changes.column(n) for n in names], olds):
            found.append(pa.table(dict(zip(names, columns, strict=True))).cast(found[0].schema))
    return pa.concat_tables(found).group_by(names).aggregate([])


def split(keys: pa.Table) -> list[pa.Table]:
    """The keys split into portions, one for each query."""
    return [keys.slice(at, KEYS_A_CHUNK) for at in range(0, keys.num_rows, KEYS_A_CHUNK)]


def filtered(rows: pa.Table, keys: pa.Table, schema: TableSchema, *, keep: bool) -> pa.Table:
    """The rows whose key is (`keep`) or is not in `keys`. Keys are compared byte for byte."""
    names = list(schema.key)
    numbered = rows.select(names).append_column("_row", pa.array(range(rows.num_rows), pa.int64()))
    types = pa.schema([rows.schema.field(n) for n in names])
    kind = "left semi" if keep else "left anti"
    fitting = numbered.join(keys.select(names).cast(types), names, join_type=kind)
    return rows.take(fitting.column("_row").sort())
