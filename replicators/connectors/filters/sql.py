"""A row filter as an SQL condition. How names, columns and values are written is the source plugin's (`Words`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
from replicators.connectors.model.schema import Column, TableSchema


@dataclass(frozen=True, slots=True)
class Words:
    """How a source writes the parts of a condition: a quoted name; a column as it is compared (its copied value, texts byte by
    byte); a value to compare it with; a column and a pattern of LIKE."""

    name: Callable[[str], str]
    column: Callable[[Column], str]
    value: Callable[[Column, Any], str]
    like: Callable[[Column, str], str]


def condition(expression: Expression, table: TableSchema, words: Words) -> str:
    """The condition, in brackets; `expression` is bound to the table (`filter_types.bind`)."""

    def written(part: Expression) -> str:
        match part:
            case And(parts=parts):
                return f"({' AND '.join(written(p) for p in parts)})"
            case Or(parts=parts):
                return f"({' OR '.join(written(p) for p in parts)})"
            case Not(part=inner):
                return f"(NOT {written(inner)})"
            case IsNull(column=name):
                return f"({words.name(name)} IS NULL)"
        column = table.column(part.column)
        match part:
            case Compare(sign=sign, value=value):
                return f"({words.column(column)} {sign} {words.value(column, value)})"
            case In(values=values):
                listed = ", ".join(words.value(column, v) for v in values)
                return f"({words.column(column)} IN ({listed}))"
            case Like(pattern=pattern):
                return f"({words.like(column, pattern)})"
        raise AssertionError(part)

    return written(expression)
