"""How a snapshot query selects a column, and which form its values have then; no connection."""

from __future__ import annotations

from dataclasses import replace

from replicators.connectors.model.schema import Column, TableSchema
from replicators.sources.postgresql import sql

# The type that the query casts each wire's values to. A column that has this type already is
# unchanged.
CASTS = {
    "bool": "bool",
    "int2": "int2",
    "int4": "int4",
    "int8": "int8",
    "oid": "oid",
    "float4": "float4",
    "float8": "float8",
    "numeric": "numeric",
    "numeric_text": "numeric",
    "jsonb": "jsonb",
    "uuid": "uuid",
    "bytea": "bytea",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
}


def expression(column: Column) -> str:
    """The column in a SELECT list, in a form whose binary is known. A value that is not decoded
    comes as the text of its type's output function, as in the log. A cast to text may give another
    text (`inet`, `char(n)`)."""
    name = sql.name(column.name)
    wire = column.wire
    if wire in ("text", "text[]"):
        return name
    if wire == "as_text":
        return f"{sql.printed(name)} AS {name}"
    if wire == "as_text[]":
        return f"{name}::text::text[] AS {name}"
    if wire.endswith("[]"):
        return f"{name}::{CASTS[wire[:-2]]}[] AS {name}"
    return f"{name}::{CASTS[wire]} AS {name}"


def select_list(table: TableSchema) -> str:
    """The columns of a chunk's query, in the schema's order."""
    return ", ".join(expression(c) for c in table.columns)


def as_copied(table: TableSchema) -> list[Column]:
    """The columns as the query returns them: text where it selects text."""
    return [replace(c, wire=c.wire.replace("as_text", "text")) for c in table.columns]
