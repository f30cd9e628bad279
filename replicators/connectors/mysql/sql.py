"""Quoting for SQL text of MySQL and MariaDB: the one place that joins names into statements."""

from __future__ import annotations

from collections.abc import Iterable

from replicators.connectors.model.schema import TableId


def name(text: str) -> str:
    """An identifier in quotes."""
    return "`" + text.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A string literal; valid with and without NO_BACKSLASH_ESCAPES, since text with a backslash
    goes as hex."""
    if "\\" in text:
        return f"_utf8mb4 x'{text.encode().hex()}'"
    return "'" + text.replace("'", "''") + "'"


def table(table_id: TableId) -> str:
    """A table's qualified name."""
    return f"{name(table_id.schema)}.{name(table_id.name)}"


def names(texts: Iterable[str]) -> str:
    """Identifiers in quotes, with commas."""
    return ", ".join(name(t) for t in texts)
