"""Repairs rows of one table: writes the rows of some keys again as the source has them, in one
commit that keeps the table's token.

Why that is right (CORRECTNESS 34). The rows are read at the source at a moment that lies before
the log position P. The table had merged up to the sequence M then. A row is used once the log is
decoded up to P, and only if no change after M that is listed then touches its key. So the row was
the same at M, at P, and at the end of whatever was merged meanwhile: it is the row that the target
should have. What the table merges afterwards finds it as it would find any right row, in every
mode. Keys that a change touched are read again.

The request ends after the last commit. A crash before that repeats it: keys that were repaired are
found to be right. A fault of a repair never stops the table.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors import files
from replicators.connectors.model.changes import change_schema, last_sequence
from replicators.connectors.model.modes import LOGS, NEEDS_KEY, Mode
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.source import RowReader
from replicators.connectors.target import (
    FoldedBatch,
    KeyRange,
    MergeTarget,
    ReadsRows,
    Target,
)
from runners.engine import failpoints
from runners.engine.apply.merge import Applier, same_schema
from runners.engine.apply.refill import codes_of
from runners.engine.apply.spending import Spending
from runners.engine.changelog.segments import ChangeLog
from runners.engine.fold.filtering import kept
from runners.engine.fold.mirror import Folded, few_keys, key_ranges
from runners.engine.fold.plan import read_file
from runners.engine.fold.row_hash import row_hashes
from runners.engine.sizes import CODE, NO_LIMITS, UNSUPPORTED, Limits
from runners.engine.store.protocol import (
    ChangeFileRow,
    Store,
    TableRow,
    TableState,
    has_log_after,
    is_live,
)
from runners.engine.store.repairs import RepairCounts, RepairRow
from runners.engine.store.target_table import target_table

logger = logging.getLogger("replicator.repair")
MODES = frozenset({Mode.MIRROR, *NEEDS_KEY})
KEYS_AT_ONCE = 5_000
ROWS_LOOKED_AT = 2_000_000
"""Changes of the table after the read. With more of them, the table first has to catch up."""
ASKED_SECONDS = 1.0
POLL_SECONDS = 0.2
AGAIN_SECONDS = 1.0
LOG_SECONDS = 300.0
"""How long the log may take to be decoded up to what was read."""
MOST_TRIES = 10
FAULT_SECONDS = 60.0
FINAL = frozenset({UNSUPPORTED, CODE})
"""Faults of a row itself: another try finds the same row."""
NEVER = last_sequence(2**31 - 1)


@runtime_checkable
class RepairTarget(MergeTarget, ReadsRows, Protocol):
    """The parts of a target that a repair needs."""


@dataclass(frozen=True, slots=True)
class _Read:
    """The source's rows of `keys`, as they were at or before `position`. The table of `generation`
    had merged up to `sequence` then."""

    keys: pa.Table
    rows: pa.Table
    position: int
    sequence: int
    generation: int
    schema: TableSchema
    at: float


@dataclass(slots=True)
class _Open:
    """A repair that is under way: the keys that are still to do, and what was done."""

    repair: RepairRow
    keys: pa.Table
    counts: RepairCounts = field(default_factory=RepairCounts)
    read: _Read | None = None
    tries: int = 0
    again_at: float = 0.0
    error: ReplicationError | None = None


class Repairer:
    """Does what people asked for. `turn` is called by the table's job: one call at a time for each
    table, and no other job of the table meanwhile."""

    def __init__(
        self,
        target: Target,
        store: Store,
        log: ChangeLog,
        replicator: str,
        applier: Applier,
        reader: Callable[[], RowReader] | None,
        spending: Spending | None = None,
        limits: Limits = NO_LIMITS,
    ) -> None:
        self._target = target
        self._store = store
        self._log = log
        self._replicator = replicator
        self._applier = applier
        self._reader = reader
        self._spending = spending or Spending(store, None)
        self._limits = limits
        self._asked: dict[TableId, RepairRow] = {}
        self._asked_at = float("-inf")
        self._open: dict[TableId, _Open] = {}

    def look(self, rows: Sequence[TableRow]) -> set[TableId]:
        """The tables that have repairs to do. Those of tables that are no longer copied are
        refused."""
        now = time.monotonic()
        if now - self._asked_at < ASKED_SECONDS:
            return set(self._asked)
        self._asked_at = now
        found = self._store.repairs()
        live = {row.id for row in rows if is_live(row)} if found else set()
        asked: dict[TableId, RepairRow] = {}
        for repair in found:
            if repair.table in live:
                asked.setdefault(repair.table, repair)
            else:
                self._refuse(repair, ReplicationError("repair:removed", table=repair.table))
        self._asked = asked
        return set(asked)

    def is_due(self, row: TableRow) -> bool:
        """Whether a turn of the table's repair can do something now."""
        repair = self._asked.get(row.id)
        if repair is None or row.state is not TableState.REPLICATING:
            return False
        opened = self._open.get(row.id)
        return opened is None or time.monotonic() >= opened.again_at

    def may_write(self, table: TableId) -> bool:
        """Whether the next turn may change the target's table."""
        opened = self._open.get(table)
        return opened is not None and opened.read is not None

    def turn(self, row: TableRow) -> None:
        """Do a part of the table's repair: read rows at the source, or write those that were read.
        Raises what stops the run, and the error of a damaged change file."""
        repair = self._asked.get(row.id)
        if repair is None:
            return
        try:
            self._turn(row, repair)
        except ReplicationError as err:
            if err.code.startswith("run:") or err.code == "log:file-corrupt":
                raise
            self._failed(row, repair, err)
        except Exception as err:
            logger.exception("The repair failed.", extra={"table": str(row.id)})
            name = type(err).__name__
            unknown = ReplicationError("internal:unexpected", table=row.id, name_of_error=name)
            self._failed(row, repair, unknown)

    def _turn(self, row: TableRow, repair: RepairRow) -> None:
        self._require(row)
        opened = self._open.get(row.id)
        if opened is None or opened.repair.number != repair.number:
            self._open.pop(row.id, None)
            opened = self._open[row.id] = self._begun(row, repair)
        if opened.read is None and opened.keys.num_rows and opened.tries < MOST_TRIES:
            self._read(row, opened)
        elif opened.read is not None:
            self._use(row, opened, opened.read)
        if not opened.keys.num_rows or (opened.read is None and opened.tries >= MOST_TRIES):
            self._done(row, opened)

    def _require(self, row: TableRow) -> None:
        """Refuse what can't be repaired."""
        code = ""
        if not isinstance(self._target, MergeTarget) or row.mode in LOGS:
            code = "repair:append"
        elif row.schema is None or not row.schema.key or row.mode not in MODES:
            code = "repair:keyless"
        elif row.excluded:
            code = "repair:excluded"
        elif not isinstance(self._target, RepairTarget):
            code = "repair:target"
        elif self._reader is None:
            code = "repair:source"
        if code:
            raise ReplicationError(code, table=row.id)

    def _begun(self, row: TableRow, repair: RepairRow) -> _Open:
        """The repair with its keys, each once, without those of quarantined rows: the target keeps
        what it had of these."""
        assert row.schema is not None
        try:
            keys = self._store.repair_keys(repair, row.schema)
        except (ValueError, pa.ArrowException) as err:
            raise ReplicationError("repair:keys", table=row.id) from err
        codes = codes_of([keys])[0]
        keys = keys.take(pa.array(np.unique(codes, return_index=True)[1]))
        waiting = self._store.quarantined(row.id, row.generation, row.merged_sequence)
        quarantined = {w.key for w in waiting}
        if not quarantined:
            return _Open(repair, keys)
        shown = [
            json.dumps({n: str(v) for n, v in key.items()}, ensure_ascii=False)
            for key in keys.to_pylist()
        ]
        is_left = np.array([one in quarantined for one in shown], bool)
        return _Open(repair, keys.filter(pa.array(~is_left)), RepairCounts(left=int(is_left.sum())))

    # Reading

    def _read(self, row: TableRow, opened: _Open) -> None:
        """Read a portion of the keys at the source."""
        assert row.schema is not None and self._reader is not None
        keys = opened.keys.slice(0, KEYS_AT_ONCE)
        with self._reader() as reader:
            rows, position = reader.read(row.schema, keys)
        self._limits.refuse(rows, row.schema)
        if row.schema.filter and rows.num_rows:
            rows = rows.filter(kept(rows, row.schema))
        at = time.monotonic()
        opened.read = _Read(
            keys, rows, position, row.merged_sequence, row.generation, row.schema, at
        )
        opened.again_at = at
        failpoints.hit("repair_read")

    def _use(self, row: TableRow, opened: _Open, read: _Read) -> None:
        """Write what was read, as far as no change touched it since."""
        if self._applier.decoded_upto() < read.position:
            opened.again_at = time.monotonic() + POLL_SECONDS
            if time.monotonic() - read.at > LOG_SECONDS:
                self._again(opened)
            return
        untouched = self._untouched(row, read)
        if untouched is None:
            self._again(opened)
            return
        keys = read.keys.filter(pa.array(untouched))
        counts = self._written(row, keys, read.rows)
        opened.counts += counts
        opened.error = None
        rest = opened.keys.slice(read.keys.num_rows)
        touched = read.keys.filter(pa.array(~untouched))
        opened.keys = pa.concat_tables([rest, touched])
        opened.read = None
        if not keys.num_rows:
            self._again(opened)

    def _again(self, opened: _Open) -> None:
        """Read again after a while."""
        opened.read = None
        opened.tries += 1
        opened.again_at = time.monotonic() + AGAIN_SECONDS

    def _untouched(self, row: TableRow, read: _Read) -> np.ndarray[Any, Any] | None:
        """Which of the keys no change touched since the rows were read. None where that can't be
        said: the table was emptied or changed its columns, its log was pruned, or it has to catch
        up first."""
        schema = row.schema
        assert schema is not None
        if (row.generation, schema) != (read.generation, read.schema):
            return None
        if not has_log_after(self._store, read.sequence):
            return None
        found = [
            f
            for f in self._store.change_files(row.id, after=read.sequence, upto=NEVER)
            if f.last_position >= row.snapshot_position
        ]
        is_odd = any(f.counts.truncates or not same_schema(schema, f.schema) for f in found)
        if is_odd or sum(f.counts.rows for f in found) > ROWS_LOOKED_AT:
            return None
        parts = [_keys_of(f, schema, read.sequence) for f in found]
        if not parts:
            return np.ones(read.keys.num_rows, bool)
        mine, touched = codes_of([read.keys, pa.concat_tables(parts)])
        untouched: np.ndarray[Any, Any] = ~np.isin(mine, touched)
        return untouched

    # Writing

    def _written(self, row: TableRow, keys: pa.Table, source: pa.Table) -> RepairCounts:
        """Make the target's rows of these keys equal to the source's."""
        assert isinstance(self._target, RepairTarget) and row.schema is not None
        if not keys.num_rows:
            return RepairCounts()
        table, schema = target_table(self._replicator, row), row.schema
        with self._target.open_rows(table, schema) as opened:
            held = opened.rows_by_keys(keys)
        plan = _plan(keys, source, held, schema)
        if plan.doubled.num_rows and row.mode is Mode.SOFT_DELETE:
            raise ReplicationError("repair:doubled", table=row.id)
        if plan.doubled.num_rows and row.mode is Mode.MIRROR:
            # A merge would change each of them, and keep both.
            self._commit(row, _batch_rows(schema, row.mode, plan.doubled, _none(schema)))
            failpoints.hit("repair_cleared")
        ended = plan.deleted
        if row.mode is Mode.HISTORY:
            ended = pa.concat_tables([plan.deleted, plan.replaced])
        if plan.deleted.num_rows or plan.rows.num_rows:
            self._commit(row, _batch_rows(schema, row.mode, ended, plan.rows))
            failpoints.hit("repair_merged")
        return RepairCounts(plan.rows.num_rows, plan.deleted.num_rows, plan.equal)

    def _commit(self, row: TableRow, rows: pa.Table) -> None:
        assert isinstance(self._target, MergeTarget) and row.schema is not None
        schema, sequence = row.schema, row.token_sequence
        path = f"{self._log.merge_path(row.id, sequence)}-repair-{uuid.uuid4().hex[:8]}.parquet"
        folded = Folded(rows, False, (), False)
        files.write_table(rows, path, compression="zstd", compression_level=1)
        batch = FoldedBatch(
            schema,
            (path,),
            sequence,
            rows.num_rows,
            ranges=tuple(KeyRange(low, high) for low, high in key_ranges(folded, schema)),
            keys=tuple(few_keys(folded, schema)),
            mode=row.mode,
            repairs=True,
        )
        try:
            self._spending.begin(row.id)
            done = self._target.merge(target_table(self._replicator, row), batch)
            self._spending.end(row.id, done.cost)
        finally:
            with suppress(OSError):
                files.remove(path)

    # The end

    def _done(self, row: TableRow, opened: _Open) -> None:
        if opened.error is not None and opened.keys.num_rows:
            raise opened.error
        counts = opened.counts + RepairCounts(left=opened.keys.num_rows)
        failpoints.hit("repair_written")
        self._store.record_repaired(opened.repair, counts)
        failpoints.hit("repair_recorded")
        self._close(opened.repair)
        text = (
            f"Repaired: {counts.written:,} rows written, {counts.deleted:,} deleted, "
            f"{counts.equal:,} were right already, {counts.left:,} left as they are."
        )
        logger.info(text, extra={"table": str(row.id)})

    def _failed(self, row: TableRow, repair: RepairRow, err: ReplicationError) -> None:
        """Try again where that may help, otherwise refuse it. An error of the source may come from
        columns that changed there, which the table follows in a moment."""
        opened = self._open.get(row.id)
        is_final = err.code.startswith("repair:") or err.code in FINAL
        if opened is None or opened.tries >= MOST_TRIES or is_final:
            self._refuse(repair, err)
            return
        logger.warning("The repair is tried again: %s", err, extra={"table": str(row.id)})
        opened.error = err
        self._again(opened)
        opened.again_at = time.monotonic() + min(FAULT_SECONDS, 2.0**opened.tries)

    def _refuse(self, repair: RepairRow, err: ReplicationError) -> None:
        text = f"The repair was refused: {err.message.text}"
        logger.warning(text, extra={"table": str(repair.table)}, exc_info=err.__cause__ is not None)
        self._store.record_repair_refused(repair, err)
        self._close(repair)

    def _close(self, repair: RepairRow) -> None:
        """Forget it, and look at once for the next one."""
        self._open.pop(repair.table, None)
        self._asked.pop(repair.table, None)
        self._asked_at = float("-inf")


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be written: `rows` of the source that the target has otherwise or not at all,
    `replaced` keys of those that it has otherwise, and `deleted` keys that only the target has.
    `doubled` keys have several rows there. `equal`: how many rows are right."""

    rows: pa.Table
    replaced: pa.Table
    deleted: pa.Table
    doubled: pa.Table
    equal: int


def _plan(keys: pa.Table, source: pa.Table, held: pa.Table, schema: TableSchema) -> _Plan:
    """Compare the source's and the target's rows of these keys. A key that neither has is right."""
    names = list(schema.key)
    mine, theirs, ours = codes_of([keys, source.select(names), held.select(names)])
    columns = [c.name for c in schema.supported]
    last = max((int(codes.max()) for codes in (mine, theirs, ours) if len(codes)), default=0)
    in_target = np.bincount(ours, minlength=last + 1)
    place = np.full(last + 1, -1)
    place[ours] = np.arange(len(ours))
    at = pa.array(place[theirs], mask=in_target[theirs] != 1)
    same = pc.equal(row_hashes(source, columns), row_hashes(held, columns).take(at))
    is_equal = pc.fill_null(same, fill_value=False).to_numpy().astype(bool)
    is_wanted = np.isin(theirs, mine)
    counts = in_target[mine]
    in_source = np.isin(mine, theirs)
    differs = np.isin(mine, theirs[is_wanted & ~is_equal])
    return _Plan(
        source.filter(pa.array(is_wanted & ~is_equal)),
        keys.filter(pa.array(differs & (counts > 0))),
        keys.filter(pa.array(~in_source & (counts > 0))),
        keys.filter(pa.array(differs & (counts > 1))),
        int((is_wanted & is_equal).sum()) + int((~in_source & (counts == 0)).sum()),
    )


def _none(schema: TableSchema) -> pa.Table:
    return schema.arrow_schema().empty_table()


def _batch_rows(schema: TableSchema, mode: Mode, ended: pa.Table, rows: pa.Table) -> pa.Table:
    """The rows of a batch, as the mode's fold makes them: keys that end, and whole rows."""
    arrow, count = schema.arrow_schema(), ended.num_rows
    gone = pa.table(
        [
            ended.column(f.name) if f.name in ended.column_names else pa.nulls(count, f.type)
            for f in arrow
        ],
        schema=arrow,
    )
    made = pa.concat_tables([gone, rows.cast(arrow)])
    is_gone = np.arange(made.num_rows) < count
    made = made.append_column("_delete", pa.array(is_gone))
    kind = pa.timestamp("us", tz="UTC")
    now = pa.repeat(pa.scalar(datetime.now(UTC), kind), made.num_rows)
    never = pa.nulls(made.num_rows, kind)
    match mode:
        case Mode.SOFT_DELETE:
            at = now.take(pa.array(np.zeros(made.num_rows, np.int64), mask=~is_gone))
            return made.append_column("_deleted_at", at)
        case Mode.HISTORY:
            return made.append_column("_valid_from", now).append_column("_valid_to", never)
    return made


def _keys_of(file: ChangeFileRow, schema: TableSchema, after: int) -> pa.Table:
    """The keys that the changes of a file after a sequence touch: those of the rows, and those that
    rows had before."""
    changes = read_file(file, change_schema(schema))
    changes = changes.filter(pa.array(changes.column("_sequence").to_numpy() > after))
    names = list(schema.key)
    before = changes.column("_before").combine_chunks()
    before = before.filter(before.is_valid())
    olds = pa.table([before.field(n) for n in names], names)
    return pa.concat_tables([changes.select(names), olds.cast(changes.select(names).schema)])
