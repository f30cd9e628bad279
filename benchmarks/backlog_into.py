"""Lines `postgresql-backlog`, `bigquery-backlog` and those like them: up to 1.6 million row changes
wait in PostgreSQL's log while the run stands still. The lines measure from the run's continuation
until a reader sees the last change in the target. The peers are PostgreSQL's own logical
replication, whose subscription is disabled meanwhile, and dlt."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks import emulator, place
from benchmarks.copied import POSTGRESQL_SUMS, POSTGRESQL_TABLE
from benchmarks.copy_into import rest, share
from benchmarks.dlt_into import Dlt, Loaded, Way, dlt
from benchmarks.into import OURS, Into, IntoPostgresql
from benchmarks.native import SERVER, STREAMED, Native, pair
from benchmarks.report import Peer, Result
from benchmarks.resources import Cpu
from benchmarks.run import EngineRun
from benchmarks.waits import within
from benchmarks.workload import DDL, STEP, TABLE
from demo.postgres import EmbeddedPostgres

INSERTS = 1_000_000
LIMIT_SECONDS = 600.0
LOOK_SECONDS = 0.05
FIRST, LAST = -2, -1
"""Keys of two small rows: one before the changes and one after them."""
WAY = Way("connectorx", "parquet")
NATIVE = "logical replication"
DLT = (
    "The peer has no reader of the log. It merges the rows whose key is above the last one that "
    "it has, which are all rows that the changes leave; it sees neither deletes nor what a row was "
    "before. Its figure counts all changes all the same. It ran once. Both processes have "
    "loaded a row before their clocks begin, so no start and no import counts. Its clock ends with "
    "its load, ours when a reader, who looks every 0.05 s, has seen the last change."
)


class Changes:
    """The changes of a source: inserts, updates of half of the rows, deletes of a tenth."""

    def __init__(self, source: EmbeddedPostgres, inserts: int = INSERTS) -> None:
        self.source = source
        self.inserts = place.scaled(inserts, 10 * STEP)
        self.updates, self.deletes = self.inserts // 2, self.inserts // 10
        self.count = self.inserts + self.updates + self.deletes

    def prepare(self) -> None:
        """Make the table, with its key as what the log tells of old rows, and one row."""
        self.source.execute(DDL)
        self.source.execute("ALTER TABLE bench.events REPLICA IDENTITY DEFAULT")
        self.add(FIRST)

    def add(self, key: int) -> None:
        """Add a small row."""
        self.source.execute(f"INSERT INTO bench.events (id) VALUES ({key})")

    def make(self) -> None:
        """Make the changes, and the last row."""
        began = time.monotonic()
        counts = f"{self.inserts}, {self.updates}, {self.deletes}"
        self.source.execute(f"CALL bench.change({counts}, {STEP})")
        self.add(LAST)
        place.logger.info("made %d changes in %.1f s", self.count, time.monotonic() - began)

    def sums(self) -> tuple[int, ...]:
        """Checksums of the source's table."""
        return tuple(int(v or 0) for v in self.source.execute(POSTGRESQL_SUMS)[0])


def measure(line: str) -> list[Result]:
    """Ours and the peers, one after the other, on the same changes."""
    return _postgresql(line) if line == "postgresql-backlog" else _emulated(line)


def _postgresql(line: str) -> list[Result]:
    with place.folder(line) as folder, pair() as (source, server), ExitStack() as stack:
        changes, into = Changes(source), IntoPostgresql(server)
        changes.prepare()
        native = Native(source, server, "native", is_binary=True)
        native.prepare(POSTGRESQL_TABLE, ["bench.events"])
        native.subscribe()
        native.wait(STREAMED)
        native.hold()
        process = begin_dlt(stack, folder, source, into, WAY)
        ours, spent, _ = run(folder, source, into, changes, is_paced=True)
        rest(source, server)
        theirs = native_seconds(native, into)
        rest(source, server)
        loaded = process.load()
        right = changes.sums()
        checked = into.sums(OURS) == right == into.sums(native.name)
        peer = loaded.peer(changes.count, lambda: into.sums("dlt") == right)
    mine, limit = changes.count / ours, changes.count / theirs
    beside = Result(
        line, "row changes/s", round(mine), 0.5, (Peer(NATIVE, round(limit)),),
        round(mine / limit, 2), checked=checked,
        note=f"{ours:.1f} s from going on to the last change at the target, read from the log, "
        f"decoded and merged; {NATIVE} (with the option binary) {theirs:.1f} s from ENABLE. Each "
        f"ran once, one after the other. CPU seconds of ours: {spent}.",
    )  # fmt: skip
    return [beside, beside_dlt(beside, peer, 5, DLT)]


def _emulated(line: str) -> list[Result]:
    there = emulator.of(line)
    with (
        place.folder(line) as folder,
        there.open(folder) as into,
        EmbeddedPostgres(fsync=False, options=SERVER) as source,
        ExitStack() as stack,
    ):
        changes = Changes(source, there.rows // 4)
        changes.prepare()
        process = begin_dlt(stack, folder, source, into, there.ways[-1])
        ours, spent, waited = run(folder, source, into, changes)
        rest(source)
        loaded = process.load()
        right = changes.sums()
        checked = into.sums(OURS) == right
        peer = loaded.peer(changes.count, lambda: into.sums("dlt") == right)
    mine = changes.count / ours
    ratio = round(mine / peer.value, 2) if peer.value else None
    note = (
        f"{changes.count:,} changes; {ours:.1f} s from going on to the last change in "
        f"{there.said}, read from the log, decoded and merged. {share(ours, waited)}"
        f"CPU seconds: {spent}. {DLT}"
    )
    return [
        Result(line, "row changes/s", round(mine), 3, (peer,), ratio, checked=checked, note=note)
    ]


def begin_dlt(
    stack: ExitStack, folder: Path, source: EmbeddedPostgres, into: Into, way: Way
) -> Dlt:
    """A process of dlt that has loaded the first row."""
    into.fresh("dlt")
    where, dataset = into.for_dlt("dlt")
    process = stack.enter_context(dlt(folder, way, source.dsn(), where, dataset, "id"))
    first: Loaded = process.load()
    place.logger.info("dlt's first load: %s", first)
    return process


def run(
    folder: Path, source: EmbeddedPostgres, into: Into, changes: Changes, *, is_paced: bool = False
) -> tuple[float, str, float]:
    """Let ours replicate, hold it, make the changes, and let it go on; returns its seconds, what
    its CPU time went into, and the seconds in which it waited for answers of an HTTP service."""
    into.fresh(OURS)
    name, values = into.plugin.name, into.values(OURS)
    with EngineRun(
        folder, source.params(), values, [TABLE], into=name, is_paced=is_paced
    ) as engine:
        engine.wait_replicating()
        engine.wait(lambda _: into.has(OURS, FIRST))
        engine.hold()
        changes.make()
        rest(source)
        cpu, began = Cpu(), time.time()
        engine.go_on()
        engine.wait(lambda _: into.has(OURS, LAST), LIMIT_SECONDS, pause_seconds=LOOK_SECONDS)
        ended, spent = time.time(), cpu.said()
    return ended - began, spent, within(engine.waits(), began, ended)


def native_seconds(native: Native, into: Into) -> float:
    """The native one's seconds from ENABLE to the last change."""
    began = time.monotonic()
    native.go_on()
    while not into.has(native.name, LAST):
        if time.monotonic() - began > LIMIT_SECONDS:
            raise TimeoutError(f"{NATIVE} takes longer than {LIMIT_SECONDS:.0f} s")
        time.sleep(0.05)
    seconds = time.monotonic() - began
    native.end()
    return seconds


def beside_dlt(ours: Result, peer: Peer, target: float, note: str) -> Result:
    """Our figure compared with dlt's."""
    ratio = round(ours.ours / peer.value, 2) if peer.value else None
    return Result(
        f"{ours.line}-dlt", ours.unit, ours.ours, target, (peer,), ratio, checked=ours.checked,
        note=note,
    )  # fmt: skip
