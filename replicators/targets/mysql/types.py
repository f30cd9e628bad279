"""MySQL's types for neutral types. Asks no server.

Text has a binary collation that counts trailing blanks, so that it compares as at the source. Its
name differs between MySQL and MariaDB: `native` is told which one.
"""

from __future__ import annotations

import re

from replicators.connectors.fits import Rule, TypeTable, as_text, integers, widened
from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Bytes, Decimal, Float
from replicators.connectors.target import Fit, FitKind

LONGEST_INLINE = 1024
"""Bytes of a limited length up to this are a VARBINARY, which an index can hold whole."""
MOST_DIGITS, MOST_SCALE = 65, 30
_NO_NAN = "MySQL has no NaN and no infinity: a row with such a value stops the table"
_INTEGERS = {8: "tinyint", 16: "smallint", 24: "mediumint", 32: "int", 64: "bigint"}
_TEXT = "longtext"
_NUMBERS = re.compile(r"(?:double|float)\b.*", re.IGNORECASE)
_UUID = "char(36) character set ascii collate ascii_bin"


def _decimal(kind: Decimal) -> Rule:
    return as_text(_TEXT) if kind.scale > MOST_SCALE else f"decimal({kind.precision},{kind.scale})"


def _binary(kind: Bytes) -> str:
    is_short = kind.length is not None and 0 < kind.length <= LONGEST_INLINE
    return f"varbinary({kind.length})" if is_short else "longblob"


TYPES = TypeTable(
    boolean="tinyint(1)",
    integer=integers(_INTEGERS, {bits: f"{name} unsigned" for bits, name in _INTEGERS.items()}),
    decimal=_decimal,
    floats={
        bits: Fit(FitKind.LOSSY, name, _NO_NAN) for bits, name in ((32, "float"), (64, "double"))
    },
    text=_TEXT,
    binary=_binary,
    date="date",
    time="time(6)",
    timestamp="datetime(6)",
    moment=widened("datetime(6)", "kept in UTC"),
    json=as_text(_TEXT),
    uuid=as_text(_UUID),
    enum=as_text(_TEXT),
    array=lambda kind, items: widened(_TEXT, "kept as a JSON list in text"),
)
"""Text is without its collation."""
fit = TYPES.fit


def fit_column(column: Column) -> Fit:
    """The type for a column. A floating-point number of MySQL itself is never NaN."""
    found = fit(column.type)
    if isinstance(column.type, Float) and _NUMBERS.fullmatch(column.native):
        return Fit(FitKind.EXACT, found.native)
    return found


def native(column: Column, *, is_mariadb: bool) -> str:
    """The type's text in a statement."""
    found = fit_column(column).native
    if found != _TEXT:
        return found
    collation = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"
    return f"{_TEXT} character set utf8mb4 collate {collation}"


_WIDTH = re.compile(r"((?:tiny|small|medium|big)?int)\(\d+\)")


def shown(kind: str, charset: str | None, collation: str | None) -> str:
    """A column's type as the catalog has it, spelled like `native`. MariaDB shows widths of
    integers."""
    text = kind.lower()
    if text != "tinyint(1)":
        text = _WIDTH.sub(r"\1", text)
    return f"{text} character set {charset} collate {collation}".lower() if collation else text


_RANKS = tuple(_INTEGERS.values())
_DIGITS = {"tinyint": 3, "smallint": 5, "mediumint": 8, "int": 10, "bigint": 19,
           "tinyint unsigned": 3, "smallint unsigned": 5, "mediumint unsigned": 8,
           "int unsigned": 10, "bigint unsigned": 20}  # fmt: skip
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_BINARY = re.compile(r"varbinary\((\d+)\)")


def is_wider(old: str, new: str) -> bool:
    """Whether a column may change from one lower-case type to another in place: every value stays
    equal."""
    before, after = old.removesuffix(" unsigned"), new.removesuffix(" unsigned")
    if before in _RANKS and after in _RANKS:
        is_same_sign = old.endswith("unsigned") == new.endswith("unsigned")
        is_longer = _RANKS.index(before) < _RANKS.index(after)
        return is_longer and (is_same_sign or not new.endswith("unsigned"))
    if (old, new) == ("float", "double"):
        return True
    decimal = _DECIMAL.fullmatch(new)
    if decimal:
        precision, scale = map(int, decimal.groups())
        earlier = _DECIMAL.fullmatch(old)
        if earlier:
            p, s = map(int, earlier.groups())
            return precision - scale >= p - s and scale >= s
        return precision - scale >= _DIGITS.get(old, MOST_DIGITS + 1)
    short, longer = _BINARY.fullmatch(old), _BINARY.fullmatch(new)
    return short is not None and (
        new == "longblob" or (longer is not None and int(longer[1]) >= int(short[1]))
    )
