"""Reads both sides of one table: whole, in tasks that write pair files; and again, the rows that
differ."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.reading import CurrentRows, Divisible
from replicators.connectors.snapshot import (
    Chunk,
    ChunkReader,
    OwnSnapshotSession,
    ResumableSession,
    SnapshotSession,
)
from replicators.connectors.source import RowReader
from replicators.connectors.tasks import Tasks
from runners.engine.verify import pairs
from runners.engine.verify.following import Stopped
from runners.engine.verify.hashing import Hashes
from runners.engine.verify.pairs import Bucket, Candidates, Part, Plan
from runners.engine.verify.settle import Pending
from runners.engine.verify.throttle import Throttle

KEYS_A_QUERY = 1000
KEYS_MOST = 3000
BYTES_A_PART = 64 << 20
CHUNKS_A_JOB = 4
JOBS_AT_ONCE = 2
BUCKETS_A_JOB = 8
RENEW_SECONDS = 600.0
TURN_SECONDS = 1.0
R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tools:
    """What reading needs: tasks, the throttle of the source, and whether to stop. `on_turn` hears
    about once a second that something goes on."""

    tasks: Tasks
    throttle: Throttle
    should_stop: Callable[[], bool]
    on_turn: Callable[[], None] = lambda: None

    def check(self) -> None:
        """Raise `Stopped` where a stop was asked."""
        if self.should_stop():
            raise Stopped
        self.on_turn()

    def result(self, future: Future[R]) -> R:
        """What the future gives. `Stopped`."""
        while True:
            try:
                return future.result(timeout=TURN_SECONDS)
            except TimeoutError:
                if future.done():
                    raise
                self.check()

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """As the tasks' own. A stop does not wait for them."""
        pool = ThreadPoolExecutor(1, "verify-tasks")
        try:
            return self.result(pool.submit(self.tasks.map, function, items))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Source:
    """A table inside a consistent snapshot of the source."""

    session: SnapshotSession
    read: ChunkReader

    def chunks(self, plan: Plan, rows: int) -> list[Chunk]:
        """The table's chunks."""
        return self.session.plan(plan.schema, rows_per_chunk=rows)

    def layout(self, plan: Plan) -> str:
        """Stays the same while chunks stay good in later snapshots; empty where they don't."""
        session = self.session
        return session.layout(plan.schema) if isinstance(session, ResumableSession) else ""

    def position(self, plan: Plan) -> int:
        """The log position that the chunks belong to; call it before `chunks`."""
        point = self.session.point
        if isinstance(self.session, OwnSnapshotSession):
            point = self.session.point_of(plan.schema, is_exact=not plan.key)
        return point.position.ordinal

    def mapped(
        self,
        tools: Tools,
        function: Callable[[Chunk], R],
        chunks: Sequence[Chunk],
        is_over: Callable[[], bool] = lambda: False,
    ) -> Iterator[list[R]]:
        """What the function gives for each chunk, job by job, in order; no further job begins once
        `is_over`. `source:snapshot-lost`; `Stopped`, which does not wait for the jobs: they end
        with the session."""
        a_job, at_once = (1, 1) if tools.throttle.is_on else (CHUNKS_A_JOB, JOBS_AT_ONCE)
        waiting = deque(chunks[at : at + a_job] for at in range(0, len(chunks), a_job))
        running: deque[Future[list[R]]] = deque()
        pool, is_stopped = ThreadPoolExecutor(at_once, "verify-source"), False
        try:
            while waiting or running:
                tools.check()
                while waiting and len(running) < at_once and not is_over():
                    running.append(pool.submit(tools.tasks.map, function, waiting.popleft()))
                if not running:
                    return
                try:
                    done = tools.result(running.popleft())
                except Exception as err:
                    if not self.session.is_alive():
                        raise ReplicationError("source:snapshot-lost") from err
                    raise
                yield done
        except Stopped:
            is_stopped = True
            raise
        finally:
            pool.shutdown(wait=not is_stopped, cancel_futures=is_stopped)


def read_source(
    source: Source,
    held: ExitStack,
    opened: Callable[[], AbstractContextManager[Source]],
    tools: Tools,
    plan: Plan,
    chunks: Sequence[Chunk],
    on_part: Callable[[Part], None],
    *,
    timer: Callable[[], float] = time.monotonic,
) -> list[Part]:
    """Read the whole table into pair files. Where chunks stay good, a new consistent snapshot takes
    the place of one that is some minutes old: an old one keeps the source from removing old rows.
    A row that moved between chunks meanwhile only makes a candidate. `held` holds the source's
    snapshot."""
    parts: list[Part] = []
    layout = source.layout(plan)
    while len(parts) < len(chunks):
        began = timer()
        function = partial(pairs.read_source, read=source.read, plan=plan)
        for done in source.mapped(
            tools,
            function,
            chunks[len(parts) :],
            lambda began=began: bool(layout) and timer() - began > RENEW_SECONDS,  # type: ignore[misc]
        ):
            for part in done:
                on_part(part)
            parts += done
            tools.throttle.pause(sum(p.rows for p in done), sum(p.size_bytes for p in done))
        tools.check()
        if len(parts) < len(chunks):
            held.close()
            source = held.enter_context(opened())
            if source.layout(plan) != layout:
                raise ReplicationError("source:snapshot-lost")
    return parts


def read_target(tools: Tools, plan: Plan, rows: CurrentRows) -> list[Part]:
    """Read the target's rows into pair files."""
    return tools.tasks.map(partial(pairs.read_target, plan=plan), _parts(rows))


def _parts(rows: CurrentRows) -> Sequence[CurrentRows]:
    return rows.parts(BYTES_A_PART) if isinstance(rows, Divisible) else [rows]


def compare(
    tools: Tools, plan: Plan, source: Sequence[Part], target: Sequence[Part]
) -> list[Candidates]:
    """The candidates of all buckets."""
    ours, theirs = (tuple(p for part in side for p in part.paths) for side in (source, target))
    buckets = [Bucket(n, ours, theirs) for n in range(plan.buckets)]
    found: list[Candidates] = []
    for at in range(0, len(buckets), BUCKETS_A_JOB):
        tools.check()
        found += tools.map(partial(pairs.compare, plan=plan), buckets[at : at + BUCKETS_A_JOB])
    return found


class KeyedLookup:
    """Reads source rows by key."""

    def __init__(self, reader: Callable[[], RowReader], tools: Tools, plan: Plan) -> None:
        self._reader = reader
        self._tools = tools
        self._plan = plan

    def __call__(self, pending: Pending) -> tuple[pa.Table, int]:
        """The rows that the table's filter keeps."""
        assert pending.keys is not None
        plan, found, end = self._plan, [self._plan.arrow.empty_table()], 0
        with self._reader() as reader:
            for at in range(0, max(len(pending), 1), KEYS_A_QUERY):
                self._tools.check()
                rows, end = reader.read(plan.schema, pending.keys.slice(at, KEYS_A_QUERY))
                kept = pairs.filtered(rows, plan.schema).select(list(plan.columns))
                found.append(kept.cast(plan.arrow))
                self._tools.throttle.pause(rows.num_rows, rows.nbytes)
        return pa.concat_tables(found), end


class ScanLookup:
    """Finds source rows in a new consistent snapshot: for tables without a key, and sources that
    read no rows by key. `now` gives the log's end."""

    def __init__(
        self,
        opened: Callable[[], AbstractContextManager[Source]],
        tools: Tools,
        plan: Plan,
        rows_a_chunk: int,
        now: Callable[[], int],
    ) -> None:
        self._opened = opened
        self._tools = tools
        self._plan = plan
        self._rows = rows_a_chunk
        self._now = now

    def __call__(self, pending: Pending) -> tuple[pa.Table, int]:
        """Reads the whole table."""
        plan, found = self._plan, [self._plan.arrow.empty_table()]
        with self._opened() as source:
            position = source.position(plan)
            function = partial(
                pairs.search_source, read=source.read, plan=plan, wanted=pending.hashes
            )
            chunks = source.chunks(plan, self._rows)
            for done in source.mapped(self._tools, function, chunks):
                found += [pairs.from_ipc(f.rows) for f in done if f.count]
                self._tools.throttle.pause(sum(f.read for f in done), sum(f.size for f in done))
        return pa.concat_tables(found), max(position, self._now())


def target_lookup(
    opened: Callable[[], AbstractContextManager[CurrentRows]], tools: Tools, plan: Plan
) -> Callable[[Pending], pa.Table]:
    """Reads target rows: by key, or without one, or for many keys, by a search through the
    table."""

    def by_key(pending: Pending) -> pa.Table:
        assert pending.keys is not None
        found = [plan.arrow.empty_table()]
        with opened() as rows:
            for at in range(0, len(pending), KEYS_A_QUERY):
                tools.check()
                keys = pending.keys.slice(at, KEYS_A_QUERY)
                found.append(rows.rows_by_keys(keys, plan.columns).cast(plan.arrow))
        return pa.concat_tables(found)

    def by_search(pending: Pending) -> pa.Table:
        with opened() as rows:
            function = partial(pairs.search_target, plan=plan, wanted=pending.hashes)
            found = tools.map(function, _parts(rows))
        return pa.concat_tables([pairs.from_ipc(f.rows) for f in found])

    def by_either(pending: Pending) -> pa.Table:
        return by_key(pending) if len(pending) <= KEYS_MOST else by_search(pending)

    return by_either if plan.key else by_search


def hashes_of(found: Sequence[Candidates], most: int) -> tuple[Hashes, int]:
    """The candidates of a table without a key, at most so many, and how many there are."""
    rows = [np.frombuffer(c.rows, np.uint64).reshape(-1, 3)[:, 0] for c in found if c.rows]
    every = np.sort(np.concatenate(rows)) if rows else np.zeros(0, np.uint64)
    return every[:most], sum(c.count for c in found)
