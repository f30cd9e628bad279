"""Whether tables and views are this replicator's own, asked before a run. For targets in which each
table has a progress table of its own (`places.one_per_table`)."""

from __future__ import annotations

from replicators.connectors.sql.client import Names, SqlClient
from replicators.connectors.sql.places import one_per_table
from replicators.connectors.sql.state import Progress, ProgressTable, found
from replicators.connectors.view_fields import view_row


def row_of(client: SqlClient, names: Names, row: str = "") -> Progress | None:
    """The progress row of a target table, or another one of its progress table; None where there is
    none."""
    place = one_per_table(names)
    if client.table(place) is None:
        return None
    return found(client.query(ProgressTable(client.dialect, place).find(row or names[-1])))


def is_view_taken(client: SqlClient, names: Names, view: Names, replicator: str) -> bool:
    """Whether something that is not this replicator's lies at the place of a table's view."""
    if client.table(view) is None:
        return False
    row = row_of(client, names, view_row(names[-1]))
    return row is None or not replicator or (row.replicator, row.uuid) != (replicator, view[-1])
