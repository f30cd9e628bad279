"""The decode thread: takes runs of sealed segments from the backlog and lists their change files.
`decode` decodes a segment."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from replicators.connectors.log import Poison
from replicators.connectors.model.schema import TableId
from replicators.connectors.poll import Polled
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.tasks import Tasks
from runners.engine import failpoints
from runners.engine.changelog.backlog import Backlog
from runners.engine.changelog.segments import ChangeLog
from runners.engine.decode.job import Decoded, decode_segments, task_for
from runners.engine.decode.polled import write_polled
from runners.engine.errors import fail_all, fail_table, unsupported
from runners.engine.sizes import NO_LIMITS, Limits
from runners.engine.store.protocol import (
    ChangeFileRow,
    SegmentRow,
    Store,
    TableRow,
    TableState,
    is_live,
)
from runners.engine.watchdog import Watchdog

logger = logging.getLogger("replicator.run")

WAIT_SECONDS = 5.0
"""For a stop that did not wake the thread."""
SEGMENTS_A_JOB = 32
BYTES_A_JOB = 256 << 20
BYTES_HERE = 12 << 20
"""Bytes of segments that are decoded in this process: a job takes longer than decoding them."""


def one_job(rows: Sequence[SegmentRow]) -> list[SegmentRow]:
    """The first segments that one job decodes: many small ones at once, few large ones, so that
    files are listed soon."""
    taken: list[SegmentRow] = []
    size = 0
    for row in rows:
        size += row.size_bytes
        if taken and size > BYTES_A_JOB:
            break
        taken.append(row)
    return taken


def _is_in_copy(row: TableRow, poison: Poison) -> bool:
    """Whether the fault is older than the table's copy."""
    return row.is_snapshot_done and 0 < poison.position < row.snapshot_position


def missed(rows: Iterable[TableRow], passed: Mapping[int, int]) -> list[TableId]:
    """The tables whose rows were passed over though their copies should have them. `passed` has the
    highest such position for each table number. As far as we know it can't happen. But it did once,
    and a hole that nobody sees is the worst fault."""
    return [
        row.id
        for row in rows
        if row.state is TableState.REPLICATING
        and not row.is_resync_asked
        and row.schema is not None
        and passed.get(row.schema.native_id, -1) >= row.snapshot_position
    ]


class Decoding:
    """Runs until `stop`. A fault ends it; `check` raises that fault. Nothing is decoded while
    somebody holds `lock`. Without a `decoder` there is nothing to decode: polled changes get their
    change files at once (`polled`)."""

    def __init__(
        self,
        tasks: Tasks,
        decoder: str | None,
        store: Store,
        log: ChangeLog,
        backlog: Backlog,
        watchdog: Watchdog,
        stop: threading.Event,
        on_poison: Callable[[TableId, str, Mapping[str, str]], None],
        limits: Limits = NO_LIMITS,
        *,
        grows: str = "",
    ) -> None:
        self._tasks = tasks
        self._limits = limits
        self._decoder = decoder
        self._grows = grows
        self._store = store
        self._log = log
        self._backlog = backlog
        self._watchdog = watchdog
        self._stop = stop
        self._on_poison = on_poison
        self._wake = threading.Event()
        self._passed: dict[int, int] = {}
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="decode", daemon=True)
        self.lock = threading.Lock()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """A segment was sealed."""
        self._wake.set()

    def check(self) -> None:
        """Raise what ended the thread."""
        if self._fault is not None:
            raise self._fault

    def join(self) -> None:
        """Wait for its end, after `stop` was set."""
        self._wake.set()
        self._thread.join()

    def drop(self, table: TableId) -> None:
        """Forget every change file of a table that was removed. A job that is decoding the table
        ends first."""
        with self.lock:
            touched = self._backlog.touched(table)
            self._log.unlink(self._store.drop_changes(table))
            self._backlog.mark(table, (), touched)

    def polled(self, number: int, found: Polled) -> list[ChangeFileRow]:
        """The durable change files of polled changes. The caller holds `lock`, and lists the files
        with the segment."""
        prefix = self._log.change_prefix(number)
        done = write_polled(number, found, prefix, self._limits)
        failpoints.hit("change_files_written")
        return self._kept(done)

    def again(self, number: int, table: TableId | None = None) -> None:
        """A change file of the table was damaged: decode its segment once more, to the same
        numbers. Polled changes have no other form, so then only a fresh copy of the table helps."""
        if self._decoder is None:
            if table is not None:
                facts = {"segment": str(number), "offset": "0"}
                self._on_poison(table, "log:segment-corrupt", facts)
            return
        logger.warning("A change file of segment %d is damaged; decoding it again.", number)
        with self.lock:
            rows = [s for s in self._store.segments() if s.number == number]
            if rows:  # otherwise it was pruned while somebody read it
                self._decode(rows)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._wake.wait(WAIT_SECONDS)
                self._wake.clear()
                while not self._stop.is_set() and self._decode_some():
                    pass
        except BaseException as err:  # noqa: BLE001 - handed to the run's thread
            self._fault = err

    def _decode_some(self) -> bool:
        with self.lock:
            rows = one_job(self._backlog.undecoded(SEGMENTS_A_JOB))
            if not rows:
                return False
            with self._watchdog.step("decode"):
                self._decode(rows)
        return True

    def _decode(self, rows: Sequence[SegmentRow]) -> None:
        """Step 4: change files written, then listed with the segments' marks in one transaction."""
        numbers = [r.number for r in rows]
        tasks = [task_for(r, self._log.change_prefix(r.number), self._limits) for r in rows]
        try:
            assert self._decoder is not None
            is_here = sum(r.size_bytes for r in rows) <= BYTES_HERE
            done = decode_segments(
                self._tasks, tasks, self._decoder, is_here=is_here, grows=self._grows
            )
        except ReplicationError as err:
            if err.code != "log:segment-corrupt":
                raise
            fail_all(self._store, err)
            self._copy_again()
            self._store.record_decoded(numbers, [])
            self._backlog.decoded(numbers, [])
            return
        failpoints.hit("change_files_written")
        files = self._kept(done)
        self._store.record_decoded(numbers, files)
        failpoints.hit("change_files_listed")
        self._backlog.decoded(numbers, files)
        self._tell_missed(self._live().values(), done.passed)

    def _live(self) -> dict[TableId, TableRow]:
        return {r.id: r for r in self._store.tables() if is_live(r)}

    def _kept(self, done: Decoded) -> list[ChangeFileRow]:
        """The files of tables that are copied and can continue; the other files are removed. Tables
        that can't continue get their fault."""
        self._log.added(sum(f.size_bytes for f in done.files))
        known = self._live()
        live = self._without_unsupported(known, done.faults)
        files = [f for f in done.files if f.table in live]
        gone = [f.path for f in done.files if f.table not in live]
        if gone:
            self._log.unlink(gone)
        for _, poison in done.poisons:
            if poison.table in known and not _is_in_copy(known[poison.table], poison):
                self._on_poison(poison.table, poison.code, poison.facts)
        return files

    def _copy_again(self) -> None:
        """Tables whose copies are not done lack the lost changes too: copy them in a consistent
        snapshot that is opened after these changes."""
        for row in self._store.tables():
            if is_live(row) and not row.is_snapshot_done:
                self._store.table_progress(row.id, is_resync_asked=True)

    def _tell_missed(self, rows: Iterable[TableRow], passed: Mapping[int, int]) -> None:
        """Report tables whose rows were passed over. Rows that were passed over during a table's
        copy are remembered, and reported once the copy is done."""
        for number, position in passed.items():
            self._passed[number] = max(position, self._passed.get(number, position))
        for table in missed(rows, self._passed):
            self._on_poison(table, "log:rows-passed-over", {})

    def _without_unsupported(
        self, rows: Mapping[TableId, TableRow], faults: Mapping[TableId, str]
    ) -> set[TableId]:
        """The tables whose files are listed: not those that stop at an unsupported value."""
        stopped = {table: why for table, why in faults.items() if table in rows}
        stopped = {t: why for t, why in stopped.items() if not rows[t].quarantines}
        for table, why in stopped.items():
            code, facts = unsupported(why)
            fail_table(self._store, table, code, {"table": str(table), **facts})
        return set(rows) - set(stopped)
