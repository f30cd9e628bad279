"""Fits a row filter to a table: every column exists, and every value has its column's type. Knows
no SQL and no Arrow."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal as Number
from typing import Any

from replicators.connectors.filters.language import (
    And,
    Compare,
    Expression,
    FilterError,
    In,
    IsNull,
    Like,
    Not,
    Or,
    columns_of,
    parse,
)
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import (
    Boolean,
    Date,
    Decimal,
    Enum,
    Float,
    Int,
    LogicalType,
    String,
    Timestamp,
    Unsupported,
    Uuid,
)

MAX_DIGITS = 60
Refusal = Callable[[Column], str]
"""Why a source can't compare a column's values as they are copied; '' where it can."""


def bind(text: str, table: TableSchema, refusal: Refusal = lambda _: "") -> Expression:
    """The filter with its values in the columns' types: Decimal for whole and decimal numbers,
    float, str, bool, date, datetime (with a zone where the column is an instant). FilterError where
    the filter does not fit."""
    expression = parse(text)
    known = {c.name: c for c in table.columns if not isinstance(c.type, Unsupported)}
    for name in sorted(columns_of(expression)):
        if name not in known:
            raise FilterError(f"The column `{name}` is not there, or is not copied.")
    return _bound(expression, known, refusal)


def _bound(expression: Expression, known: dict[str, Column], refusal: Refusal) -> Expression:
    match expression:
        case And(parts=parts):
            return And(tuple(_bound(p, known, refusal) for p in parts))
        case Or(parts=parts):
            return Or(tuple(_bound(p, known, refusal) for p in parts))
        case Not(part=part):
            return Not(_bound(part, known, refusal))
        case IsNull():
            return expression
    column = known[expression.column]
    if reason := refusal(column):
        raise FilterError(
            f"The column `{column.name}` ({column.native}) can't be compared: {reason}."
        )
    match expression:
        case Compare(sign=sign, value=value):
            if isinstance(column.type, Boolean) and sign not in ("=", "<>"):
                raise FilterError(
                    f"The column `{column.name}` is true or false: only = and <> compare it."
                )
            return Compare(column.name, sign, typed(column, value))
        case In(values=values):
            return In(column.name, tuple(typed(column, v) for v in values))
        case Like(pattern=pattern):
            return _like(column, pattern)
    raise AssertionError(expression)


def _like(column: Column, pattern: str) -> Like:
    if not isinstance(column.type, String):
        raise FilterError(
            f"The column `{column.name}` ({column.native}) is no text: LIKE can't look into it."
        )
    if (len(pattern) - len(pattern.rstrip("\\"))) % 2:
        raise FilterError(f"The pattern for `{column.name}` ends with a single `\\`.")
    return Like(column.name, _text(column, pattern))


def typed(column: Column, value: Any) -> Any:
    """`value` in the column's type; FilterError where it has another type."""
    match column.type, value:
        case (Boolean(), bool()):
            return value
        case ((Int() | Decimal()), Number()):
            return _number(column, value)
        case (Float(), Number()):
            return float(_number(column, value))
        case ((String() | Enum()), str()):
            return _text(column, value)
        case (Uuid(), str()):
            return _uuid(column, value)
        case (Date(), str()):
            return _moment(column, value, dt.date.fromisoformat)
        case (Timestamp(zone=zone), str()):
            return _timestamp(column, value, zone=zone)
    wanted = _wanted(column.type)
    if not wanted:
        raise FilterError(
            f"The column `{column.name}` ({column.native}) can only be asked for IS NULL."
        )
    raise FilterError(f"The column `{column.name}` ({column.native}) wants {wanted}.")


def _wanted(kind: LogicalType) -> str:
    match kind:
        case Boolean():
            return "TRUE or FALSE"
        case Int() | Decimal() | Float():
            return "a number"
        case String() | Enum() | Uuid():
            return "a text in single quotes"
        case Date():
            return "a day such as '2026-01-31'"
        case Timestamp(zone=True):
            return "a time such as '2026-01-31 12:00:00Z'"
        case Timestamp():
            return "a time such as '2026-01-31 12:00:00'"
    return ""


def _number(column: Column, value: Number) -> Number:
    if len(value.as_tuple().digits) > MAX_DIGITS:
        raise FilterError(f"The number for `{column.name}` has more than {MAX_DIGITS} digits.")
    return value


def _text(column: Column, value: str) -> str:
    if "\0" in value:
        raise FilterError(f"The text for `{column.name}` has a zero byte.")
    return value


def _uuid(column: Column, value: str) -> str:
    try:
        return str(uuid.UUID(value))
    except ValueError:
        raise FilterError(f"`{value}` is no UUID (column `{column.name}`).") from None


def _moment(column: Column, value: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(value)
    except ValueError:
        raise FilterError(
            f"The column `{column.name}` ({column.native}) wants {_wanted(column.type)}."
        ) from None


def _timestamp(column: Column, value: str, *, zone: bool) -> dt.datetime:
    found: dt.datetime = _moment(column, value, dt.datetime.fromisoformat)
    if not zone and found.tzinfo is not None:
        raise FilterError(f"The column `{column.name}` ({column.native}) has no time zone.")
    if zone:
        return found.replace(tzinfo=found.tzinfo or dt.UTC).astimezone(dt.UTC)
    return found
