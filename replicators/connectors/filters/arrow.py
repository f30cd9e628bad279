"""Applies a row filter to Arrow columns, with SQL's three values: true, false, unknown. Vectorised;
knows no plugin."""

from __future__ import annotations

import re
from decimal import ROUND_FLOOR, Context
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.filters.language import (
    And,
    Compare,
    Expression,
    In,
    IsNull,
    Like,
    Not,
    Or,
)

_COMPARE = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_EXACT = Context(prec=200)


def matches(expression: Expression, rows: pa.Table) -> pa.ChunkedArray:
    """For each row, whether the filter is true; never NULL. `expression` is bound to the table
    (`filters.types.bind`)."""
    return pc.fill_null(_truth(expression, rows), False)


def _truth(expression: Expression, rows: pa.Table) -> pa.ChunkedArray:
    match expression:
        case And(parts=parts):
            return _joined(pc.and_kleene, parts, rows)
        case Or(parts=parts):
            return _joined(pc.or_kleene, parts, rows)
        case Not(part=part):
            return pc.invert(_truth(part, rows))
        case IsNull(column=name):
            return pc.is_null(rows.column(name))
        case Like(column=name, pattern=pattern):
            return _like(rows.column(name), pattern)
        case In(column=name, values=values):
            return _joined(pc.or_kleene, tuple(Compare(name, "=", v) for v in values), rows)
    return _compared(rows.column(expression.column), expression.sign, expression.value)


def _joined(join: Any, parts: tuple[Expression, ...], rows: pa.Table) -> pa.ChunkedArray:
    found = _truth(parts[0], rows)
    for part in parts[1:]:
        found = join(found, _truth(part, rows))
    return found


def _like(column: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    """With an escape by our own pattern: Arrow takes what it knows a faster way for, such as a
    search, with its backslashes."""
    if "\\" not in pattern:
        return pc.match_like(column, pattern)
    found, characters = [], iter(pattern)
    for character in characters:
        if character == "\\":
            found.append(re.escape(next(characters, "\\")))
        else:
            found.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return pc.match_substring_regex(column, pattern=f"(?s)\\A{''.join(found)}\\z")


def _compared(column: pa.ChunkedArray, sign: str, value: Any) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return _exact(column, sign, value)
    if pa.types.is_floating(kind):
        return _float(column.cast(pa.float64()), sign, value)
    return _COMPARE[sign](column, pa.scalar(value, kind))


def _float(column: pa.ChunkedArray, sign: str, value: float) -> pa.ChunkedArray:
    """Compare floats. NaN is greater than every number, as at the source."""
    found = _COMPARE[sign](column, pa.scalar(value, pa.float64()))
    return pc.or_(found, pc.is_nan(column)) if sign in (">", ">=") else found


def _exact(column: pa.ChunkedArray, sign: str, value: Number) -> pa.ChunkedArray:
    """Compare with a number that may have more digits than the column, or lie beyond it."""
    kind = column.type
    digits, scale = (kind.precision, kind.scale) if pa.types.is_decimal(kind) else (19, 0)
    floor = value.quantize(Number(1).scaleb(-scale), ROUND_FLOOR, _EXACT)
    if floor != value:
        if sign in ("=", "<>"):
            return _constant(column, sign == "<>")
        sign = "<=" if sign in ("<", "<=") else ">"
    if pa.types.is_decimal(kind):
        is_beyond = abs(floor) > _largest(digits, scale)
    else:
        is_beyond = not -(2**63) <= floor < 2**63
    if is_beyond:
        is_above = floor > 0
        return _constant(column, sign == "<>" or (sign in ("<", "<=")) == is_above and sign != "=")
    if pa.types.is_decimal(kind):
        return _COMPARE[sign](column, pa.scalar(floor, kind))
    return _COMPARE[sign](column.cast(pa.int64()), pa.scalar(int(floor), pa.int64()))


def _largest(digits: int, scale: int) -> Number:
    return Number(10**digits - 1).scaleb(-scale, _EXACT)


def _constant(column: pa.ChunkedArray, value: bool) -> pa.ChunkedArray:
    """`value` where the column has a value, unknown where it is NULL."""
    return pc.if_else(pc.is_valid(column), pa.scalar(value), pa.scalar(None, pa.bool_()))
