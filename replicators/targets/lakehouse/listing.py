"""Lists Delta's tables by name in a Hive metastore, as external tables at their folders, through
Spark's own catalog. Their columns, properties and rows are those of the folder: what changes there
needs no change here."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import TargetTable
from replicators.targets.lakehouse import catalog, dialect, held, hive
from replicators.targets.lakehouse.sessions import LentSession

if TYPE_CHECKING:
    from replicators.targets.lakehouse.delta import Delta

Names = tuple[str, ...]


def is_at(found: Any, folder: str) -> bool:
    """Whether an entry of the metastore names this folder."""
    places = (found.sd.location, found.sd.serdeInfo.parameters.get("path"))
    return _plain(folder) in {_plain(place) for place in places if place}


def _plain(place: str) -> str:
    """A place in one spelling: a local one without its scheme, a bucket of S3 as `s3`."""
    bare = place.rstrip("/").replace("s3a://", "s3://")
    if bare.startswith("file:"):
        return "/" + bare.removeprefix("file:").lstrip("/")
    return bare


class Listing:
    """The names of one lakehouse. Thread safe for different tables."""

    def __init__(self, delta: Delta) -> None:
        self._delta = delta
        self._kept: set[Names] = set()
        self._lock = threading.Lock()

    def _entry(self, names: Names) -> Any:
        reader = catalog.open_catalog(self._delta.params)
        try:
            return held.entry(reader, names)
        finally:
            reader.close()

    def check(self, table: TargetTable) -> None:
        """Raise `target:table-taken` if the name belongs to another table."""
        names = self._delta.live_names(table)
        self._is_listed(table, names)

    def _is_listed(self, table: TargetTable, names: Names) -> bool:
        found = self._entry(names)
        if found is None:
            return False
        if not is_at(found, self._delta.folder(names)):
            raise ReplicationError("target:table-taken", table=table.source, target=".".join(names))
        return True

    def keep(self, session: LentSession, table: TargetTable) -> None:
        """Once for each table, list what another process left out."""
        if self._delta.live_names(table) not in self._kept:
            self.enter(session, table)

    def enter(self, session: LentSession, table: TargetTable) -> None:
        """List the live table, if it is not. Raises `target:table-taken`."""
        delta, names = self._delta, self._delta.live_names(table)
        if not self._is_listed(table, names):
            self._make_namespace(session, names)
            session.sql(
                f"CREATE TABLE IF NOT EXISTS {delta.named(names)} USING delta"
                f" LOCATION {dialect.text(delta.folder(names))}"
            )
        with self._lock:
            self._kept.add(names)

    def _make_namespace(self, session: LentSession, names: Names) -> None:
        place = dialect.text(hive.folder(self._delta.params.warehouse_url, names[0]))
        space = self._delta.named(names[:1])
        session.sql(f"CREATE DATABASE IF NOT EXISTS {space} LOCATION {place}")

    def drop(self, session: LentSession, table: TargetTable) -> None:
        """Remove the name of a table that is about to be dropped. Its files stay."""
        names = self._delta.live_names(table)
        found = self._entry(names)
        if found is not None and is_at(found, self._delta.folder(names)):
            session.sql(f"DROP TABLE IF EXISTS {self._delta.named(names)}")
        with self._lock:
            self._kept.discard(names)
