"""The Spark types of a table's columns, from the neutral types that REST names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import types as t

_FIXED: dict[str, t.DataType] = {
    "Boolean": t.BooleanType(),
    "String": t.StringType(),
    "Json": t.StringType(),
    "Uuid": t.StringType(),
    "Enum": t.StringType(),
    "Time": t.StringType(),
    "Bytes": t.BinaryType(),
    "Date": t.DateType(),
}
"""A time of day is text, `HH:MM:SS.ffffff`, as in lakehouse targets."""
_INTEGERS: dict[int, t.DataType] = {16: t.ShortType(), 32: t.IntegerType(), 64: t.LongType()}


def spark_type(kind: Mapping[str, Any]) -> t.DataType:
    """The Spark type of a neutral type in its JSON form. ValueError for one that is not known."""
    name = kind["type"]
    if name in _FIXED:
        return _FIXED[name]
    if name == "Int":
        return _INTEGERS[kind["bits"]] if kind.get("signed", True) else t.DecimalType(20, 0)
    if name == "Decimal":
        return t.DecimalType(kind["precision"], kind["scale"])
    if name == "Float":
        return t.FloatType() if kind["bits"] == 32 else t.DoubleType()
    if name == "Timestamp":
        return t.TimestampType() if kind.get("zone") else t.TimestampNTZType()
    if name == "Array":
        return t.ArrayType(spark_type(kind["of"]))
    raise ValueError(f"the type {name} is not known here: take this module from the same version")


@dataclass(frozen=True)
class Names:
    """What the columns about the change are called."""

    prefix: str = "_"

    @property
    def operation(self) -> str:
        return f"{self.prefix}operation"

    @property
    def sequence(self) -> str:
        return f"{self.prefix}sequence"

    @property
    def committed_at(self) -> str:
        return f"{self.prefix}committed_at"

    @property
    def transaction(self) -> str:
        return f"{self.prefix}transaction"

    @property
    def unsent(self) -> str:
        return f"{self.prefix}unsent"

    @property
    def unsupported(self) -> str:
        return f"{self.prefix}unsupported"

    @property
    def before(self) -> str:
        return f"{self.prefix}before"

    def all(self) -> tuple[str, ...]:
        """Every one."""
        return (
            self.operation, self.sequence, self.committed_at, self.transaction, self.unsent,
            self.unsupported, self.before,
        )  # fmt: skip


def frame_schema(columns: Sequence[Mapping[str, Any]], names: Names) -> t.StructType:
    """The schema of a data frame of changes: the table's columns, then those about the change."""
    image = [t.StructField(c["name"], spark_type(c["type"])) for c in columns]
    words = t.ArrayType(t.StringType())
    return t.StructType(
        [
            *image,
            t.StructField(names.operation, t.StringType(), nullable=False),
            t.StructField(names.sequence, t.LongType(), nullable=False),
            t.StructField(names.committed_at, t.TimestampType(), nullable=False),
            t.StructField(names.transaction, t.LongType(), nullable=False),
            t.StructField(names.unsent, words),
            t.StructField(names.unsupported, words),
            t.StructField(names.before, t.StructType(image)),
        ]
    )
