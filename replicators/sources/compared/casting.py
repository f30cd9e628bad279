"""The values of a delivery as Spark expressions: cast to the table's types, with a mark at each
value that could not be cast. No Python for a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from replicators.connectors.compare import casting
from replicators.connectors.model.schema import Column as TableColumn
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import Json, Uuid
from replicators.connectors.spark import quoted
from replicators.sources.compared.types import name_of, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FAULTY, REASON, RAW = "_faulty", "_fault_reason", "_fault_raw"
IS_CORRUPT, CORRUPT = "_is_corrupt", "_corrupt_record"
_UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_TEXT = "string"


def cast_rows(rows: DataFrame, schema: TableSchema) -> DataFrame:
    """The rows with the columns of `schema` in their Spark types. Four columns follow: `_faulty`,
    the bits of the values that could not be cast (`changes.FAULT_FIELDS`), why, these values as
    text (NULL where all is well), and whether the line did not fit."""
    from pyspark.sql import functions as F

    kinds = {f.name: f.dataType.simpleString() for f in rows.schema.fields}
    values = {c.name: _cast(c, kinds[c.name]) for c in schema.columns}
    faults = {c.name: _fault(c, kinds[c.name], values[c.name]) for c in schema.columns}
    reasons = [
        F.when(faults[c.name], F.lit(f"{c.name}: the value is no {name_of(c.type)}"))
        for c in schema.columns
    ]
    raws = [F.when(faults[c.name], F.col(quoted(c.name)).cast(_TEXT)) for c in schema.columns]
    is_faulty = F.array_contains(F.array(*faults.values()), True)
    return rows.select(
        *(F.when(~faults[n], value).alias(n) for n, value in values.items()),
        F.when(is_faulty, _bits(faults.values())).alias(FAULTY),
        F.when(is_faulty, F.concat_ws("; ", *reasons)).alias(REASON),
        F.when(is_faulty, F.to_json(F.array(*raws))).alias(RAW),
        F.col(CORRUPT).isNotNull().alias(IS_CORRUPT),
    )


def _cast(column: TableColumn, kind: str) -> Column:
    from pyspark.sql import functions as F

    value, wanted = F.col(quoted(column.name)), spark_type(column.type)
    if isinstance(column.type, Json) and kind.startswith(("struct", "array", "map")):
        return F.to_json(value, {"ignoreNullFields": "false"})
    if isinstance(column.type, Uuid):
        text = F.lower(F.trim(value.cast(_TEXT)))
        return F.when(text.rlike(_UUID), text)
    if wanted == _TEXT:
        return value.cast(_TEXT)
    return casting.cast(value, kind, wanted)


def _fault(column: TableColumn, kind: str, value: Column) -> Column:
    """Whether a value is there and could not be cast without a loss."""
    from pyspark.sql import functions as F

    given = F.col(quoted(column.name))
    is_cut = casting.is_cut(given, kind, spark_type(column.type), value)
    return given.isNotNull() & (value.isNull() | is_cut)


def _bits(faults: Iterable[Column]) -> Column:
    """Bit i (byte i >> 3, bit i & 7) for fault i."""
    from pyspark.sql import functions as F

    each = [f.cast("int") for f in faults]
    texts = []
    for at in range(0, len(each), 8):
        byte = sum((bit * F.lit(1 << i) for i, bit in enumerate(each[at : at + 8])), F.lit(0))
        texts.append(F.lpad(F.hex(byte), 2, "0"))
    return F.unhex(F.concat(*texts))


def ddl(columns: Mapping[str, str]) -> str:
    """Columns and types as Spark reads them."""
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
