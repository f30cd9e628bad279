"""The value of old rows in an added column, from the statement's own words. ValueError if only the
server knows it. Pure."""

from __future__ import annotations

import re
from decimal import Decimal as Number

from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import (
    Boolean,
    Date,
    Decimal,
    Enum,
    Float,
    Int,
    String,
    Timestamp,
)
from replicators.sources.mysql.definitions import EMPTY, IMPLICIT

INTEGER_BITS = {
    "tiny": (8, True), "utiny": (8, False), "small": (16, True), "usmall": (16, False),
    "medium": (24, True),
    "umedium": (24, False), "int": (32, True), "uint": (32, False), "big": (64, True),
    "ubig": (64, False),
}  # fmt: skip
MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
DAY = re.compile(r"\d{4}-\d\d-\d\d")


def missing_of(column: Column, said: str) -> str | None:  # noqa: C901 - one line for each type
    """The value as text for `connectors.defaults.value_of`, None for NULL. `said` is the default as
    `definitions` gives it."""
    if said == EMPTY:
        return None
    kind, is_text = said[:1], said[:1] == "s"
    text = said[1:]
    wire = column.wire
    if kind == IMPLICIT:
        return _implicit(column)
    match column.type:
        case Int() if wire in INTEGER_BITS:
            return _integer(text, *INTEGER_BITS[wire])
        case Boolean() if wire == "bit" and text in ("0", "1") and not is_text:
            return text
        case Decimal(precision=precision, scale=scale):
            return _decimal(text, precision, scale)
        case Float():
            if float(text) and "(" in column.native:
                raise ValueError(said)  # the server cuts it to so many digits
            return str(float(text))
        case Enum(values=values) if is_text and text in values:
            return text
        case String(length=length) if wire.startswith("text:") and is_text:
            if text.endswith(" ") or (length is not None and len(text) > length):
                raise ValueError(said)
            return text
        case Date() if is_text and DAY.fullmatch(text) and not text.startswith("0000"):
            return text
        case Timestamp(zone=False) if is_text and MOMENT.fullmatch(text):
            return text
    raise ValueError(said)


def _implicit(column: Column) -> str:
    """The default of a NOT NULL column that names none."""
    match column.type:
        case Int() if column.wire in INTEGER_BITS:
            return "0"
        case Boolean() | Decimal() | Float():
            return "0"
        case Enum(values=values) if values:
            return values[0]
        case String() if column.wire.startswith("text:"):
            return ""
    raise ValueError(column.native)


def _integer(text: str, bits: int, signed: bool) -> str:
    number = int(text)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if not low <= number <= high:
        raise ValueError(text)
    return str(number)


def _decimal(text: str, precision: int, scale: int) -> str:
    try:
        number = Number(text)
    except ArithmeticError as err:
        raise ValueError(text) from err
    digits = number.as_tuple().exponent
    if not isinstance(digits, int) or -digits > scale or abs(number) >= 10 ** (precision - scale):
        raise ValueError(text)
    return str(number)
