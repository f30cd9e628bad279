"""Removes what interrupted copies of a table leave: staging tables, branches, and files that no
version names. Nothing else would remove them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from replicators.connectors.storage import Storage
from replicators.connectors.target import TargetTable
from replicators.targets.lakehouse import catalog, dialect, naming
from replicators.targets.lakehouse.sessions import LentSession
from replicators.targets.lakehouse.state import UUID

if TYPE_CHECKING:
    from replicators.targets.lakehouse.iceberg import Iceberg

FILES, CLAIM = "_files", ".claim"
"""Suffixes of the folders beside a Delta table's staging folder. One folder holds files to copy
into it; the other marks that a first copy is being published."""


def folders_of(folders: Iterable[str], names: tuple[str, str], replicator: str) -> list[str]:
    """The staging folders of the replicator's table with these names, in any generation."""
    start = naming.folder(naming.staging_names(names, replicator, 0)[1]).removesuffix("0")
    plain = ((f, f.removesuffix(CLAIM).removesuffix(FILES)) for f in folders)
    return [f for f, p in plain if _is_numbered(p, start)]


def tables_of(tables: Iterable[str], names: tuple[str, str], replicator: str) -> list[str]:
    """The tables in the staging namespace for the replicator's table with these names, in any
    generation."""
    start = naming.staging_names(names, replicator, 0)[1].removesuffix("0")
    return [t for t in tables if _is_numbered(t, start)]


def _is_numbered(name: str, start: str) -> bool:
    """Whether the name is `start` followed by a generation's number."""
    return name.startswith(start) and name.removeprefix(start).isdecimal()


def clear(lake: Iceberg, session: LentSession, table: TargetTable, *, is_alive: bool) -> None:
    """Remove what copies into this Iceberg table staged. Without a reader, only tables of this
    generation and the one before are searched."""
    names, reader = lake.live_names(table), lake.open_reader()
    mark = naming.staging_mark(lake.params, table.replicator)
    if reader is None:
        both = (table.generation - 1, table.generation)
        staged = [naming.staging_names(names, mark, g)[1] for g in both]
    else:
        listed = catalog.tables(reader, (naming.STAGING_NAMESPACE,))
        staged = tables_of(listed, names, mark)
    for one in staged:
        purge(lake, session, table, (naming.STAGING_NAMESPACE, one))
    if is_alive:
        branches = lake.snapshots(session, names).branches
        for one in filter(naming.is_branch, branches):
            target = lake.path(names)
            session.sql(f"ALTER TABLE {target} DROP BRANCH IF EXISTS {dialect.quote(one)}")
    for one in folders_of(lake.staging.folders(lake.staging_root), names, mark):
        lake.staging.remove_folder(f"{lake.staging_root}/{one}")


def purge(lake: Iceberg, session: LentSession, table: TargetTable, names: tuple[str, str]) -> None:
    """Drop one of this replicator's Iceberg tables and everything in its folder. Files of an
    interrupted load or merge belong to no version, and a catalog does not remove them. Glue renames
    in two steps: a staging table whose second step did not happen is the live table by another
    name, and its files stay."""
    own = ""
    with suppress(Exception):  # listed, but its files are gone: nothing to remove
        own = (lake.properties(session, names) or {}).get(UUID, "")
    live = lake.live_names(table)
    if own and names != live and (lake.properties(session, live) or {}).get(UUID, "") == own:
        session.sql(f"DROP TABLE IF EXISTS {lake.path(names)}")
        return
    # No catalog lends keys for a table that is gone
    files = Storage(lake.params.store.of_table(names).taken()) if own else None
    session.sql(f"DROP TABLE IF EXISTS {lake.path(names)} PURGE")
    if files is not None:
        files.remove_folder(lake.location(table, own))
