"""Names of the target's databases, tables and columns. MySQL keeps no name longer than 64
characters: such a table can't be copied, and the assessment tells it."""

from __future__ import annotations

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.targets.mysql.params import LONGEST, MysqlTargetParams

PROGRESS = "_replicator_progress"
OWN = "_replicator"
"""Names of our own tables begin with this."""
OWN_DATABASES = frozenset({"mysql", "information_schema", "performance_schema", "sys"})
"""The server's own databases."""


def names(params: MysqlTargetParams, table: TableId) -> tuple[str, str]:
    """The target's database and name of a source table."""
    return params.database or table.schema, table.name


def view(params: MysqlTargetParams, names: tuple[str, ...]) -> tuple[str, str] | None:
    """The view of a target table's living rows; None where there are none."""
    if not params.current_views:
        return None
    return names[0], f"{names[-1][: LONGEST - len(params.view_suffix)]}{params.view_suffix}"


def fault(name: str) -> str:
    """Why MySQL can't have this name, as the end of a sentence; empty where it can."""
    if len(name) > LONGEST:
        return f"longer than {LONGEST} characters"
    if name.endswith(" "):
        return "it ends with a blank"
    if "\x00" in name or any(ord(c) > 0xFFFF for c in name):
        return "it has a character beyond U+FFFF"
    return ""


def shared(table: TableSchema) -> list[tuple[str, str]]:
    """Pairs of columns that MySQL does not tell apart: case does not count in their names."""
    seen: dict[str, str] = {}
    found = []
    for column in table.supported:
        place = column.name.casefold()
        if place in seen:
            found.append((column.name, seen[place]))
        seen.setdefault(place, column.name)
    return found
