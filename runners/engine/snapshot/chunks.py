"""One table's snapshot: Spark tasks read chunks into the target's staging place; all are published
in one step. A keyed table's snapshot resumes where it was interrupted (`resume`)."""

from __future__ import annotations

import os
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from replicators.connectors.model.changes import segment_of
from replicators.connectors.model.modes import RESUMABLE, Mode, snapshot_values
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import Array
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import Chunk, ChunkReader, ResumableSession, SnapshotSession
from replicators.connectors.target import MergeTarget, SnapshotPlace, TargetTable
from replicators.connectors.tasks import Tasks
from runners.engine import failpoints
from runners.engine.fold.keyless import with_hashes
from runners.engine.fold.messages import ReadMessages
from runners.engine.quarantine.decide import check_limit
from runners.engine.settings import RunnerSettings
from runners.engine.sizes import Limits
from runners.engine.snapshot import resume
from runners.engine.snapshot.layout import check_place, layout
from runners.engine.snapshot.unsupported import SupportedRows, held_rows
from runners.engine.store.copies import CopyChunk, CopyRow
from runners.engine.store.protocol import Store

CHUNKS_A_JOB = 4
JOBS_AT_ONCE = 2
SAMPLE_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Portion:
    """What one task does. It reads a chunk (only rows with `keys`, where given). Without a chunk,
    it copies the file `path` without the rows that have `keys`."""

    number: int
    chunk: Chunk | None = None
    path: str = ""
    rows: int = 0
    keys: pa.Table | None = None


def _write(
    portion: Portion, read: ChunkReader, schema: TableSchema, place: SnapshotPlace
) -> tuple[str, int]:
    """Write the portion's rows to a durable Parquet file of the target, or straight into it. Each
    try's file has its own name."""
    tables = _tables(portion, read, schema, place)
    if place.direct is not None:
        return place.portion_path(portion.number), place.direct.write(portion.number, tables)
    path = f"{place.folder}/{portion.number:08d}-{uuid.uuid4().hex[:12]}.parquet"
    rows = 0
    first = next(tables, None)
    opened, options = place.opened(path), _options(place, first)
    with pq.ParquetWriter(opened, place.arrow, filesystem=place.system, **options) as writer:
        for table in chain([] if first is None else [first], tables):
            writer.write_table(table)
            rows += table.num_rows
    _sync(path)
    return path, rows


def _options(place: SnapshotPlace, first: pa.Table | None) -> dict[str, Any]:
    """The place's options, without dictionaries for columns whose first values hardly repeat: such
    a dictionary costs time and saves nothing."""
    names = place.options.get("use_dictionary")
    if first is None or not isinstance(names, list):
        return place.options
    sample = first.slice(0, SAMPLE_ROWS)
    repeating = [
        n for n in names if 2 * pc.count_distinct(sample.column(n)).as_py() <= sample.num_rows
    ]
    return {**place.options, "use_dictionary": repeating or False}


def _tables(
    portion: Portion, read: ChunkReader, schema: TableSchema, place: SnapshotPlace
) -> Iterator[pa.Table]:
    keys = portion.keys
    if portion.chunk is None:
        assert keys is not None
        file = pq.ParquetFile(place.opened(portion.path), filesystem=place.system)
        for batch in file.iter_batches(1 << 17):
            rows = pa.Table.from_batches([batch]).cast(place.arrow)
            yield resume.filtered(rows, keys, schema, keep=False)
        return
    for batch in read(portion.chunk, schema):
        rows = with_hashes(pa.Table.from_batches([batch]), batch.schema.names, place.arrow)
        rows = with_constants(rows, place)
        yield rows if keys is None else resume.filtered(rows, keys, schema, keep=True)


def with_constants(rows: pa.Table, place: SnapshotPlace) -> pa.Table:
    """The rows as the target wants them, with the columns that the mode adds."""
    for name, value in place.constants.items():
        kind = place.arrow.field(name).type
        rows = rows.append_column(name, pa.repeat(pa.scalar(value, kind), rows.num_rows))
    return rows.cast(place.arrow)


def _sync(path: str) -> None:
    """Make a local file and its name durable; stores elsewhere do that themselves."""
    if "://" in path:
        return
    for name in (path, os.path.dirname(path)):
        handle = os.open(name, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@dataclass(frozen=True, slots=True)
class _Copied:
    """What a task made from a portion: its file, its number of rows, and the quarantined rows
    (`SupportedRows.held`)."""

    number: int
    path: str
    rows: int
    held: bytes | None


def _copy_portion(
    portion: Portion,
    read: ChunkReader,
    schema: TableSchema,
    place: SnapshotPlace,
    quarantines: bool,
    limits: Limits,
    messages_at: datetime | None = None,
) -> _Copied:
    supported = SupportedRows(read, quarantines=quarantines, limits=limits)
    rows_of = ReadMessages(supported, messages_at) if messages_at else supported
    path, rows = _write(portion, rows_of, schema, place)
    return _Copied(portion.number, path, rows, supported.held)


@dataclass(frozen=True, slots=True)
class _Work:
    """A snapshot in progress: the table, its schema and place, and its chunks as the store has
    them. `is_resumed`: some chunks were read in an earlier consistent snapshot. `messages_at`: when
    the snapshot was opened, where its rows become messages."""

    table: TargetTable
    schema: TableSchema
    place: SnapshotPlace
    copy: CopyRow
    is_resumed: bool = False
    messages_at: datetime | None = None


def _constants(table: TargetTable, sequence: int) -> Mapping[str, Any]:
    return snapshot_values(table.mode, datetime.now(UTC), sequence)


def is_kept(table: TargetTable, copy: CopyRow) -> bool:
    """Whether an interrupted snapshot may resume in a later consistent snapshot (CORRECTNESS 17).
    False where rows hold the time or operation of their copy. False also without a key that Arrow
    can look up, or without a place for each row."""
    schema = copy.schema
    has_list = any(isinstance(schema.column(n).type, Array) for n in schema.key)
    return bool(schema.key and not has_list and copy.layout and table.mode in RESUMABLE)


class Snapshotter:
    """Copies tables inside one consistent snapshot. `on_progress` hears of every job that ended,
    and of the number of rows in the next step."""

    def __init__(
        self,
        tasks: Tasks,
        writer: MergeTarget,
        session: SnapshotSession,
        reader: ChunkReader,
        settings: RunnerSettings,
        store: Store,
        *,
        on_progress: Callable[[TableSchema, int], None] = lambda _, rows: None,
        should_stop: Callable[[], bool] = lambda: False,
        is_log_full: Callable[[], bool] = lambda: False,
        limits: Limits | None = None,
    ) -> None:
        self._tasks = tasks
        self._writer = writer
        self._session = session
        self._reader = reader
        self._settings = settings
        self._store = store
        self._on_progress = on_progress
        self._should_stop = should_stop
        self._is_log_full = is_log_full
        self._limits = limits or Limits(settings.row_limit_bytes)
        self._quarantines = False
        self._resumes = True
        self._place = ""
        self._removed = 0

    def find(self, table: TargetTable, schema: TableSchema) -> CopyRow | None:
        """The table's snapshot in progress that can be resumed in this consistent snapshot. One
        that can't is forgotten."""
        known = self._store.copy(table.source)
        if known is None:
            return None
        if (
            (known.generation, known.schema) == (table.generation, schema)
            and known.layout == layout(self._session, schema)
            and resume.is_log_whole(self._store, known)
            and not self._store.quarantined(table.source, table.generation, 0)
            and (place := self._writer.snapshot_place_again(table, schema, known.folder))
        ):
            return resume.finished(known, place)
        text = (
            "The snapshot starts again: what was copied does not fit the table or its log any more."
        )
        self._store.log("WARNING", text, table.source)
        self._store.copy_forget(table.source)
        return None

    def copy(
        self,
        table: TargetTable,
        schema: TableSchema,
        sequence: int,
        known: CopyRow | None = None,
        *,
        quarantines: bool = False,
        resumes: bool = True,
        place: str | None = None,
    ) -> tuple[str, int] | None:
        """Copy the table, or resume a snapshot that `find` gave, and publish it with `sequence` as
        its token. Returns the UUID of the target's table and the number of rows; None where a stop
        was asked (then nothing is published). `source:snapshot-lost` where the consistent snapshot
        was lost. `quarantines`: rows with unsupported values are quarantined; otherwise they are an
        error. `resumes`: an interrupted snapshot may resume in a later consistent snapshot.
        `place`: where the rows lay when the consistent snapshot was opened (default: now)."""
        self._quarantines, self._resumes, self._removed = quarantines, resumes, 0
        self._place = layout(self._session, schema) if place is None else place
        check_place(self._session, schema, self._place, self._store)
        work = self._go_on(table, schema, known) if known else None
        try:
            files = self._files(work or self._begin(table, schema, sequence))
        except resume.StartAgain as why:
            self._store.log("WARNING", f"The snapshot starts again: {why}.", table.source)
            self._store.copy_forget(table.source)
            files = self._files(self._begin(table, schema, sequence))
        if files is None:
            return None
        rows = sum(f.rows for f in files) - self._removed
        self._store.copy_forget(table.source)
        self._on_progress(schema, rows)
        self._writer.load_snapshot_files(table, schema, [f.path for f in files if f.rows])
        failpoints.hit("snapshot_loaded")
        self._on_progress(schema, rows)
        published = self._writer.publish_snapshot(table, schema, sequence)
        failpoints.hit("snapshot_published")
        return published, rows

    def _begin(self, table: TargetTable, schema: TableSchema, sequence: int) -> _Work:
        planned = self._session.plan(schema, rows_per_chunk=self._settings.rows_per_chunk)
        chunks = tuple(CopyChunk(c.number, c.spec, c.rows_estimated) for c in planned)
        self._store.quarantined_forget(table.source, table.generation)
        self._writer.begin_snapshot(table, schema)
        place = self._writer.snapshot_place(table, schema)
        place = replace(place, constants=_constants(table, sequence))
        copy = CopyRow(
            table.source,
            table.generation,
            schema,
            self._place,
            self._session.point.position.ordinal,
            segment_of(sequence),
            place.folder,
            chunks,
        )
        if self._resumes and is_kept(table, copy):
            self._store.copy_begun(copy)
        self._tell(schema, copy.chunks)
        failpoints.hit("snapshot_begun")
        at = datetime.now(UTC) if table.mode is Mode.MESSAGES else None
        return _Work(table, schema, place, copy, messages_at=at)

    def _go_on(self, table: TargetTable, schema: TableSchema, known: CopyRow) -> _Work | None:
        place = self._writer.snapshot_place_again(table, schema, known.folder)
        if place is None:
            return None
        place = replace(place, constants=_constants(table, 0))
        done = sum(c.is_done for c in known.chunks)
        text = f"The snapshot goes on: {done} of {len(known.chunks)} chunks were copied before."
        self._store.log("INFO", text, table.source)
        return _Work(table, schema, place, known, is_resumed=done > 0)

    def _files(self, work: _Work) -> list[CopyChunk] | None:
        """All files of the snapshot; None where a stop was asked."""
        copy, schema = work.copy, work.schema
        done = [c for c in copy.chunks if c.is_done]
        todo = [c for c in copy.chunks if not c.is_done]
        self._tell(schema, copy.chunks, done)
        portions = [Portion(c.number, Chunk(schema.id, c.number, c.spec)) for c in todo]
        for chunks in self._jobs(work, portions):
            done += chunks
            if self._resumes and is_kept(work.table, copy):
                self._store.copy_done(schema.id, chunks)
            failpoints.hit("snapshot_chunks_recorded")
            self._tell(schema, copy.chunks, done)
        if self._should_stop():
            return None
        check_place(self._session, schema, self._place, self._store)
        return self._level(work, done) if work.is_resumed else done

    def _tell(
        self, schema: TableSchema, chunks: Sequence[CopyChunk], done: Sequence[CopyChunk] = ()
    ) -> None:
        """Report how many rows of the estimated total are copied."""
        rows, total = sum(c.rows for c in done), sum(c.rows_estimated for c in chunks)
        self._store.record_snapshot_rows(schema.id, rows, max(total, rows) if total else None)
        self._on_progress(schema, 0)

    def _level(self, work: _Work, done: Sequence[CopyChunk]) -> list[CopyChunk] | None:
        """Bring chunks of several consistent snapshots to the present one: see `resume`."""
        position = self._session.point.position.ordinal
        files = resume.wait_for_log(
            self._store,
            work.copy,
            position,
            self._should_stop,
            is_log_full=self._is_log_full,
            on_progress=lambda: self._on_progress(work.schema, 0),
        )
        if files is None:
            return None
        assert isinstance(self._session, ResumableSession)
        keys = resume.touched_keys(files, work.copy, work.place)
        if not keys.num_rows:
            return list(done)
        text = f"{keys.num_rows:,} rows that changed since the snapshot began are read again."
        self._store.log("INFO", text, work.schema.id)
        direct = work.place.direct
        portions, kept = [], list[CopyChunk]()
        if direct is not None:
            self._removed, kept = direct.remove(keys), list(done)
        else:
            portions = [
                Portion(c.number, path=c.path, rows=c.rows, keys=keys) for c in done if c.rows
            ]
        first = len(work.copy.chunks)
        for number, part in enumerate(resume.split(keys), first):
            chunk = self._session.keyed_chunk(work.schema, number, part)
            portions.append(Portion(number, chunk, keys=part))
        level = [c for chunks in self._jobs(work, portions) for c in chunks]
        return None if self._should_stop() else kept + level

    def _jobs(self, work: _Work, portions: Sequence[Portion]) -> Iterator[list[CopyChunk]]:
        """The files of each job, one job after the other. The next job waits in Spark while one
        ends, so that no core idles. No job begins once a stop was asked for."""
        parts = [portions[at : at + CHUNKS_A_JOB] for at in range(0, len(portions), CHUNKS_A_JOB)]
        waiting = deque(parts)
        running: deque[Future[list[CopyChunk]]] = deque()
        with ThreadPoolExecutor(JOBS_AT_ONCE, "chunks") as pool:
            while waiting or running:
                while waiting and len(running) < JOBS_AT_ONCE and not self._should_stop():
                    running.append(pool.submit(self._read, work, waiting.popleft()))
                if not running:
                    return
                yield running.popleft().result()

    def _read(self, work: _Work, portions: Sequence[Portion]) -> list[CopyChunk]:
        """One job: its tasks write the target's files themselves; only their paths and rows come
        back."""
        copy = partial(
            _copy_portion,
            read=self._reader,
            schema=work.schema,
            place=work.place,
            quarantines=self._quarantines,
            limits=self._limits,
            messages_at=work.messages_at,
        )
        try:
            copied = self._tasks.map(copy, portions)
        except Exception as err:
            if not self._session.is_alive():
                raise ReplicationError("source:snapshot-lost") from err
            raise
        self._quarantine(work, {c.number: c.held for c in copied if c.held is not None})
        known = {c.number: c for c in work.copy.chunks}
        done = [CopyChunk(c.number, None, 0, c.path, c.rows, is_done=True) for c in copied]
        return [
            replace(c, spec=known[c.number].spec, rows_estimated=known[c.number].rows_estimated)
            if c.number in known
            else c
            for c in done
        ]

    def _quarantine(self, work: _Work, held: Mapping[int, bytes]) -> None:
        """Record the quarantined rows before their chunks count as done."""
        table, position = work.table, self._session.point.position.ordinal
        for number, rows in held.items():
            quarantined = held_rows(rows, work.schema, position, number)
            self._store.record_quarantined(table.source, table.generation, quarantined)
        if held:
            waiting = self._store.quarantined(table.source, table.generation, 0)
            check_limit(table.source, len(waiting))
