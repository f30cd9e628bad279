"""Row filters as PostgreSQL conditions. They compare values as they are copied, and texts byte by
byte."""

from __future__ import annotations

import datetime as dt
from typing import Any

from replicators.connectors.filters import sql as sql_filters
from replicators.connectors.filters.sql import Words
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import (
    Array,
    Bytes,
    Enum,
    Float,
    Json,
    String,
    Timestamp,
    Uuid,
)
from replicators.sources.postgresql import sql

BLANKS = "its blanks at the end count in the copy, but not at the source"
SHORT = 5
"""Characters, of at most four bytes, that are never stored apart: a pointer would take as much."""
OWN_FORM = "it is copied as text in a form of its own"


def refusal(column: Column) -> str:
    """Why a column's values can't be compared; '' where they can."""
    if not isinstance(column.type, String):
        return ""
    if column.wire != "text":
        return OWN_FORM
    return BLANKS if column.native.startswith(("character(", "bpchar")) else ""


def may_be_unsent(column: Column) -> bool:
    """Whether the server may store a value apart from its row (TOAST), so that an update which does
    not change the value may leave it out."""
    short = isinstance(column.type, String) and (column.type.length or SHORT + 1) <= SHORT
    return isinstance(column.type, String | Json | Bytes | Array) and not short


def _column(column: Column) -> str:
    name = sql.name(column.name)
    match column.type:
        case String():
            # a cast strips the trailing blanks of a domain over char(n)
            return f'({sql.printed(name)}) COLLATE "C"'
        case Enum() | Uuid():
            return f'{name}::text COLLATE "C"'
        case Float():
            return f"{name}::float8"
    return name


def _value(column: Column, value: Any) -> str:
    match column.type, value:
        case _, bool():
            return "TRUE" if value else "FALSE"
        case (Float(), float()):
            return f"'{value!r}'::float8"
        case (Timestamp(zone=True), dt.datetime()):
            return f"TIMESTAMPTZ '{value.isoformat(' ')}'"
        case (Timestamp(), dt.datetime()):
            return f"TIMESTAMP '{value.isoformat(' ')}'"
        case _, dt.date():
            return f"DATE '{value.isoformat()}'"
        case _, str():
            return sql.literal(value).strip()
    return f"{value:f}"


def _like(column: Column, pattern: str) -> str:
    return f"{_column(column)} LIKE {sql.literal(pattern).strip()}"


WORDS = Words(sql.name, _column, _value, _like)


def where(table: TableSchema) -> str:
    """The condition of the table's filter; '' where it has none."""
    return sql_filters.where(table, refusal, WORDS)
