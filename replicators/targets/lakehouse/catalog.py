"""Reads the Iceberg catalog as a reader does: through its database or its server, without Spark."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from replicators.connectors import limits
from replicators.connectors.addresses import Url
from replicators.connectors.ownership import LiveTable
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.reading import IcebergScan
from replicators.targets.lakehouse.servers import PYTHON_FILE_IO
from replicators.targets.lakehouse.state import OWNER, UUID, token_from
from replicators.targets.lakehouse.stores import Store
from replicators.targets.lakehouse.versions import Snapshot, Snapshots

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from sqlalchemy.engine import Engine

CONNECT_SECONDS = 5


def path(params: LakehouseParams) -> str:
    """The file of a SQLite catalog; empty if the catalog is on a server."""
    if params.is_served:
        return ""
    url = Url.parse(params.catalog_uri)
    return url.path[1:] if url.scheme.startswith("sqlite") else ""


def is_there(params: LakehouseParams) -> bool:
    """Whether the database holds a catalog. Does not create a missing file; a server must
    answer."""
    if params.is_served:
        open_catalog(params, is_look=True).close()
        return True
    file = path(params)
    return has_tables(params, is_look=True) if not file or os.path.isfile(file) else False


def uri(params: LakehouseParams, *, is_look: bool = False) -> str:
    """The catalog's address with user and password, for SQLAlchemy. With `is_look`, a file is
    opened so that nothing is made or changed, and a server gets a time limit within a look."""
    from sqlalchemy.engine import make_url

    url = make_url(params.catalog_uri)
    if is_look and url.drivername.startswith("sqlite"):
        file = path(params)
        is_busy = any(os.path.exists(f"{file}{end}") for end in ("-wal", "-journal"))
        # `mode=ro` may make a file beside the database.
        how = {"mode": "ro"} if is_busy else {"immutable": "1"}
        return str(url.set(database=f"file:{quote(file)}", query={**how, "uri": "true"}))
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    if params.catalog_user:
        url = url.set(username=params.catalog_user)
    if params.catalog_password:
        url = url.set(password=params.catalog_password)
    seconds = limits.statement_seconds()
    if seconds is not None and url.get_backend_name() == "postgresql":
        given = url.query.get("options", "")
        own = given if isinstance(given, str) else " ".join(given)
        more = {
            "connect_timeout": f"{limits.left(CONNECT_SECONDS):.0f}",
            "options": f"-c statement_timeout={seconds * 1000:.0f} {own}".strip(),
        }
        url = url.update_query_dict(more)
    return url.render_as_string(hide_password=False)


def _watched(engine: Engine) -> Engine:
    """Cut the engine's connections off when their look is over. Returns the engine."""
    from sqlalchemy import event

    @event.listens_for(engine, "connect", insert=True)  # before SQLAlchemy's first query
    def _made(connection: Any, _: Any) -> None:
        if hasattr(connection, "fileno"):  # SQLite's is a file
            limits.watch(connection.fileno())

    return engine


def has_tables(params: LakehouseParams, *, is_look: bool = False) -> bool:
    """Whether the database holds a catalog. The database must answer."""
    from sqlalchemy import create_engine, inspect

    engine = _watched(create_engine(uri(params, is_look=is_look)))
    try:
        return bool(inspect(engine).has_table("iceberg_tables"))
    finally:
        engine.dispose()


def _metadata(catalog: Any, names: tuple[str, ...]) -> TableMetadata | None:
    from pyiceberg.exceptions import NoSuchTableError

    try:
        found: TableMetadata = catalog.load_table(names).metadata
    except NoSuchTableError:
        return None
    return found


def open_catalog(params: LakehouseParams, *, is_look: bool = False) -> Any:
    """pyiceberg's catalog. It makes no tables in the database."""
    files = params.store.iceberg_properties()
    if params.is_rest:
        from replicators.targets.lakehouse.remote import Catalog

        return Catalog(params.catalog_name, **{**params.server.properties(), **files})
    if params.is_glue:
        from replicators.targets.lakehouse.aws import open_glue

        files = {"py-io-impl": PYTHON_FILE_IO, **files}
        return open_glue(params.catalog_name, params.glue, files, is_look=is_look)
    if params.is_hive:
        from replicators.targets.lakehouse.metastore import open_metastore

        files = {"py-io-impl": PYTHON_FILE_IO, **files}
        where = (params.catalog_uri, params.warehouse_url)
        return open_metastore(params.catalog_name, *where, files, is_look=is_look)
    from pyiceberg.catalog.sql import SqlCatalog

    made = SqlCatalog(
        params.catalog_name,
        uri=uri(params, is_look=is_look),
        warehouse=params.warehouse_url,
        init_catalog_tables="false",
        pool_pre_ping="true",  # reconnects after a server's restart
        **files,
    )
    _watched(made.engine)
    return made


class Reader:
    """Opens the catalog once for all threads. Thread safe."""

    def __init__(self, params: LakehouseParams) -> None:
        self._params = params
        self._catalog: Any = None
        self._lock = threading.Lock()

    def opened(self) -> Any:
        """The catalog if it is a server, or if this program reads the warehouse's files in
        milliseconds. None otherwise, and before the first table of a catalog in a database."""
        with self._lock:
            if self._catalog is None and self._is_quick():
                self._catalog = open_catalog(self._params)
            return self._catalog

    def _is_quick(self) -> bool:
        """Whether a table's state is found soon: a server sends it, or its file is near."""
        if self._params.is_served:
            return self._params.is_rest
        is_near = "://" not in self._params.warehouse_url or self._params.store.is_read_soon
        return is_near and has_tables(self._params)


def snapshots(catalog: Any, names: tuple[str, ...]) -> Snapshots:
    """A table's snapshots, from its metadata file."""
    metadata: TableMetadata = catalog.load_table(names).metadata
    known = {
        s.snapshot_id: Snapshot(
            s.snapshot_id,
            s.parent_snapshot_id,
            s.summary.additional_properties if s.summary else {},
            s.timestamp_ms / 1000,
        )
        for s in metadata.snapshots
    }
    tags, branches = (
        {n: r.snapshot_id for n, r in metadata.refs.items() if r.snapshot_ref_type == kind}
        for kind in ("tag", "branch")
    )
    return Snapshots(metadata.current_snapshot_id, known, tags, branches)


def tables(catalog: Any, namespace: tuple[str, ...]) -> list[str]:
    """The names of the namespace's tables, including tables whose files are gone."""
    from pyiceberg.exceptions import NoSuchNamespaceError

    try:
        return [names[-1] for names in catalog.list_tables(namespace)]
    except NoSuchNamespaceError:
        return []


def properties(catalog: Any, names: tuple[str, ...]) -> Mapping[str, str] | None:
    """A table's properties, from its metadata file; None if there is no such table."""
    metadata = _metadata(catalog, names)
    return None if metadata is None else metadata.properties


def scan(catalog: Any, names: tuple[str, ...], store: Store) -> IcebergScan | None:
    """What reads the table's current snapshot; None if there is no such table."""
    from pyiceberg.exceptions import NoSuchTableError

    try:
        found = catalog.load_table(names)
    except NoSuchTableError:
        return None
    return IcebergScan(found.metadata_location, found.metadata.current_snapshot_id, store)


def live_table(catalog: Any, names: tuple[str, ...]) -> LiveTable | None:
    """A table's own state, from its metadata file alone; None if there is no such table."""
    metadata = _metadata(catalog, names)
    if metadata is None:
        return None
    own = metadata.properties.get(UUID, "")
    token, version, snapshot = None, "", metadata.current_snapshot()
    while snapshot is not None and token is None:
        version = str(snapshot.snapshot_id)
        summary = snapshot.summary
        token = token_from(summary.additional_properties if summary else {}, own)
        parent = snapshot.parent_snapshot_id
        snapshot = metadata.snapshot_by_id(parent) if parent is not None else None
    owner = metadata.properties.get(OWNER, "")
    return LiveTable(owner, own, token, version=version, rows=_rows(metadata))


def _rows(metadata: TableMetadata) -> int | None:
    snapshot = metadata.current_snapshot()
    reported = snapshot.summary.additional_properties if snapshot and snapshot.summary else {}
    return int(reported["total-records"]) if "total-records" in reported else None
