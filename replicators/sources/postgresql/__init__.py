"""PostgreSQL 14 and newer as a source: a logical replication slot, read with pgoutput. This module
imports no driver."""

from __future__ import annotations

from replicators.connectors.capabilities import ColumnKnowledge, SourceCapabilities
from replicators.connectors.control import SourceControl
from replicators.connectors.log import ByteLog, LogReader
from replicators.connectors.model.positions import Position
from replicators.connectors.snapshot import SnapshotSession, SnapshotWait
from replicators.connectors.source import Catalog, Checks, RowReader, SourcePlugin
from replicators.sources.postgresql.messages import MESSAGES
from replicators.sources.postgresql.params import PostgresqlParams, places
from replicators.sources.postgresql.setup import setup

__all__ = ["PLUGIN"]


def _catalog(params: PostgresqlParams) -> Catalog:
    from replicators.sources.postgresql.catalog import PostgresqlCatalog

    return PostgresqlCatalog(params)


def _checks(params: PostgresqlParams) -> Checks:
    from replicators.sources.postgresql.checks import PostgresqlChecks

    return PostgresqlChecks(params)


def _log_reader(params: PostgresqlParams, slot_name: str) -> LogReader:
    from replicators.sources.postgresql.log import LogReader as Reader

    return Reader(params, slot_name)


def _control(
    params: PostgresqlParams, slot_name: str, after: Position | None = None
) -> SourceControl:
    from replicators.sources.postgresql.control import LogControl as Control

    return Control(params, slot_name)


def _snapshot_first(
    params: PostgresqlParams, slot_name: str, reader: LogReader, wait: SnapshotWait | None = None
) -> SnapshotSession:
    from replicators.sources.postgresql.snapshot import snapshot_first

    return snapshot_first(params, slot_name, reader, wait)


def _snapshot_again(
    params: PostgresqlParams,
    name: str,
    wait: SnapshotWait | None = None,
    after: Position | None = None,
) -> SnapshotSession:
    from replicators.sources.postgresql.snapshot import snapshot_again

    return snapshot_again(params, name, wait)


def _row_reader(params: PostgresqlParams) -> RowReader:
    from replicators.sources.postgresql.rows import RowReader as Reader

    return Reader(params)


def _objects(name: str) -> list[tuple[str, str]]:
    from replicators.sources.postgresql.slots import publications

    return [("replication slot", name), *(("publication", p) for p in publications(name).values())]


def _translate(err: BaseException) -> Exception:
    from replicators.sources.postgresql.errors import translate

    return translate(err)


PLUGIN = SourcePlugin(
    name="postgresql",
    label="PostgreSQL",
    summary="Tables of a PostgreSQL database, followed through its write-ahead log.",
    params=PostgresqlParams,
    capabilities=SourceCapabilities(
        columns=ColumnKnowledge.BY_CATALOG,
        minimum_version="14",
        log_label="WAL",
        reader_label="replication slot",
        holds_log=True,
        has_row_filters=True,
        can_quarantine=True,
    ),
    catalog=_catalog,
    checks=_checks,
    control=_control,
    log=ByteLog(
        reader=_log_reader,
        snapshot_first=_snapshot_first,
        decoder="replicators.sources.postgresql.decode:decode",
    ),
    snapshot_again=_snapshot_again,
    chunk_reader="replicators.sources.postgresql.snapshot:ChunkReader",
    setup=setup,
    translate=_translate,
    objects=_objects,
    row_reader=_row_reader,
    skips_marked=lambda params: bool(params.skip_origins),
    places=places,
    messages=MESSAGES,
)
