"""Names of the target's schemas and tables. They are quoted, and sessions keep capital letters, so
they are the source's letter by letter."""

from __future__ import annotations

from replicators.connectors.model.schema import TableId
from replicators.targets.redshift.params import LONGEST, RedshiftParams

OWN = "_replicator"
"""Names of our own tables begin with this."""
Names = tuple[str, ...]


def names(params: RedshiftParams, table: TableId) -> Names:
    """Schema and table of a source table."""
    return params.schema or table.schema, table.name


def view(params: RedshiftParams, names: Names) -> Names | None:
    """The view of a target table's living rows; None where there are none."""
    if not params.current_views:
        return None
    kept = names[-1].encode()[: LONGEST - len(params.view_suffix)].decode(errors="ignore")
    return (*names[:-1], f"{kept}{params.view_suffix}")


def quoted(names: Names) -> str:
    """A qualified name in a statement."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)
