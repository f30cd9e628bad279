"""A row filter as an SQL condition. The source plugin says how names, columns and values are
written (`Words`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
)
from replicators.connectors.filters.types import bind
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.problems.errors import ReplicationError


@dataclass(frozen=True, slots=True)
class Words:
    """How a source writes the parts of a condition: a quoted name; a column as it is compared (its
    copied value, texts byte by byte); a value to compare the column with; a column with a LIKE
    pattern."""

    name: Callable[[str], str]
    column: Callable[[Column], str]
    value: Callable[[Column, Any], str]
    like: Callable[[Column, str], str]


def where(table: TableSchema, refusal: Callable[[Column], str], words: Words) -> str:
    """The condition of the table's filter; '' where it has none. `refusal` says why a column can't
    be compared.

    Raises:
        ReplicationError: `source:filter-invalid` where the filter does not fit any more.
    """
    if not table.filter:
        return ""
    try:
        return condition(bind(table.filter, table, refusal), table, words)
    except FilterError as err:
        reason = str(err).rstrip(".")
        raise ReplicationError("source:filter-invalid", table=table.id, reason=reason) from err


def condition(expression: Expression, table: TableSchema, words: Words) -> str:
    """The condition, in brackets. `expression` is bound to the table (`filters.types.bind`)."""

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
