"""Quoting for SQL text; the one place of this plugin that joins names into statements."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from typing import Any

import pyarrow as pa

from replicators.connectors.postgres.sql import literal as literal
from replicators.connectors.postgres.sql import name as name
from replicators.connectors.postgres.sql import names as names
from replicators.connectors.postgres.sql import table as table


def printed(quoted: str) -> str:
    """The text of a quoted column's value, by its type's output function; NULL for a NULL."""
    return f"CASE WHEN {quoted} IS NOT NULL THEN format('%s', {quoted}) END"


def any_key(names: Sequence[str], keys: pa.Table) -> str:
    """A predicate that holds for rows with one of these keys. Its literals are untyped: each takes
    the type of its column."""
    columns = [keys.column(n).to_pylist() for n in names]
    quoted = [name(n) for n in names]
    if len(names) == 1 and None not in columns[0]:
        return f"{quoted[0]} IN ({', '.join(literal(_text(v)) for v in columns[0])})"
    rows = zip(*columns, strict=True)
    return " OR ".join(
        f"({' AND '.join(_is(n, v) for n, v in zip(quoted, row, strict=True))})" for row in rows
    )


def _is(quoted: str, value: Any) -> str:
    return f"{quoted} IS NULL" if value is None else f"{quoted} = {literal(_text(value))}"


def _text(value: Any) -> str:
    """A value as a text that PostgreSQL reads."""
    match value:
        case bool():
            return "t" if value else "f"
        case bytes():
            return f"\\x{value.hex()}"
        case datetime():
            return value.isoformat(" ")
        case date() | time():
            return value.isoformat()
    return str(value)
