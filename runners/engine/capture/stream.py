"""Owns the source's stream: where the log starts, its reader, the capture thread, and reconnecting
after a cut. `capture` handles the bytes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from replicators.connectors.capabilities import ColumnKnowledge
from replicators.connectors.control import HasMembers, SourceControl
from replicators.connectors.log import LogReader
from replicators.connectors.model.changes import last_sequence
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.connectors.poll import NeedsTasks, PollReader
from replicators.connectors.problems.errors import ReplicationError, Retry
from replicators.connectors.schema.numbering import with_numbers
from replicators.connectors.schema.policy import follows_renames
from replicators.connectors.snapshot import FirstSnapshotOpener, SnapshotSession, SnapshotWait
from replicators.connectors.tasks import Tasks
from runners.engine import failpoints
from runners.engine.capture.first_snapshot import FirstSnapshot, places
from runners.engine.capture.polling import PollCapture, PolledFiles
from runners.engine.capture.reader import Capture, discard_open_tail
from runners.engine.capture.thread import CaptureThread
from runners.engine.changelog.backlog import Backlog
from runners.engine.changelog.segments import ChangeLog
from runners.engine.errors import fail_all, fail_table
from runners.engine.holding import Act
from runners.engine.idle import OWN, Idle
from runners.engine.job import Job
from runners.engine.schema.describe import Described, describe_tables
from runners.engine.schema.evolution import VANISHED
from runners.engine.schema.selection import followed, known_schema, unmoved
from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import (
    ChangeFileRow,
    SegmentRow,
    Store,
    TableRow,
    TableState,
    chosen,
)
from runners.engine.watchdog import Watchdog

logger = logging.getLogger("replicator.run")

RECONNECT_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0)
QUIET_SECONDS = 600.0


class Streaming:
    """Call `prepare`, then `start`; `check` once a turn; `stop` and `close` at the end. `files`
    makes change files from polled changes; its lock is held while segments of an interrupted
    transaction are dropped. `on_seal` hears of every sealed segment, and of a fault. `on_fault`
    hears of a table that the stream did not carry. `wait` gives the one who hears of locks that a
    table's publication waits for."""

    def __init__(
        self,
        job: Job,
        store: Store,
        log: ChangeLog,
        settings: RunnerSettings,
        backlog: Backlog,
        stop: threading.Event,
        *,
        next_number: int,
        files: PolledFiles,
        watchdog: Watchdog,
        tasks: Tasks,
        on_seal: Callable[[], None],
        on_fault: Callable[[TableId, str, Mapping[str, str]], None],
        wait: Callable[[], SnapshotWait | None] = lambda: None,
        idle: Idle = OWN,
    ) -> None:
        self._job = job
        self._store = store
        self._log = log
        self._settings = settings
        self._backlog = backlog
        self._stop = stop
        self._next_number = next_number
        self._files = files
        self._watchdog = watchdog
        self._tasks = tasks
        self._on_seal = on_seal
        self._on_fault = on_fault
        self._wait = wait
        self._idle = idle
        self._reconnects = 0
        self._reconnected_at = 0.0
        self._open()
        self._members = threading.RLock()
        self._chosen = chosen(store)
        self._schemas: dict[TableId, TableSchema] = {}
        self._policy = job.options.schema_changes
        self._columns = job.source.capabilities.columns
        self.capture: CaptureThread

    def describe(self) -> list[TableSchema]:
        """The tables of the stream, with the columns that are followed: those that exist, and those
        that are absent but not yet reported dropped. The catalog may be ahead of the log: a table
        may be gone, or away for a moment, before its rows are read."""
        found = self._describe(self._chosen)
        return found + self._unreported(found)

    def _unreported(self, found: Sequence[TableSchema]) -> list[TableSchema]:
        """Tables absent from the catalog but not yet reported dropped, with their last known
        schema. The log reports drops where it can; otherwise a look into the catalog does. Without
        them, a table that is away for a moment would leave a hole that nobody sees."""
        self._schemas |= {t.id: t for t in found}
        there = {t.id for t in found}
        missing = [t for t in self._chosen if t.id not in there]
        rows = {r.id: r for r in self._store.tables()} if missing else {}
        schemas = []
        for table in missing:
            row = rows.get(table.id)
            if row is None or (row.state is TableState.FAILING and row.error_code in VANISHED):
                continue
            known, last = known_schema(row), self._schemas.get(table.id)
            schema = last if known is None else known
            if schema is not None and self._columns is ColumnKnowledge.BY_STATEMENTS:
                schemas.append(self._followed(schema.bare, table, known))
            elif schema is not None and schema.native_id:
                schemas.append(last or self._followed(schema, table, known))
        return schemas

    def _describe(self, tables: Sequence[TableSelection]) -> list[TableSchema]:
        rows = {r.id: r for r in self._store.tables()}
        with self._job.source.catalog(self._job.source_params) as catalog:
            known = [rows[t.id].schema for t in tables if t.id in rows]
            found = describe_tables(
                catalog,
                tables,
                [s for s in known if s is not None],
                follows=follows_renames(self._policy),
            )
        self._fail_renamed(found, rows)
        return [
            self._followed(found.schemas[t.id], t, known_schema(rows.get(t.id)))
            for t in tables
            if t.id in found.schemas
        ]

    def _followed(
        self, found: TableSchema, table: TableSelection, known: TableSchema | None
    ) -> TableSchema:
        return followed(found, table, known, self._policy, self._columns)

    def _fail_renamed(self, found: Described, rows: Mapping[TableId, TableRow]) -> None:
        """A table that has another name now, and is not followed there, fails at once: at the next
        look into the catalog it may have its old name again."""
        for table, now in found.renamed.items():
            if table not in found.schemas and rows[table].state is TableState.REPLICATING:
                fail_table(self._store, table, "source:table-renamed", {"now": str(now)})

    def schemas(self) -> list[TableSchema]:
        """The tables of the stream as they are in the catalog now."""
        return [t.bare for t in self._describe(self._chosen)]

    def publish(self) -> list[TableSchema]:
        """Add every chosen table to the stream (CORRECTNESS 18). A consistent snapshot that is
        opened afterwards and the segments that begin afterwards meet without a gap. Returns the
        tables' schemas."""
        with self._members, self._control() as control:
            self._chosen = chosen(self._store)
            tables = self._describe(self._chosen)
            self._tell_missed(control.add_tables(tables, self._wait()))
            self._follow(tables + self._unreported(tables))
            reported = _with_members(control, [t.bare for t in tables])
        failpoints.hit("tables_published")
        return reported

    def _tell_missed(self, added: Sequence[TableSchema]) -> None:
        """Report copied tables that the stream did not carry. If somebody took a table out of the
        stream, it would come back with a hole: from now on no look into the catalog shows that it
        was missing. A table that was created again under the copy's name is another table; the next
        look reports that."""
        rows = {r.id: r for r in self._store.tables()}
        for table in added:
            row = rows.get(table.id)
            if row is None or row.state is not TableState.REPLICATING or row.is_resync_asked:
                continue
            if row.schema is None or row.schema.native_id == table.native_id:
                self._on_fault(row.id, "source:table-unpublished", {})

    def withdraw(self, table: TableSelection, known: TableSchema | None) -> None:
        """Remove this table from the stream, also where the source has another table of that name
        by now."""
        with self._members, self._control() as control:
            self._chosen = tuple(t for t in self._chosen if t.id != table.id)
            schemas = [*self._describe([table]), *([known] if known is not None else [])]
            control.remove_tables(schemas)
            self._follow(self.describe())
        failpoints.hit("tables_withdrawn")

    def _follow(self, tables: Sequence[TableSchema]) -> None:
        """The stream carries these tables now; the head of the next segment names them. A closed
        stream begins with them when it is opened again."""
        if not self.capture.is_source_closed:
            self.capture.follow(tables)

    def _control(self) -> SourceControl:
        return self._job.source.control(
            self._job.source_params, self._job.slot, self._store.memory().position
        )

    def prepare(
        self, position: Position | None, wait: SnapshotWait
    ) -> tuple[Position, FirstSnapshot | None]:
        """Create or verify slot and publication (CORRECTNESS 23). A lost position fails every table
        until a person asks for its re-sync, and the log starts again. Returns where the log starts
        and, if it starts now, the first consistent snapshot with its tables."""
        tables = self._describe(self._chosen)
        if position is not None:
            try:
                self._reader.prepare(tables, position)
            except ReplicationError as err:
                if not err.message.ends_log:
                    raise
                fail_all(self._store, err)
                with self._control() as control:
                    control.drop()
            else:
                self._note_members()
                return position, None
        self._reader.prepare(tables, None, wait)
        with self._control() as control:
            reported = _with_members(control, [t.bare for t in tables])
        session = self._first_view(wait)
        found = session.point.position
        if position is None and self._job.skips_copy:
            self._start_without_copy(unmoved(reported, self.schemas()), found)
        self._store.record_start(found)
        self._backlog.begun_again(found)
        where = places(session, reported)
        return found, (session, unmoved(reported, self.schemas()), where)

    def _start_without_copy(self, schemas: Sequence[TableSchema], position: Position) -> None:
        """These tables begin where the log begins. This is recorded before the log's start is: a
        crash between the two starts another log, and then it is recorded again."""
        ordinal = position.ordinal
        after = last_sequence(self._backlog.last_before(ordinal))
        waiting = {r.id for r in self._store.tables() if r.state is TableState.WAITING}
        for schema in schemas:
            if schema.id not in waiting:
                continue
            if self._columns is ColumnKnowledge.BY_STATEMENTS:
                numbered = with_numbers(schema)
                schema = replace(numbered, upto=ordinal, read_upto=ordinal, copy_numbers=True)
            self._store.table_progress(
                schema.id, schema=schema.bare, snapshot_position=ordinal, starts_after=after
            )
        failpoints.hit("starts_recorded")

    def _note_members(self) -> None:
        """Older copies did not remember their tables' numbers in the stream. Record these numbers
        now."""
        rows = [r for r in self._store.tables() if r.schema is not None and not r.schema.member]
        schemas = [r.schema for r in rows if r.schema is not None and r.is_snapshot_done]
        if not schemas:
            return
        with self._control() as control:
            for schema in _with_members(control, schemas):
                if schema.member:
                    self._store.table_progress(schema.id, schema=schema)

    def start(self, position: Position) -> None:
        """Read after `position`, in a thread."""
        self.capture = self._make_capture(
            self._log,
            self._store,
            self._settings,
            describe=self.describe,
            next_number=self._next_number,
            on_seal=self._sealed,
            idle=self._idle,
        )
        self.capture.begin(position, self.describe())
        self._thread = threading.Thread(target=self.capture.run, name="capture", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Reconnect after a cut, a limited number of times. Raise everything else that ended
        capture. Where the log can't go on, the tables say so at once, as at a start."""
        fault = self.capture.fault
        if fault is None or self.capture.is_source_closed:
            return
        try:
            self._count(fault)
            self._reader.close()
            self._drop_cut_transaction()
            self._connect_again()
        except ReplicationError as err:
            if err.message.ends_log:
                fail_all(self._store, err)
            raise

    def hold(self, hours_left: float | None) -> None:
        """While there is no room, or while the source's log runs out, do what the options say with
        what is held at the source. `hours_left`: for how long the source keeps its log. A closed
        connection is opened again as soon as there is room."""
        capture = self.capture
        if capture.is_source_closed and not capture.look_for_space():
            logger.info("The change log has room again; connecting to the source.")
            capture.is_source_closed = False
            self._drop_cut_transaction()
            self._connect_again()
            return
        match self._job.options.holding.due(capture.stalled_seconds, hours_left):
            case Act.CLOSE if not capture.is_source_closed:
                logger.warning("The change log is full; the connection to the source is closed.")
                capture.is_source_closed = True
                self.stop()
                self.close()
            case Act.GIVE_UP:
                self._give_up(hours_left)

    def _give_up(self, hours_left: float | None) -> NoReturn:
        """Remove what we hold at the source. Tables are marked first: after a crash between the two
        the next run would find nothing to tell that changes are missing."""
        capture = self.capture
        if not capture.is_source_closed:
            capture.is_source_closed = True
            self.stop()
            self.close()
        reason = "the change log stayed full" if capture.stalled_seconds is not None else ""
        least = self._job.options.holding.least_hours
        if hours_left is not None and hours_left < least:
            reason = f"the source keeps its log for less than {least:g} hours"
        err = ReplicationError("source:position-given-up", reason=reason)
        fail_all(self._store, err)
        with self._control() as control:
            control.drop()
        raise err

    def copied(self, schema: TableSchema) -> TableSchema:
        """The schema of a copy that was read up to now. Where columns are known by statements, it
        has the place where the copy's log ends."""
        if self._columns is not ColumnKnowledge.BY_STATEMENTS:
            return schema.bare
        with self._control() as control:
            return replace(schema.bare, read_upto=control.status().end)

    def is_done(self, row: TableRow, position: int) -> bool:
        """Whether everything of the table up to that place of the log is decoded and merged. Makes
        no query."""
        captured = self.capture.position
        return captured is not None and self._backlog.is_done(row.id, position, captured.ordinal)

    @property
    def is_in_bulk(self) -> bool:
        """Whether the source sends what was written long before."""
        return self.capture.is_in_bulk

    def mark(self) -> None:
        """Let the log advance by one segment, also where nothing happens at the source."""
        self.capture.mark()

    def stop(self) -> None:
        """Seal what is complete, and end reading."""
        self.capture.stop()
        self._thread.join()

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()

    def _open(self) -> None:
        """Open a reader for this kind of source, and the capture thread that fits it."""
        source, params = self._job.source, self._job.source_params
        if source.poll is not None:
            polls = source.poll.reader(params, self._job.slot)
            seconds = source.poll.seconds(params)
            if isinstance(polls, NeedsTasks):
                polls.use_tasks(self._tasks, self._progressed)
            self._reader: LogReader | PollReader = polls
            self._make_capture: Callable[..., CaptureThread] = partial(
                PollCapture,
                polls,
                files=self._files,
                seconds=seconds,
                watchdog=self._watchdog,
            )
        else:
            assert source.log is not None
            reader = source.log.reader(params, self._job.slot)
            self._reader, self._make_capture = reader, partial(Capture, reader)

    def _progressed(self, rows: int) -> None:
        """The source begins a step over so many rows, in a poll or for a copy."""
        for step in ("poll", "prepare", *(f"snapshot of {t.id}" for t in self._chosen)):
            self._watchdog.extend(step, rows)

    def _first_view(self, wait: SnapshotWait) -> SnapshotSession:
        opener: FirstSnapshotOpener[Any] = self._job.source.stream.snapshot_first
        return opener(self._job.source_params, self._job.slot, self._reader, wait)

    def _sealed(self, row: SegmentRow | None, files: Sequence[ChangeFileRow] = ()) -> None:
        if row is not None:
            self._backlog.sealed(row, files)
            self._next_number = row.number + 1
        self._on_seal()

    def _count(self, fault: BaseException) -> None:
        """Wait before the next try, or raise."""
        translated = (
            fault if isinstance(fault, ReplicationError) else self._job.source.translate(fault)
        )
        is_cut = isinstance(translated, ReplicationError) and translated.retry is Retry.AUTO
        if isinstance(fault, ReplicationError) and fault.code.startswith("run:"):
            # Not the source's fault: a segment may be recorded that this process does not know.
            is_cut = False
        if time.monotonic() - self._reconnected_at > QUIET_SECONDS:
            self._reconnects = 0
        if not is_cut or self._reconnects >= len(RECONNECT_SECONDS):
            raise translated from fault
        logger.warning("Capture stopped (%s); connecting again.", translated)
        self._stop.wait(RECONNECT_SECONDS[self._reconnects])
        self._reconnects += 1
        self._reconnected_at = time.monotonic()

    def _drop_cut_transaction(self) -> None:
        with self._files.lock:
            tail = [s.number for s in self._store.segments() if not s.is_closed]
            if tail:
                dropped = discard_open_tail(self._store, self._log)
                logger.info("Dropped %d segments of a transaction that was cut.", dropped)
                known = {s.number for s in self._store.segments()}
                self._backlog.dropped(n for n in tail if n not in known)

    def _connect_again(self) -> None:
        memory = self._store.memory()
        assert memory.position is not None
        self._open()
        self._next_number = 1 + max(memory.last_segment, self._log.highest_number())
        try:
            self._reader.prepare(self.describe(), memory.position)
            self.start(memory.position)
        except ReplicationError as err:
            self._reader.close()
            if err.message.ends_log or err.retry is not Retry.AUTO:
                raise
            self.capture.fault = err


def _with_members(control: SourceControl, tables: Sequence[TableSchema]) -> list[TableSchema]:
    """The schemas with the tables' numbers in the stream, where the source has such numbers."""
    found = control.members(tables) if isinstance(control, HasMembers) else {}
    return [replace(t, member=found.get(t.id, 0)) for t in tables]
