"""Hashes of keys and of values, as Spark expressions: no Python for a row.

A value comes with a tag of its type and with its length, and NULL has a tag of its own. So NULL
is not empty, ("a", "bc") is not ("ab", "c"), and the number 1 is not the text "1". Columns are
taken in the order of their names. An integer or a float that becomes wider keeps its hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.spark import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

KEY_HASH = "_key_hash"
VALUE_HASH = "_value_hash"

_KINDS = {
    "boolean": 1,
    "tinyint": 2,
    "smallint": 2,
    "int": 2,
    "bigint": 2,
    "float": 3,
    "double": 3,
    "string": 5,
    "binary": 6,
    "date": 7,
    "timestamp": 8,
    "timestamp_ntz": 9,
}
_DECIMAL, _WIDE_DECIMAL, _NESTED = 4, 10, 11
_LONG_DIGITS = 18
_SEEDS = (0x9E3779B97F4A7C15 - (1 << 64), 0x2545F4914F6CDD1D)
_LENGTH_BITS = 40
_JSON = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


class Algorithm(StrEnum):
    """XXHASH64: two hashes of 64 bits with different seeds, 32 hex digits. Fast; somebody who wants
    to can make two values that collide. SHA256: 64 hex digits; nobody can."""

    XXHASH64 = "xxhash64"
    SHA256 = "sha256"


def key_hash(fields: Iterable[StructField], algorithm: Algorithm = Algorithm.XXHASH64) -> Column:
    """The hash of a row's key columns, as text of hex digits. `fields` are those of the frame's
    schema: `[frame.schema[name] for name in keys]`. `compare:type` for a type without a hash."""
    return _hash(fields, algorithm)


def value_hash(fields: Iterable[StructField], algorithm: Algorithm = Algorithm.XXHASH64) -> Column:
    """The hash of a row's compared columns; as `key_hash`. No column at all: one hash for all."""
    return _hash(fields, algorithm)


def hashed(
    frame: DataFrame,
    keys: Sequence[str],
    values: Sequence[str],
    algorithm: Algorithm = Algorithm.XXHASH64,
) -> DataFrame:
    """The frame with the columns `_key_hash` and `_value_hash` behind its own."""
    schema = frame.schema
    return frame.withColumns(
        {
            KEY_HASH: key_hash([schema[n] for n in keys], algorithm),
            VALUE_HASH: value_hash([schema[n] for n in values], algorithm),
        }
    )


def plan_of(fields: Iterable[StructField], algorithm: Algorithm) -> str:
    """What a hash is made of: columns, kinds of types and algorithm. Hashes that are kept with
    their rows are comparable with new ones only where the plans are equal."""
    parts = [f"{f.name}:{_tag(f)}" for f in _ordered(fields)]
    return f"{algorithm}({', '.join(parts)})"


def _ordered(fields: Iterable[StructField]) -> list[StructField]:
    return sorted(fields, key=lambda f: str(f.name))


def _hash(fields: Iterable[StructField], algorithm: Algorithm) -> Column:
    ordered = _ordered(fields)
    return _sha256(ordered) if algorithm == Algorithm.SHA256 else _xxhash64_pair(ordered)


def _xxhash64_pair(fields: list[StructField]) -> Column:
    """Spark's `xxhash64` hashes each column with the hash before it as the seed, and skips NULL.
    The marker before each value says type, length and NULL; the first literal makes the seed."""
    from pyspark.sql import functions as F

    parts = [part for field in fields for part in (_marker(field), _value(field))]
    halves = [F.lpad(F.hex(F.xxhash64(F.lit(seed), *parts)), 16, "0") for seed in _SEEDS]
    return F.lower(F.concat(*halves))


def _sha256(fields: list[StructField]) -> Column:
    from pyspark.sql import functions as F

    texts: list[Column] = [F.lit(b"")]
    for field in fields:
        value = _bytes(field)
        length = F.coalesce(F.octet_length(value).cast("string"), F.lit("-"))
        texts.append(F.concat(F.lit(f"{_tag(field)}:"), length, F.lit(":")).cast("binary"))
        texts.append(F.coalesce(value, F.lit(b"")))
    return F.sha2(F.concat(*texts), 256)


def _tag(field: StructField) -> int:
    """The number of the field's kind of type."""
    name, kind = field.dataType.simpleString(), field.dataType.typeName()
    if kind == "decimal":
        is_wide = field.dataType.precision > _LONG_DIGITS
        return (_WIDE_DECIMAL if is_wide else _DECIMAL) * 100 + int(field.dataType.scale)
    if kind in ("array", "map", "struct"):
        return _NESTED * 100
    if name not in _KINDS and kind not in ("varchar", "char"):
        raise ReplicationError("compare:type", column=field.name, type=name)
    return _KINDS.get(name, _KINDS["string"]) * 100


def _column(field: StructField) -> Column:
    from pyspark.sql import functions as F

    return F.col(quoted(field.name))


def _value(field: StructField) -> Column:
    """The value as `xxhash64` takes it: integers and floats in their widest form, nested values as
    text."""
    column, kind = _column(field), _tag(field) // 100
    if kind == _KINDS["bigint"]:
        return column.cast("bigint")
    if kind == _KINDS["double"]:
        return _no_negative_zero(column)
    return _nested_text(field) if kind == _NESTED else column


def _marker(field: StructField) -> Column:
    """Type and length as one number; for NULL the type alone."""
    from pyspark.sql import functions as F

    value, tag = _value(field), _tag(field) << _LENGTH_BITS
    kind = _tag(field) // 100
    if kind in (_KINDS["string"], _KINDS["binary"], _NESTED):
        length = F.coalesce(F.octet_length(value).cast("bigint") + F.lit(1), F.lit(0))
    else:
        length = F.when(value.isNull(), F.lit(0)).otherwise(F.lit(1)).cast("bigint")
    return length + F.lit(tag).cast("bigint")


def _bytes(field: StructField) -> Column:
    """The value as bytes that depend on nothing but the value: no session's time zone, and no
    version of Java's way to print floats."""
    from pyspark.sql import functions as F

    column, kind = _column(field), _tag(field) // 100
    if kind == _KINDS["double"]:
        column = F.format_string("%a", _no_negative_zero(column))
        column = F.when(_column(field).isNotNull(), column)
    elif kind == _KINDS["timestamp"]:
        column = F.unix_micros(column)
    elif kind == _NESTED:
        column = _nested_text(field)
    return column if kind == _KINDS["binary"] else column.cast("string").cast("binary")


def _no_negative_zero(column: Column) -> Column:
    from pyspark.sql import functions as F

    wide = column.cast("double")
    return F.when(wide == F.lit(0.0), F.lit(0.0)).otherwise(wide)


def _nested_text(field: StructField) -> Column:
    """A nested value as JSON with its NULLs; a map's entries in the order of their keys."""
    from pyspark.sql import functions as F

    column = _column(field)
    if field.dataType.typeName() == "map":
        column = F.array_sort(F.map_entries(column))
    text = F.to_json(F.struct(column.alias("v")), _JSON)
    return F.when(column.isNotNull(), text)
