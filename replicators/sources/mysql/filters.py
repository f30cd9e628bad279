"""Row filters as MySQL and MariaDB conditions. They compare values as they are copied, and texts
byte by byte."""

from __future__ import annotations

from typing import Any

from replicators.connectors.filters import sql as sql_filters
from replicators.connectors.filters.sql import Words
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import Boolean, Date, Enum, Float, String, Timestamp, Uuid
from replicators.connectors.mysql import sql

ZERO_DATES = "a zero date is another value in the copy"
OWN_FORM = "it is copied as text in a form of its own"


def refusal(column: Column) -> str:
    """Why a column's values can't be compared; '' where they can."""
    if isinstance(column.type, Date | Timestamp):
        return ZERO_DATES
    is_text = column.wire.startswith("text:") or column.wire in ("enum", "uuid")
    if isinstance(column.type, String | Enum | Uuid) and not is_text:
        return OWN_FORM
    return ""


def _is_text(column: Column) -> bool:
    return isinstance(column.type, String | Enum | Uuid)


def _column(column: Column) -> str:
    name = sql.name(column.name)
    if _is_text(column):
        return f"CAST(CONVERT({name} USING utf8mb4) AS BINARY)"
    if isinstance(column.type, Float):
        return f"({name} + 0e0)"
    return f"({name} + 0)" if isinstance(column.type, Boolean) else name


def _value(column: Column, value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        return f"{value:.17e}"
    return f"x'{value.encode().hex()}'" if isinstance(value, str) else f"{value:f}"


def _like(column: Column, pattern: str) -> str:
    name = sql.name(column.name)
    text = f"_utf8mb4 x'{pattern.encode().hex()}'"
    return f"CONVERT({name} USING utf8mb4) COLLATE utf8mb4_bin LIKE {text}"


WORDS = Words(sql.name, _column, _value, _like)


def where(table: TableSchema) -> str:
    """The condition of the table's filter; '' where it has none."""
    return sql_filters.where(table, refusal, WORDS)


def filtered(condition: str, kept: str) -> str:
    """A chunk's condition (` WHERE ...`, or empty) for the rows that the filter keeps."""
    if not kept:
        return condition
    rest = condition.removeprefix(" WHERE ")
    return f" WHERE ({rest}) AND {kept}" if rest else f" WHERE {kept}"
