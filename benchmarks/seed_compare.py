"""The seed's way to compare two data sets, written anew from its description: a Python function
casts and hashes row by row (MD5 over the list of values), and whole rows are joined."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any


def hashed(row: Any, keys: Sequence[str], values: Sequence[str]) -> tuple[Any, ...]:
    """A row with cast values and both hashes."""
    key = [str(row[name]) for name in keys]
    rest = [int(row[name]) for name in values]
    key_hash = hashlib.md5(str(key).encode()).hexdigest()  # noqa: S324 (the seed's)
    value_hash = hashlib.md5(str(rest).encode()).hexdigest()  # noqa: S324
    return (*key, *rest, key_hash, value_hash)


def compare(
    spark: Any, folder: Path, path: str, day: str, keys: Sequence[str], values: Sequence[str]
) -> None:
    """Compare the CSV files at `path` with the current set in `folder`: writes the current set of
    `day` and the day's part of the history. Both rows of a key are joined whole."""
    from pyspark.sql import functions as F

    columns = [*keys, *values]
    schema = ", ".join(
        [*(f"{k} string" for k in keys), *(f"{v} bigint" for v in values)]
        + ["keyhash string", "nonkeyhash string"]
    )
    lines = spark.read.csv(path, header=True)
    rows = lines.rdd.map(partial(hashed, keys=tuple(keys), values=tuple(values)))
    new = spark.createDataFrame(rows, schema).alias("new")
    before = sorted((folder / "current").glob("*"))
    hashes = ["keyhash", "nonkeyhash"]
    if before:
        old = spark.read.parquet(str(before[-1])).alias("old")
    else:
        old = spark.createDataFrame([], f"{schema}, OPERATION string, EFF_START_DATE string").alias(
            "old"
        )
    is_new, is_old = F.col("old.keyhash").isNull(), F.col("new.keyhash").isNull()
    is_same = F.col("new.nonkeyhash") == F.col("old.nonkeyhash")
    joined = new.join(old, F.col("new.keyhash") == F.col("old.keyhash"), "full_outer")
    operation = F.when(is_new, "I").when(is_old, "D").when(is_same, "N").otherwise("U")
    taken = [F.coalesce(f"new.{c}", f"old.{c}").alias(c) for c in [*columns, *hashes]]
    start = F.when(operation == "N", F.col("old.EFF_START_DATE")).otherwise(F.lit(day))
    found = joined.select(*taken, operation.alias("OPERATION"), start.alias("EFF_START_DATE"))
    found = found.persist()
    found.write.parquet(str(folder / "current" / day))
    found.where("OPERATION <> 'N'").write.parquet(str(folder / "history" / day))
    found.unpersist()
