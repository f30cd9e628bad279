"""Values as literals of a dialect. Each is text: lists of a thousand keys are written in a merge,
and a tree of them would take longer than everything else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal as PyDecimal
from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import (
    Bytes,
    Date,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    Time,
    Timestamp,
    Uuid,
)
from replicators.connectors.model.types import Enum as EnumType
from replicators.connectors.sql import trees

BACKSLASHES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\x00": "\\000"})
"""How Spark, BigQuery and Snowflake write the characters that a text literal can't hold as they
are."""


@lru_cache(maxsize=16)
def _escaped(dialect: str) -> Callable[[str], str]:
    generator = Dialect.get_or_raise(dialect).generator()
    return lambda text: generator.sql(exp.Literal.string(text))


@dataclass(frozen=True, slots=True)
class Literals:
    """How a dialect writes values.

    `escapes`: the characters that are written otherwise inside a text; None for sqlglot's way.
    `prefix` stands before a text (SQL Server's N, without which letters get lost).
    `binary` is a pattern with `{}` for the hexadecimal digits. `casts`: numbers and moments are
    CAST to the column's type; otherwise they are written plain (MySQL, where few types can be CAST
    to). `zone`: what is written behind a moment in UTC. `typed_text`: the types whose text needs a
    CAST. `true` and `false` are its booleans. `special`: the dialect's own text for a value, or
    None; it is asked first.
    """

    dialect: str
    escapes: dict[int, str] | None = None
    prefix: str = ""
    binary: str = "X'{}'"
    casts: bool = True
    zone: str = "+00:00"
    typed_text: tuple[type[LogicalType], ...] = (Json, Uuid, EnumType, Time)
    true: str = "TRUE"
    false: str = "FALSE"
    special: Callable[[Column, Any], str | None] | None = None

    def text(self, value: str) -> str:
        """A text literal."""
        if self.escapes is not None:
            return f"'{value.translate(self.escapes)}'"
        return self.prefix + _escaped(self.dialect)(value)

    def literal(self, column: Column, value: Any, native: str) -> str:
        """A value of a column, whose type in the target is `native`. `value` may be an Arrow
        scalar. ValueError for a type that has no literal."""
        plain = value.as_py() if hasattr(value, "as_py") else value
        if plain is None:
            return "NULL"
        own = self.special(column, plain) if self.special is not None else None
        return self._written(column.type, plain, native) if own is None else own

    def _written(self, kind: LogicalType, plain: Any, native: str) -> str:
        match kind, plain:
            case _, bool():
                return self.true if plain else self.false
            case ((Timestamp() | Date() | Time()), (datetime() | date() | time())):
                return self._moment(kind, plain, native)
            case Float(), int() | float():
                return self._cast(self.text(repr(plain)), native, plain=repr(plain))
            case ((Int() | Decimal()), int() | PyDecimal()):
                number = f"{plain:f}" if isinstance(plain, PyDecimal) else str(plain)
                return self._cast(number, native)
            case _, str():
                text = self.text(plain)
                return self._cast(text, native) if isinstance(kind, self.typed_text) else text
            case Bytes(), bytes():
                return self.binary.format(plain.hex())
        raise ValueError(f"no literal for {kind}")

    def _moment(self, kind: LogicalType, plain: Any, native: str) -> str:
        match kind, plain:
            case Timestamp(), datetime():
                utc = plain.astimezone(UTC).replace(tzinfo=None) if plain.tzinfo else plain
                zone = self.zone if kind.zone else ""
                shown = f"{utc.isoformat(' ', 'microseconds')}{zone}"
                return self._cast(f"'{shown}'", native, plain=f"TIMESTAMP '{shown}'")
            case Date(), date():
                shown = plain.isoformat()
                return self._cast(f"'{shown}'", native, plain=f"DATE '{shown}'")
            case Time(), time():
                return self._cast(f"'{plain.isoformat('microseconds')}'", native)
        raise ValueError(f"no literal for {kind}")

    def _cast(self, text: str, native: str, plain: str = "") -> str:
        return f"CAST({text} AS {native})" if self.casts else plain or text

    def tree(self, column: Column, value: Any, native: str) -> exp.Expression:
        """The literal as a part of a tree."""
        return trees.raw(self.literal(column, value, native))
