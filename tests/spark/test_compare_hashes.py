"""Hashes of rows: different values have different ones, and equal values equal ones."""

from __future__ import annotations

from typing import Any

import pytest

from replicators.connectors.compare.collisions import share_of
from replicators.connectors.compare.hashing import Algorithm, hashed, plan_of, value_hash
from replicators.connectors.problems.errors import ReplicationError

pytestmark = pytest.mark.spark

BOTH = pytest.mark.parametrize("algorithm", list(Algorithm))


def hashes(spark: Any, rows: str, algorithm: Algorithm, columns: str = "*") -> list[str]:
    frame = spark.sql(f"SELECT {columns} FROM VALUES {rows}")
    return [r[0] for r in frame.select(value_hash(frame.schema.fields, algorithm)).collect()]


@BOTH
def test_null_empty_and_moved_borders_are_different(spark: Any, algorithm: Algorithm) -> None:
    """The published method joins texts without a separator and takes NULL for empty, so it misses
    each of these updates."""
    found = hashes(
        spark,
        "('a', 'bc'), ('ab', 'c'), ('abc', ''), ('', 'abc'), ('abc', NULL), (NULL, 'abc'), "
        "('', ''), ('', NULL), (NULL, ''), (NULL, NULL), ('NULL', NULL), ('a', 'b:c'), ('1', '1')",
        algorithm,
    )
    assert len(set(found)) == len(found) == 13
    width = {Algorithm.XXHASH64: 32, Algorithm.SHA256: 64}[algorithm]
    assert {len(h) for h in found} == {width}


@BOTH
def test_types_are_told_apart_and_wider_ones_are_not(spark: Any, algorithm: Algorithm) -> None:
    same = (
        ("1Y", "1S", "1", "1L"),
        ("float(0.5)", "double(0.5)", "double('5e-1')"),
        ("double('-0.0')", "double('0.0')", "float('-0.0')"),
        ("double('NaN')", "float('NaN')"),
        ("CAST(1.50 AS DECIMAL(5,2))", "CAST(1.5 AS DECIMAL(12,2))"),
    )
    different = (
        "1", "'1'", "1.0", "1.0D", "true", "X'31'", "DATE '1970-01-02'",
        "TIMESTAMP '1970-01-01 00:00:00.000001Z'", "TIMESTAMP_NTZ '1970-01-01 00:00:00.000001'",
        "CAST(1 AS DECIMAL(20,0))", "array(1)", "named_struct('a', 1)", "map('a', 1)",
        "NULL :: INT", "NULL :: STRING",
    )  # fmt: skip
    texts = [v for values in same for v in values] + list(different)
    frame = spark.sql(f"SELECT {', '.join(f'{t} AS c{n}' for n, t in enumerate(texts))}")
    made = frame.select(*(value_hash([f], algorithm) for f in frame.schema.fields)).collect()[0]
    found = dict(zip(texts, made, strict=True))
    for values in same:
        assert len({found[v] for v in values}) == 1, values
    assert len({found[v] for v in different}) == len(different), found


@BOTH
def test_nested_values_keep_their_nulls_and_maps_have_no_order(
    spark: Any, algorithm: Algorithm
) -> None:
    lists = hashes(
        spark, "(array(1, NULL)), (array(NULL, 1)), (array(1)), (array()), (NULL)", algorithm
    )
    assert len(set(lists)) == 5
    maps = hashes(spark, "(map('a', 1, 'b', 2)), (map('b', 2, 'a', 1))", algorithm)
    assert len(set(maps)) == 1


@BOTH
def test_a_hash_depends_neither_on_the_order_of_columns_nor_on_the_time_zone(
    spark: Any, algorithm: Algorithm
) -> None:
    rows = "('x', TIMESTAMP '2020-06-01 12:00:00Z', DATE '2020-06-01') AS t(a, b, c)"
    first = hashes(spark, rows, algorithm, "a, b, c")
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        assert hashes(spark, rows, algorithm, "c, b, a") == first
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_both_halves_of_the_pair_are_hashes_of_their_own(spark: Any) -> None:
    """One hash of 64 bits meets itself among some billions of rows; two only if both do."""
    found = hashes(spark, "(1), (2), (3)", Algorithm.XXHASH64)
    halves = [h[:16] for h in found] + [h[16:] for h in found]
    assert len(set(halves)) == 6


def test_a_sample_is_about_its_share_and_other_keys_on_another_day(spark: Any) -> None:
    """The same keys of each set on one day; so no join is needed to find them."""
    more = hashed(spark.range(2_000), ["id"], ["id"]).persist()
    fewer = more.where("id < 1000")

    def ids(rows: Any, share: float, turn: int) -> set[int]:
        return {r["id"] for r in share_of(rows, share, turn).select("id").collect()}

    sampled = [ids(more, 0.2, turn) for turn in (737_228, 737_229)]
    assert all(300 < len(found) < 500 for found in sampled)
    assert len(sampled[0] & sampled[1]) < 100
    assert ids(fewer, 0.2, 737_228) == {i for i in sampled[0] if i < 1_000}
    assert len(ids(more, 1.0, 737_228)) == 2_000
    more.unpersist()


def test_no_row_goes_through_python(spark: Any) -> None:
    frame = spark.range(5).selectExpr("id", "string(id) AS name", "double(id) AS size")
    for algorithm in Algorithm:
        hashed = frame.select(value_hash(frame.schema.fields, algorithm))
        plan = hashed._jdf.queryExecution().toString()
        assert "WholeStageCodegen" in hashed._jdf.queryExecution().explainString(
            hashed._sc._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("codegen")
        )
        assert "Python" not in plan and "UDF" not in plan


def test_the_plan_says_what_makes_hashes_comparable(spark: Any) -> None:
    def plan(columns: str) -> str:
        schema = spark.sql(f"SELECT {columns}").schema
        return plan_of(schema.fields, Algorithm.XXHASH64)

    assert plan("1 AS a, 'x' AS b") == plan("'x' AS b, 1L AS a")
    assert plan("1 AS a") != plan("'1' AS a")
    assert plan("1 AS a") != plan("1 AS a, 2 AS b")


def test_a_type_without_a_hash_is_named(spark: Any) -> None:
    fields = spark.sql("SELECT INTERVAL '1' DAY AS span").schema.fields
    with pytest.raises(ReplicationError, match=r"compare:type.*span"):
        value_hash(fields)
