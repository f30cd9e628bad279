"""Views of the living rows beside copies in the modes soft delete and history, in a catalog that
holds views. They show the source's columns only.

A table's property (`VIEW`) names its view. It is written before the view is made and removed after
the view is dropped, so that a repeat after a crash finds the view. A view is ours if its own
properties name the replicator and the table. Whatever else has the name is never touched.
"""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql.views import query_of, shown
from replicators.connectors.target import TargetTable
from replicators.connectors.view_fields import VIEWED
from replicators.targets.lakehouse import dialect, held, naming
from replicators.targets.lakehouse.held import OF, VIEW
from replicators.targets.lakehouse.sessions import LentSession
from replicators.targets.lakehouse.state import OWNER

if TYPE_CHECKING:
    from replicators.targets.lakehouse.delta import Delta
    from replicators.targets.lakehouse.iceberg import Iceberg

SHOWS = "replicator.view-shows"
"""A view's property: a digest of its query and of its columns' types."""
Names = tuple[str, str]


class Views:
    """The views of one lakehouse. Thread safe for different tables."""

    def __init__(self, lake: Iceberg | Delta) -> None:
        self._lake = lake
        self._kept: set[Names] = set()
        self._lock = threading.Lock()

    def _wanted(self, table: TargetTable, names: Names) -> Names | None:
        return naming.view(self._lake.params, names) if table.mode in VIEWED else None

    def check(self, table: TargetTable) -> None:
        """What a copy can't begin with. Raises `target:view-taken` if something that is not ours
        has the view's name, and `target:table-taken` if a view has the table's."""
        params, names = self._lake.params, self._lake.live_names(table)
        if not (params.current_views and params.has_views):
            return
        wanted = self._wanted(table, names)
        with held.opened(params, self._lake.open_reader()) as reader:
            if reader is None:
                return
            if held.view(reader, params, names):
                target = ".".join(names)
                raise ReplicationError("target:table-taken", table=table.source, target=target)
            if wanted is not None:
                self._is_ours(reader, table, names, wanted)

    def _is_ours(self, reader: object, table: TargetTable, names: Names, place: Names) -> str:
        """What our view at a place shows; empty if nothing is there. Raises `target:view-taken` if
        it is not ours."""
        there = held.view(reader, self._lake.params, place)
        if there is None:
            return ""
        if (there.get(OWNER), there.get(OF)) != (table.replicator, names[-1]):
            raise ReplicationError("target:view-taken", table=table.source, view=".".join(place))
        return there.get(SHOWS, "")

    def keep(self, session: LentSession, table: TargetTable, schema: TableSchema) -> None:
        """Once for each table, make what another process left out."""
        names = self._lake.live_names(table)
        if table.mode in VIEWED and names not in self._kept:
            self.follow(session, table, schema)
            with self._lock:
                self._kept.add(names)

    def follow(self, session: LentSession, table: TargetTable, schema: TableSchema) -> None:
        """Make, change or drop the view as the live table has it now. `schema`: without the mode's
        columns. Raises `target:view-taken`."""
        lake, names = self._lake, self._lake.live_names(table)
        if not lake.params.has_views:
            return
        wanted = self._wanted(table, names)
        old = (lake.properties(session, names) or {}).get(VIEW, "")
        if wanted is None and not old:
            return
        with held.opened(lake.params, lake.open_reader()) as reader:
            if old and (wanted is None or old != wanted[-1]):
                self._drop(session, reader, table, names, old)
            if wanted is not None:
                self._make(session, reader, table, schema, old)
            elif old:
                session.sql(dialect.unset_property(lake.path(names), VIEW))

    def _make(
        self,
        session: LentSession,
        reader: object,
        table: TargetTable,
        schema: TableSchema,
        old: str,
    ) -> None:
        lake, names = self._lake, self._lake.live_names(table)
        place = naming.view(lake.params, names)
        assert place is not None
        present = self._is_ours(reader, table, names, place)
        target = lake.path(names)
        columns = shown(schema, frozenset())
        query = dialect.SPARK.sql(query_of(lake.parts(names), columns, table.mode))
        types = {f.name: f.dataType.simpleString() for f in session.table(target).schema.fields}
        digest = hashlib.sha256(repr((query, [types.get(c) for c in columns])).encode()).hexdigest()
        if present == digest and old == place[-1]:
            return
        if old != place[-1]:
            session.sql(dialect.set_properties(target, {VIEW: place[-1]}))
        values = {OWNER: table.replicator, OF: names[-1], SHOWS: digest} | lake.view_values(place)
        session.sql(dialect.create_view(lake.named(place), query, values, replaces=bool(present)))

    def _drop(
        self, session: LentSession, reader: object, table: TargetTable, names: Names, old: str
    ) -> None:
        """Drop the view of this name if it is ours."""
        place = (names[0], old)
        there = held.view(reader, self._lake.params, place)
        if there and (there.get(OWNER), there.get(OF)) == (table.replicator, names[-1]):
            session.sql(f"DROP VIEW IF EXISTS {self._lake.named(place)}")
            self._lake.clear_view(place)

    def drop(self, session: LentSession, table: TargetTable) -> None:
        """Drop the view of a table that is about to be dropped."""
        lake, names = self._lake, self._lake.live_names(table)
        if not lake.params.has_views:
            return
        shown_now = lake.properties(session, names) or {}
        if shown_now.get(VIEW) and shown_now.get(OWNER) == table.replicator:
            with held.opened(lake.params, lake.open_reader()) as reader:
                self._drop(session, reader, table, names, shown_now[VIEW])
