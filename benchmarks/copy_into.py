"""Lines `postgresql-copy`, `bigquery-copy` and those like it: our first copy of a PostgreSQL table
into a database or a warehouse. The peers are PostgreSQL's own logical replication and dlt."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import emulator, place
from benchmarks.copied import POSTGRESQL_TABLE, Copied, postgresql
from benchmarks.dlt_into import Way, dlt
from benchmarks.into import OURS, Into, IntoPostgresql, params
from benchmarks.native import COPIED, Native, pair
from benchmarks.report import Peer, Result
from benchmarks.resources import Cpu, turn
from benchmarks.snapshot import copy
from benchmarks.waits import counted, within
from demo.postgres import EmbeddedPostgres

ROWS = 4_000_000
INTO_POSTGRESQL = (Way("pyarrow", "csv"), Way("connectorx", "parquet"))
NATIVE = "logical replication"
BINARY = "logical replication, binary"
"""The subscription's option `binary`: PostgreSQL sends the copy's rows in their binary form."""
DLT = (
    "The peer loads the same table into the same server, once, alone; its clock begins after its "
    "imports. A figure is given only where its table holds what the source holds, each column by "
    "itself and together with the key. The ratio is to the best of them."
)


def measure(line: str) -> list[Result]:
    """One of the lines. Rounds alternate; the first one warms up and does not count. dlt's turn
    comes at the end, alone."""
    return _postgresql(line) if line == "postgresql-copy" else _emulated(line)


def _postgresql(line: str) -> list[Result]:
    rows = place.scaled(ROWS, 1000)
    with place.folder(line) as folder, pair() as (source, server), postgresql(rows, source) as made:
        into = IntoPostgresql(server)
        right = made.sums()
        natives = [Native(source, server, "native"), Native(source, server, "native_binary", True)]
        theirs, ours, checked, spent = _rounds(folder, made, into, natives, right)
        by_dlt = by_ways(folder, made, into, INTO_POSTGRESQL, right)
    return [
        _beside_native(line, rows, ours, theirs, checked, spent),
        beside_dlt(f"{line}-dlt", rows, ours, by_dlt, 5, checked, DLT),
    ]


def _rounds(
    folder: Path, made: Copied, into: IntoPostgresql, natives: Sequence[Native],
    right: tuple[int, ...]
) -> tuple[list[list[float]], list[float], bool, str]:  # fmt: skip
    """Seconds of each round of each native peer, and of ours; whether all rows were right; the CPU
    seconds of our last round."""
    theirs: list[list[float]] = [[] for _ in natives]
    ours, checked, schema = [], True, made.describe()
    into.fresh(OURS)
    with place.spark(folder, params(into, OURS), plugin=into.plugin) as spark:
        for number in range(place.ROUNDS):
            for seconds, native in zip(theirs, natives, strict=True):
                seconds.append(copy_by_native(native))
                checked = checked and into.sums(native.name) == right
                into.fresh(native.name)
            into.fresh(OURS)
            rest(into.server)
            cpu = Cpu()
            with turn():
                ours.append(
                    copy(spark, folder, params(into, OURS), made, schema, number, into.plugin)
                )
            spent = cpu.said()
            place.logger.info("ours %.2f s: %s; theirs %s", ours[-1], spent, theirs)
            checked = checked and into.sums(OURS) == right
    return theirs, ours, checked, spent


def _emulated(line: str) -> list[Result]:
    there = emulator.of(line)
    rows, ours, waited, checked = place.scaled(there.rows, 1000), [], [], True
    with (
        place.folder(line) as folder,
        there.open(folder) as into,
        postgresql(rows) as made,
        counted() as requests,
    ):
        right, schema = made.sums(), made.describe()
        into.fresh(OURS)
        with place.spark(folder, params(into, OURS), plugin=into.plugin) as spark:
            for number in range(place.ROUNDS):
                into.fresh(OURS)
                cpu, began = Cpu(), time.time()
                with turn():
                    ours.append(
                        copy(spark, folder, params(into, OURS), made, schema, number, into.plugin)
                    )
                waited.append(within(requests.spans, began, time.time()))
                spent = cpu.said()
                place.logger.info("ours %.2f s, waited %.2f s: %s", ours[-1], waited[-1], spent)
                checked = checked and into.sums(OURS) == right
        by_dlt = by_ways(folder, made, into, there.ways, right)
    mine, away = place.median(ours[1:] or ours), place.median(waited[1:] or waited)
    shown = ", ".join(f"{v:.1f}" for v in ours)
    note = (
        f"{rows:,} rows into {there.said}; seconds: ours {shown} (the first warms up). "
        f"{share(mine, away)}CPU seconds: {spent}. {DLT}"
    )
    return [beside_dlt(line, rows, ours, by_dlt, 3, checked, note)]


def share(seconds: float, waited: float) -> str:
    """A text on the emulator's part of a figure; none where no request by `requests` was seen."""
    if not waited:
        return ""
    return (
        f"Of {seconds:.1f} s, {waited:.1f} s are waiting for the emulator's answers; "
        f"{seconds - waited:.1f} s are the product's own. "
    )


def rest(*servers: EmbeddedPostgres) -> None:
    """Let servers write what earlier turns left, so that no later turn pays for it."""
    for server in servers:
        server.execute("CHECKPOINT")


def copy_by_native(native: Native) -> float:
    """A first copy by PostgreSQL itself, into a table that has its key already; returns its seconds
    from the statement that begins it until the rows are committed."""
    native.prepare(POSTGRESQL_TABLE, ["bench.events"])
    rest(native.target)
    began = time.monotonic()
    native.subscribe()
    native.wait(COPIED)
    seconds = time.monotonic() - began
    native.end()
    return seconds


def by_ways(
    folder: Path, made: Copied, into: Into, ways: Sequence[Way], right: tuple[int, ...]
) -> list[Peer]:
    """Rows a second of each way of dlt."""
    peers = []
    for way in ways:
        into.fresh("dlt")
        where, dataset = into.for_dlt("dlt")
        with dlt(folder, way, made.url, where, dataset) as process:
            loaded = process.load()
        peers.append(loaded.peer(right[0], lambda: into.sums("dlt") == right))
    return peers


def _beside_native(
    line: str, rows: int, ours: list[float], theirs: list[list[float]], checked: bool, spent: str
) -> Result:
    counted = [values[1:] or values for values in (ours, *theirs)]
    mine, *natives = (rows / place.median(values) for values in counted)
    ratio = min(
        place.median([t / o for o, t in zip(counted[0], values, strict=True)])
        for values in counted[1:]
    )
    shown = [", ".join(f"{v:.1f}" for v in values) for values in (ours, *theirs)]
    return Result(
        line, "rows/s", round(mine), 0.8,
        (Peer(NATIVE, round(natives[0])), Peer(BINARY, round(natives[1]))), round(ratio, 2),
        checked=checked,
        note=f"{rows:,} rows from one server to another; seconds: ours {shown[0]}; {NATIVE} "
        f"{shown[1]}, with the option binary {shown[2]} (the first of each warms up). The ratio "
        "is to the better of them. Theirs runs from CREATE SUBSCRIPTION until the rows are "
        "committed in a table that has its key already; ours from the consistent snapshot until "
        f"the table is published with its key. CPU seconds of ours: {spent}.",
    )  # fmt: skip


def beside_dlt(
    line: str, rows: int, ours: list[float], peers: Sequence[Peer], target: float, checked: bool,
    note: str
) -> Result:  # fmt: skip
    """Our figure compared with dlt's ways."""
    mine = rows / place.median(ours[1:] or ours)
    best = max((p.value for p in peers if p.value), default=None)
    return Result(
        line, "rows/s", round(mine), target, tuple(peers),
        round(mine / best, 2) if best else None, checked=checked, note=note,
    )  # fmt: skip
