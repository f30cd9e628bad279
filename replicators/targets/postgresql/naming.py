"""Names of the target's schemas, tables and columns. PostgreSQL keeps at most 63 bytes of a name,
and silently cuts a longer one: so we cut it ourselves, and tell it before."""

from __future__ import annotations

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.targets.postgresql.params import PostgresqlTargetParams

LONGEST = 63
SYSTEM_COLUMNS = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"})
"""Each table has these columns; no other may have their names."""
PROGRESS = "_replicator_progress"
MESSAGES = "_replicator_messages"
"""The table with the messages of all tables, in the target's schema."""
DELETES = "_replicator_deletes"
"""What others deleted in tables that are replicated both ways."""
CONFLICTS = "_replicator_conflicts"
"""Changes that lost there."""
OWN = "_replicator"
"""Names of our own tables begin with this."""


def cut(text: str) -> str:
    """The part of a name that PostgreSQL keeps. A character is never cut in two."""
    return text.encode()[:LONGEST].decode(errors="ignore")


def names(params: PostgresqlTargetParams, table: TableId) -> tuple[str, str]:
    """The target's schema and name of a source table."""
    return cut(params.schema or table.schema), cut(table.name)


def view(params: PostgresqlTargetParams, names: tuple[str, ...]) -> tuple[str, str] | None:
    """The view of a target table's living rows; None where there are none."""
    if not params.current_views:
        return None
    longest = LONGEST - len(params.view_suffix)
    kept = names[-1].encode()[:longest].decode(errors="ignore")
    return names[0], f"{kept}{params.view_suffix}"


def is_own(names: tuple[str, str]) -> bool:
    """Whether the place is one of our own tables."""
    return names[1].startswith(OWN)


def system_columns(table: TableSchema) -> list[str]:
    """The table's columns whose names PostgreSQL keeps for itself."""
    return [c.name for c in table.supported if c.name in SYSTEM_COLUMNS]


def long_columns(table: TableSchema) -> list[str]:
    """The table's columns whose names are too long."""
    return [c.name for c in table.supported if cut(c.name) != c.name]
