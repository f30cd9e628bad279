"""The rule by which a value becomes one of another type: as Spark's `try_cast`, but for values that
Spark would cut or round. No Python for a row.

A float takes the nearest number, as everywhere. Every other type keeps the whole value, or none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

_TEXT = "string"
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_FLOATS = ("float", "double")
_DECIMAL = re.compile(r"decimal\(\d+,\s*(\d+)\)")
_DATE_LENGTH = len("2019-06-18")
_MICROSECONDS_LENGTH = len("2019-06-18 10:00:00.000000")


def cast(given: Column, kind: str, wanted: str) -> Column:
    """The value of the type `kind` as one of the type `wanted`. NULL where it is none; maybe cut or
    rounded where `is_cut` says so."""
    if kind == wanted:
        return given
    if kind == _TEXT and wanted == "binary":
        return given.cast(wanted)
    return given.try_cast(wanted)


def is_cut(given: Column, kind: str, wanted: str, value: Column) -> Column:
    """Whether `value`, which `cast` gave, has lost a part of what was given. Never NULL; false
    where `value` is NULL."""
    from pyspark.sql import functions as F

    no = F.lit(False)
    if kind == wanted or wanted in (_TEXT, "binary"):
        return no
    found = (
        _text_is_cut(given, wanted, value)
        if kind == _TEXT
        else _is_other(given, kind, wanted, value)
    )
    return (
        no
        if found is None
        else F.when(value.isNull(), no).otherwise(F.coalesce(found, F.lit(True)))
    )


def _is_other(given: Column, kind: str, wanted: str, value: Column) -> Column | None:
    """Whether the way back leads to another value."""

    if wanted in _FLOATS:
        return _is_infinite(value) & ~_is_infinite(given.try_cast("double"))
    if wanted.startswith("timestamp") and kind.startswith("timestamp"):
        return None
    return value.try_cast(kind) != given


def _text_is_cut(given: Column, wanted: str, value: Column) -> Column | None:
    from pyspark.sql import functions as F

    if wanted in _FLOATS:
        return _is_infinite(value) & ~F.lower(given).contains("inf")
    if wanted == "date":
        has_more = given.try_cast("timestamp_ntz") != value.cast("timestamp_ntz")
        return _unless_short(given, _DATE_LENGTH, has_more)
    if wanted.startswith("timestamp"):
        return _unless_short(given, _MICROSECONDS_LENGTH, given.rlike(r"\.\d{6}0*[1-9]"))
    found = _DECIMAL.fullmatch(wanted)
    return _has_more_digits(given, int(found[1])) if found else None


def _unless_short(given: Column, length: int, found: Column) -> Column:
    """False for a text up to that length, at no cost; `found` for a longer one."""
    from pyspark.sql import functions as F

    return F.when(F.length(given) <= length, F.lit(False)).otherwise(F.coalesce(found, F.lit(True)))


def _has_more_digits(given: Column, scale: int) -> Column:
    """Whether a number has more digits behind the point than `scale`. Zeros at the end don't
    count. Most texts are short behind the point, which is found without a pattern."""
    from pyspark.sql import functions as F

    point = F.instr(given, ".")
    has_exponent = given.contains("e") | given.contains("E")
    behind = F.when(point == 0, F.lit(0)).otherwise(F.length(given) - point)
    mantissa = F.regexp_extract(given, r"^\s*[+-]?([0-9.]*)", 1)
    digits = F.regexp_replace(mantissa, r"\.", "")
    zeros = F.length(digits) - F.length(F.regexp_replace(digits, "0+$", ""))
    fraction = F.length(F.regexp_extract(mantissa, r"\.(\d*)", 1))
    power = F.regexp_extract(given, r"[eE]([+-]?\d+)", 1).try_cast("int")
    has_more = fraction - zeros - F.coalesce(power, F.lit(0)) > scale
    is_zero = zeros == F.length(digits)
    return F.when((behind <= scale) & ~has_exponent, F.lit(False)).otherwise(~is_zero & has_more)


def _is_infinite(value: Column) -> Column:
    from pyspark.sql import functions as F

    return F.abs(value.cast("double")) == F.lit(float("inf"))
