"""Line `growth-size`: the same 1,000 clustered changes merged into tables of 1, 10 and 40 million
rows. A merge's cost must depend on the changes, not on the table."""

from __future__ import annotations

from benchmarks import place
from benchmarks.merge import FILES, KEYS, SHARED, Rounds, fill
from benchmarks.report import Peer, Result
from runners.engine.tasks.on_spark import SparkTasks

SIZES = (1_000_000, 10_000_000, 40_000_000)
ROWS_A_FILE = 10_000_000 // FILES


def measure(line: str) -> list[Result]:
    """Each size has a warehouse and a session of its own; all share one JVM. The smallest size runs
    twice: its first turn warms up the JVM and does not count."""
    ours: dict[int, float] = {}
    plain: dict[int, float] = {}
    files: dict[int, int] = {}
    checked = True
    for size in (SIZES[0], *SIZES):
        rows, parts = place.scaled(size, FILES), max(2, size // ROWS_A_FILE)
        files[rows] = parts
        with place.folder(f"{line}-{size}") as folder:
            target = place.target_params(folder)
            with place.spark(folder, target) as spark:
                writer = place.TARGET.writer(target, SparkTasks(spark))
                table = fill(spark, writer, rows, parts)
                rounds = Rounds(writer, target, "iceberg", folder, rows)
                ours[rows], plain[rows] = rounds.compare(table, scattered=False)
                checked = checked and rounds.checked
    small, large = min(ours), max(ours)
    shown = "; ".join(
        f"{rows:,} rows in {files[rows]} files: ours {ours[rows]:.2f} s, plain {plain[rows]:.2f} s"
        for rows in ours
    )
    return [
        Result(
            line,
            "s a merge",
            round(ours[large], 3),
            1.5,
            (Peer("plain MERGE, largest", round(plain[large], 3)),),
            round(ours[large] / ours[small], 2),
            at_most=True,
            checked=checked,
            note=f"{KEYS} keys within {2 * KEYS}; {shown}. The ratio is ours at the largest over "
            "ours at the smallest; the plain "
            f"MERGE's is {plain[large] / plain[small]:.1f}. Measured is the writer's merge, with "
            "its planning and its commit; the keys lie "
            "in one or two files, and the key ranges spare ours the others, of which the plain "
            "one reads all. All sizes run in one JVM, which an uncounted turn of the smallest "
            f"warms up. {SHARED}",
        )
    ]
