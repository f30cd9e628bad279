"""Whether tables and views are this replicator's own, asked before a run."""

from __future__ import annotations

from collections.abc import Callable

from replicators.connectors.sql.client import Names, SqlClient
from replicators.connectors.sql.places import one_per_table
from replicators.connectors.sql.state import Progress, ProgressTable, found, found_all
from replicators.connectors.view_fields import view_row


class Owners:
    """The progress rows of target tables. `progress`: the progress table of a target table. Each
    progress table is read once."""

    def __init__(
        self, client: SqlClient, progress: Callable[[Names], Names] = one_per_table
    ) -> None:
        self._client = client
        self._progress = progress
        self._known: dict[Names, dict[str, Progress]] = {}

    def row(self, names: Names, row: str = "") -> Progress | None:
        """The row of a target table, or another one of its progress table; None where there is
        none."""
        place = self._progress(names)
        if place not in self._known:
            there = self._client.table(place) is not None
            table = ProgressTable(self._client.dialect, place)
            self._known[place] = found_all(self._client.query(table.all())) if there else {}
        return self._known[place].get(row or names[-1])

    def has_view(self, names: Names, view: Names, replicator: str) -> bool:
        """Whether nothing but this replicator's view lies at the place of a table's view."""
        if self._client.table(view) is None:
            return True
        row = self.row(names, view_row(names[-1]))
        return row is not None and (row.replicator, row.uuid) == (replicator or None, view[-1])


def row_of(client: SqlClient, names: Names, row: str = "") -> Progress | None:
    """The progress row of a target table, or another one of its progress table; None where there is
    none."""
    place = one_per_table(names)
    if client.table(place) is None:
        return None
    return found(client.query(ProgressTable(client.dialect, place).find(row or names[-1])))
