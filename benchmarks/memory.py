"""Line `memory`: a run's peak memory, Python, JVM and workers together, during one large
transaction."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from benchmarks import place
from benchmarks.report import Result
from benchmarks.resources import GIB, Memory
from benchmarks.run import EngineRun
from benchmarks.workload import DDL, TABLE
from demo.postgres import EmbeddedPostgres

CHANGE_SECONDS = 420.0


def measure(line: str) -> list[Result]:
    """Copy a small table; then one transaction inserts most of its rows and changes them."""
    rows = place.scaled(1_000_000, 1000)
    with place.folder(line) as folder, EmbeddedPostgres(fsync=False) as server:
        server.execute(DDL)
        server.execute("CALL bench.change(1000, 0, 0, 1000)")
        values, target = place.target_values(folder), place.target_params(folder)
        with EngineRun(folder, server.params(), values, [TABLE]) as run:
            memory = Memory(run.pid)
            memory.start()
            run.wait_replicating()
            start = memory.peak
            server.execute(
                "BEGIN; INSERT INTO bench.events SELECT k, 1, 'placed', 1.5, 'note ' || k || ' "
                "for this row',"
                f" now(), true FROM generate_series(1001, {rows + 1000}) k;"
                " UPDATE bench.events SET amount = 2.5 WHERE id > 1000; COMMIT"
            )
            run.wait(lambda s: s["events"]["rows"] >= 2 * rows, CHANGE_SECONDS)
            memory.close()
            checked = is_right(target, rows)
    return [
        Result(
            line,
            "GiB",
            round(memory.peak / GIB, 2),
            2,
            at_most=True,
            is_absolute=True,
            checked=checked,
            memory_gib=round(memory.peak / GIB, 2),
            note=f"one transaction of {2 * rows:,} row changes (half of them with a before image "
            "of all columns); at the "
            f"peak: {memory.said()}; {start / GIB:.2f} GiB at most before it.",
        )
    ]


def is_right(target: Any, rows: int) -> bool:
    """Whether the target has all rows with their changes."""
    scan = place.iceberg_table(target, "bench", "events").scan(selected_fields=("id", "amount"))
    found = scan.to_arrow()
    ids, total = found.column("id"), pc.sum(found.column("amount")).as_py()
    first = sum(k * 37 % 100000 for k in range(1, 1001))
    unique = len(pc.unique(ids)) == found.num_rows == rows + 1000
    return unique and int(total * 100) == 250 * rows + first
