"""Quotes names and texts for PostgreSQL's SQL."""

from __future__ import annotations

from collections.abc import Iterable

from replicators.connectors.model.schema import TableId


def name(text: str) -> str:
    """An identifier in quotes."""
    return '"' + text.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A string literal, whatever standard_conforming_strings says."""
    quoted = text.replace("'", "''")
    return f" E'{quoted.replace(chr(92), chr(92) * 2)}'" if "\\" in text else f"'{quoted}'"


def table(table_id: TableId) -> str:
    """A table's qualified name."""
    return f"{name(table_id.schema)}.{name(table_id.name)}"


def names(texts: Iterable[str]) -> str:
    """Identifiers in quotes, with commas."""
    return ", ".join(name(t) for t in texts)
