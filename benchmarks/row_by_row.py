"""A comparison as AWS DMS describes its data validation: the rows of a partition of 10,000 keys are
fetched from both sides, and compared one by one. Written from that description, in Python."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

PARTITION = 10_000
PARTITIONS_A_TURN = 20
PROCESSES = 2
COLUMNS = 'id, customer, status, amount, note, "at", ok'


@dataclass(frozen=True, slots=True)
class Sides:
    """PostgreSQL, and the Parquet files of a table without delete files."""

    url: str
    files: tuple[str, ...]


def differing(sides: Sides, keys: tuple[int, int]) -> int:
    """How many keys from the first one to before the last one have other rows."""
    import duckdb
    import psycopg

    found = 0
    with psycopg.connect(sides.url) as source, duckdb.connect() as target:
        source.execute("SET TimeZone = 'UTC'")
        target.execute("SET TimeZone = 'UTC'; SET threads = 1")
        for first in range(*keys, PARTITION):
            part = (first, min(first + PARTITION, keys[1]))
            which = f"WHERE id >= {part[0]} AND id < {part[1]} ORDER BY id"
            ours = source.execute(f"SELECT {COLUMNS} FROM bench.events {which}").fetchall()
            sql = f"SELECT {COLUMNS} FROM read_parquet($1) {which}"
            found += _differing(ours, target.execute(sql, [list(sides.files)]).fetchall())
    return found


def _differing(ours: Sequence[tuple[Any, ...]], theirs: Sequence[tuple[Any, ...]]) -> int:
    rows = {row[0]: row for row in theirs}
    wrong = 0
    for row in ours:
        other = rows.pop(row[0], None)
        if other is None:
            wrong += 1
            continue
        for mine, its in zip(row, other, strict=True):
            if mine != its:
                wrong += 1
                break
    return wrong + len(rows)


def compare(sides: Sides, upto: int) -> int:
    """How many rows differ among the keys from 1 to `upto`. One process for each core."""
    step = PARTITION * PARTITIONS_A_TURN
    turns = [(first, min(first + step, upto + 1)) for first in range(1, upto + 1, step)]
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        return sum(pool.map(differing, [sides] * len(turns), turns))
