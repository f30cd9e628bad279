"""The one rule by which delivered values become those of the configured types."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors.compare.casting import cast, is_cut
from replicators.connectors.compare.run import compare
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Date, Int, String
from replicators.connectors.model.types import Decimal as DecimalType
from replicators.sources.compared.casting import CORRUPT, FAULTY, cast_rows
from tests.spark.compared_sets import ComparedSet, day

pytestmark = pytest.mark.spark

CUT, NONE = "cut", "none"
CASES = [
    ("1.9D", "int", CUT),
    ("2.0D", "int", "2"),
    ("3e9D", "int", NONE),
    ("1.50BD", "int", CUT),
    ("'1.9'", "int", NONE),
    ("' 7 '", "int", "7"),
    ("300", "tinyint", NONE),
    ("1.999D", "decimal(10,2)", CUT),
    ("0.1D", "decimal(10,2)", "0.10"),
    ("CAST(0.1 AS float)", "decimal(10,2)", "0.10"),
    ("1.999BD", "decimal(10,2)", CUT),
    ("0.999BD", "decimal(10,2)", CUT),
    ("1.990BD", "decimal(10,2)", "1.99"),
    ("'1.999'", "decimal(10,2)", CUT),
    ("'1.99000'", "decimal(10,2)", "1.99"),
    ("'-1'", "decimal(10,2)", "-1.00"),
    ("'1e-3'", "decimal(10,2)", CUT),
    ("'1500E-4'", "decimal(10,2)", "0.15"),
    ("'1.255e1'", "decimal(10,2)", "12.55"),
    ("'1.255e+0'", "decimal(10,2)", CUT),
    ("'0.000'", "decimal(10,2)", "0.00"),
    ("'0.0000000000000000000000000000000000000001'", "decimal(38,10)", CUT),
    ("'1234567890123456789012345678.12345678901'", "decimal(38,10)", CUT),
    ("'twelve'", "decimal(10,2)", NONE),
    ("'100000000'", "decimal(10,2)", NONE),
    ("9007199254740993", "double", "9.007199254740992E15"),
    ("0.1D", "float", "0.1"),
    ("1e300D", "float", CUT),
    ("double('Infinity')", "float", "Infinity"),
    ("'1e400'", "double", CUT),
    ("'-Infinity'", "double", "-Infinity"),
    ("5", "boolean", CUT),
    ("1", "boolean", "true"),
    ("TIMESTAMP_NTZ'2019-06-18 10:00:00'", "date", CUT),
    ("TIMESTAMP_NTZ'2019-06-18 00:00:00'", "date", "2019-06-18"),
    ("TIMESTAMP'2019-06-18 10:00:00'", "timestamp_ntz", "2019-06-18 10:00:00"),
    ("'2019-06-18 10:00:00'", "date", CUT),
    ("'2019-06-18T00:00:00'", "date", "2019-06-18"),
    ("'2019-06-18Twhat'", "date", CUT),
    ("' 2019-06-18'", "date", "2019-06-18"),
    ("'2019-06-18 10:00:00.123456789'", "timestamp_ntz", CUT),
    ("'2019-06-18 10:00:00.123456000'", "timestamp_ntz", "2019-06-18 10:00:00.123456"),
    ("CAST(NULL AS double)", "int", NONE),
    ("'text'", "binary", "text"),
    ("1.5D", "string", "1.5"),
]


def test_a_value_is_kept_whole_or_not_at_all(spark: Any) -> None:
    """Guards every pair of types that Spark itself would cut or round without a word."""
    from pyspark.sql import functions as F

    rows = spark.range(1).selectExpr(*(f"{sql} AS c{n}" for n, (sql, _, _) in enumerate(CASES)))
    found = []
    for n, (_, wanted, _) in enumerate(CASES):
        given, kind = F.col(f"c{n}"), rows.schema[f"c{n}"].dataType.simpleString()
        value = cast(given, kind, wanted)
        cut = F.when(is_cut(given, kind, wanted, value), CUT)
        found.append(F.coalesce(cut, value.cast("string"), F.lit(NONE)).alias(f"c{n}"))
    got = rows.select(*found).collect()[0]
    assert [(*c[:2], got[n]) for n, c in enumerate(CASES)] == CASES


@pytest.mark.long
def test_a_data_sets_row_is_quarantined_instead_of_cut(spark: Any, tmp_path: Path) -> None:
    """Guards doubles of Parquet in a column of whole numbers, also in the key: the row 1.9 says
    nothing of the row 1."""
    made = ComparedSet(
        spark,
        tmp_path,
        "max_deleted: 1\ninput: {format: parquet}\n"
        'keys: {id: int}\nnon_keys: {n: int, price: "decimal(10,2)"}\n',
    )
    columns = pa.schema([("id", pa.float64()), ("n", pa.float64()), ("price", pa.string())])

    def deliver(on: date, *rows: tuple[float, float, str]) -> Any:
        path = tmp_path / f"{on}.parquet"
        table = pa.table(list(map(list, zip(*rows, strict=True))), schema=columns)
        pq.write_table(table, path)
        return compare(spark, made.config, str(path), on)

    first = deliver(day(0), (1.0, 5.0, "1.50"), (2.0, 6.0, "2"))
    assert (first.rows, first.quarantined) == (2, 0)
    then = deliver(
        day(1), (1.9, 5.0, "1.50"), (2.0, 1.9, "2"), (3.0, 7.0, "1.999"), (4.0, 8.0, "4")
    )
    assert (then.rows, then.quarantined) == (1, 3)
    assert then.counts == {"I": 1, "U": 0, "D": 1, "X": 1, "N": 0}
    assert sorted(r["REASON"] for r in made.rows("quarantine")) == [
        "id does not fit int without a loss",
        "n does not fit int without a loss",
        "price does not fit decimal(10,2) without a loss",
    ]
    assert {r["id"]: (r["n"], r["price"]) for r in made.current()} == {
        1: (5, Decimal("1.50")),
        2: (6, Decimal("2.00")),
        4: (8, Decimal("4.00")),
    }


@pytest.mark.long
def test_a_deliverys_value_is_marked_instead_of_cut(spark: Any) -> None:
    """Guards the same rule in the source that compares deliveries."""
    schema = TableSchema(
        TableId("delivered", "people"),
        (
            Column("id", Int(64), "bigint"),
            Column("n", Int(32), "int"),
            Column("price", DecimalType(38, 10), "decimal(38,10)"),
            Column("born", Date(), "date"),
            Column("name", String(), "string"),
        ),
        key=("id",),
    )
    long = "1234567890123456789012345678.12345678901"
    rows = spark.createDataFrame(
        [(1, 1.0, "1.5", "2019-06-18", "a"), (2, 1.9, long, "2019-06-18 10:00", "b")],
        "id bigint, n double, price string, born string, name string",
    ).selectExpr("*", f"CAST(NULL AS string) AS {CORRUPT}")
    good, bad = cast_rows(rows, schema).orderBy("id").collect()
    assert (good["n"], good["price"], good["born"], good[FAULTY]) == (
        1, Decimal("1.5"), date(2019, 6, 18), None,
    )  # fmt: skip
    assert (bad["n"], bad["price"], bad["born"], bad["name"]) == (None, None, None, "b")
    assert bytes(bad[FAULTY]) == bytes([0b01110])
