"""Lines `compare` and `compare-size`: two days of a data set compared by hashes, beside the seed's
method; and ours with 1, 10 and 40 million rows.

The data are the seed's example: five keys of UUIDs and ten numbers. On the second day 20 % of the
rows are deleted and replaced by new ones, and 40 % have another value.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks import place, seed_compare
from benchmarks.report import Peer, Result
from benchmarks.resources import OURS, gib_of, turn
from replicators.connectors.compare import config, session
from replicators.connectors.compare.run import compare
from runners.engine.tasks.spark import open_session

DAYS = (date(2019, 6, 18), date(2019, 6, 19))
SEED = "the seed's method"
SIZES = (1_000_000, 10_000_000, 40_000_000)
STEP = 20
NAMES = (5, 10)
NARROW = (1, 4)
"""How many keys and values: those of the seed, and fewer for many rows."""


def columns(width: tuple[int, int]) -> tuple[list[str], list[str]]:
    """The names of keys and of values."""
    return [f"k{i}" for i in range(width[0])], [f"v{i}" for i in range(width[1])]


def write_days(spark: Any, folder: Path, rows: int, width: tuple[int, int]) -> None:
    """Both days as CSV files."""
    from pyspark.sql import functions as F

    keys, values = columns(width)
    number = F.col("id")
    for at, name in enumerate(("day1", "day2")):
        is_replaced = (number % 5 == 0) & F.lit(at == 1)
        key = number + F.when(is_replaced, F.lit(rows)).otherwise(F.lit(0))
        is_updated = (number % 5).isin(1, 2) & F.lit(at == 1)
        frame = spark.range(0, rows, 1, 8).select(
            *(_uuid(F.concat(key.cast("string"), F.lit(f":{k}"))).alias(k) for k in keys),
            *(
                ((number * 7919 + i) % 1_000_003 + F.when(is_updated, 1).otherwise(0)).alias(v)
                for i, v in enumerate(values)
            ),
        )
        frame.write.csv(str(folder / name), header=True)


def _uuid(text: Any) -> Any:
    from pyspark.sql import functions as F

    word = F.md5(text)
    parts = [F.substring(word, at, n) for at, n in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))]
    return F.concat_ws("-", *parts)


def configured(folder: Path, width: tuple[int, int]) -> config.CompareConfig:
    """Our configuration, whose results lie in `folder`."""
    keys, values = columns(width)
    lines = [
        "format: parquet",
        "keys:",
        *(f"  {k}: string" for k in keys),
        "non_keys:",
        *(f"  {v}: bigint" for v in values),
        f"current: {{path: {folder / 'current'}}}",
        f"history: {{path: {folder / 'history'}}}",
        f"quarantine: {{path: {folder / 'quarantine'}}}",
    ]
    return config.parse("\n".join(lines) + "\n")


def found_in(spark: Any, path: Path, width: tuple[int, int]) -> tuple[dict[str, int], int]:
    """The rows of a current set by operation, and a sum over all values, without hashes of either
    side."""
    from pyspark.sql import functions as F

    keys, values = columns(width)
    whole = F.xxhash64(*keys, *values, "OPERATION", F.col("EFF_START_DATE").cast("string"))
    frame = spark.read.parquet(str(path)).groupBy("OPERATION")
    rows = frame.agg(F.count("*").alias("rows"), F.sum(whole.cast("decimal(38,0)")).alias("sum"))
    found = rows.collect()
    return {r["OPERATION"]: r["rows"] for r in found}, sum(int(r["sum"]) for r in found)


def expected(rows: int) -> dict[str, int]:
    """The rows of the second day by operation."""
    return {"I": rows // 5, "D": rows // 5, "U": 2 * rows // 5, "N": 2 * rows // 5}


@contextmanager
def opened(folder: Path, width: tuple[int, int]) -> Iterator[Any]:
    """The session of a comparison, as `manage.py compare` opens it, but with the JVM's default
    compilation, as for every line with a peer."""
    wanted = configured(folder, width)
    usual = place.settings(folder, spark_java_options="-XX:TieredStopAtLevel=4")
    conf = session.spark_conf(wanted)
    spark = open_session(usual, "benchmarks", session.jars(wanted), conf)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


class Sides:
    """Both methods over the same files. Each round begins with a copy of the first day's
    results."""

    def __init__(self, spark: Any, folder: Path, width: tuple[int, int]) -> None:
        self._spark, self._folder, self._width = spark, folder, width
        self.run: dict[str, Callable[[Path, int], None]] = {OURS: self._ours, SEED: self._seed}

    def _ours(self, place_: Path, at: int) -> None:
        path = str(self._folder / f"day{at + 1}")
        compare(self._spark, configured(place_, self._width), path, DAYS[at])

    def _seed(self, place_: Path, at: int) -> None:
        path = str(self._folder / f"day{at + 1}")
        keys, values = columns(self._width)
        seed_compare.compare(self._spark, place_, path, str(DAYS[at]), keys, values)

    def first_day(self, side: str) -> None:
        """The results that the second day is compared with."""
        self.run[side](self._folder / side / "before", 0)

    def floor(self) -> float:
        """The seconds of what every method has to do here, without a comparison: read the CSV files
        of the second day with their types, and write as many rows as both sets have."""
        from pyspark.sql import functions as F

        keys, values = columns(self._width)
        target = self._folder / "floor"
        began = time.monotonic()
        rows = self._spark.read.csv(str(self._folder / "day2"), header=True)
        rows = rows.select(*keys, *(F.col(v).cast("bigint").alias(v) for v in values))
        for name in ("current", "history"):
            rows.write.mode("overwrite").parquet(str(target / name))
        return time.monotonic() - began

    def once(self, side: str) -> tuple[float, tuple[dict[str, int], int]]:
        """Compare the second day; returns the seconds and what is in the current set then."""
        now = self._folder / side / "now"
        shutil.rmtree(now, ignore_errors=True)
        shutil.copytree(now.with_name("before"), now, symlinks=True)
        with turn(side):
            began = time.monotonic()
            self.run[side](now, 1)
            took = time.monotonic() - began
        place.logger.info("%s: %.1f s", side, took)
        newest = "latest" if side == OURS else str(DAYS[1])
        return took, found_in(self._spark, now / "current" / newest, self._width)


def measure(line: str) -> list[Result]:
    """The rounds of both sides, or ours by size."""
    return _by_size(line) if line.endswith("-size") else _beside_the_seed(line)


def _beside_the_seed(line: str) -> list[Result]:
    rows = place.scaled(1_000_000, STEP)
    seconds: dict[str, list[float]] = {OURS: [], SEED: []}
    floors: list[float] = []
    checked = True
    with place.folder(line) as folder, opened(folder, NAMES) as spark:
        write_days(spark, folder, rows, NAMES)
        sides = Sides(spark, folder, NAMES)
        for side in seconds:
            sides.first_day(side)
        for _ in range(place.ROUNDS + 1):
            results = []
            for side, took in seconds.items():
                once, result = sides.once(side)
                took.append(once)
                results.append(result)
            floors.append(sides.floor())
            checked &= results[0] == results[1] and results[0][0] == expected(rows)
        memory, seed_memory = gib_of(OURS), gib_of(SEED)
    ours, seed = (place.median(s[1:]) for s in seconds.values())
    floor = place.median(floors[1:])
    return [
        Result(
            line,
            "rows/s",
            round(rows / ours),
            5,
            (Peer(SEED, round(rows / seed), seed_memory),),
            round(seed / ours, 2),
            checked=checked,
            memory_gib=memory,
            note=f"{rows:,} rows a day, five keys of UUIDs and ten numbers, from CSV into plain "
            "Parquet: current set and history. One session, rounds alternate, the first of each "
            "warms up; the seed's method is MD5 in a Python function row by row, and a full outer "
            "join of whole rows. Ours also looks for duplicate keys, compares a sample by value "
            "and publishes in one step. Seconds of ours: "
            f"{ours:.1f}. Reading the CSV files and writing both sets without a comparison takes "
            f"{floor:.1f} s here, so no method can be more than {seed / floor:.1f} times as fast "
            "as the seed's. "
            "Memory is that of the JVM which both sides share, and of each side's workers.",
        )
    ]


def _by_size(line: str) -> list[Result]:
    """Each size in a session of its own; the smallest runs twice, since its first turn warms the
    JVM up."""
    micros: dict[int, float] = {}
    memory: dict[int, float | None] = {}
    checked = True
    for size in (SIZES[0], *SIZES):
        rows = place.scaled(size, STEP)
        with (
            place.folder(f"{line}-{size}") as folder,
            opened(folder, NARROW) as spark,
        ):
            write_days(spark, folder, rows, NARROW)
            sides = Sides(spark, folder, NARROW)
            sides.first_day(OURS)
            took, found = sides.once(OURS)
            micros[rows], memory[rows] = took / rows * 1e6, gib_of(OURS)
            checked &= found[0] == expected(rows)
    small, large = min(micros), max(micros)
    shown = "; ".join(f"{rows:,} rows: {micros[rows]:.2f}" for rows in micros)
    held = ", ".join(f"{rows:,} rows {memory[rows]} GiB" for rows in micros)
    return [
        Result(
            line,
            "us a row",
            round(micros[large], 3),
            1.5,
            (Peer("at the smallest size", round(micros[small], 3)),),
            round(micros[large] / micros[small], 2),
            at_most=True,
            checked=checked,
            memory_gib=memory[large],
            note="One key of UUIDs and four numbers, from CSV into plain Parquet, the second day's "
            f"comparison alone. Microseconds a row at {shown}. The peak of memory so far, also of "
            f"smaller sizes: {held}. The ratio is the largest size's over the smallest's.",
        )
    ]
