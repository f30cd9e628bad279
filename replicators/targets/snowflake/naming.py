"""Names of the target's schemas and tables. Names are quoted, so they are the source's, letter by
letter; text that is not quoted would be folded to capital letters."""

from __future__ import annotations

from replicators.connectors.model.schema import TableId
from replicators.targets.snowflake.params import LONGEST, SnowflakeParams

OWN = "_replicator"
"""Names of our own tables begin with this."""
Names = tuple[str, ...]


def names(params: SnowflakeParams, table: TableId) -> Names:
    """Database, schema and table of a source table."""
    return params.database, params.schema or table.schema, table.name


def view(params: SnowflakeParams, names: Names) -> Names | None:
    """The view of a target table's living rows; None where there are none."""
    if not params.current_views:
        return None
    kept = names[-1][: LONGEST - len(params.view_suffix)]
    return (*names[:-1], f"{kept}{params.view_suffix}")


def quoted(names: Names) -> str:
    """A qualified name in a statement."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)
