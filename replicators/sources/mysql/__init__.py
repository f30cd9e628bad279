"""MySQL 8.0 and MariaDB 10.5 and newer as a source: the binlog, read as a replica reads it. This
module imports no driver."""

from __future__ import annotations

from replicators.connectors.capabilities import ColumnKnowledge, SourceCapabilities
from replicators.connectors.control import SourceControl
from replicators.connectors.log import ByteLog, LogReader
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.snapshot import SnapshotSession, SnapshotWait
from replicators.connectors.source import Catalog, Checks, RowReader, SourcePlugin
from replicators.sources.mysql.conversions import keeps_values
from replicators.sources.mysql.messages import MESSAGES
from replicators.sources.mysql.params import MysqlParams, places
from replicators.sources.mysql.setup import setup

__all__ = ["PLUGIN"]


def _catalog(params: MysqlParams) -> Catalog:
    from replicators.sources.mysql.catalog import MysqlCatalog

    return MysqlCatalog(params)


def _checks(params: MysqlParams) -> Checks:
    from replicators.sources.mysql.checks import MysqlChecks

    return MysqlChecks(params)


def _log_reader(params: MysqlParams, name: str) -> LogReader:
    from replicators.sources.mysql.log import LogReader as Reader

    return Reader(params, name)


def _control(params: MysqlParams, name: str, after: Position | None = None) -> SourceControl:
    from replicators.sources.mysql.control import LogControl as Control

    return Control(params, name, after)


def _snapshot_first(
    params: MysqlParams, name: str, reader: LogReader, wait: SnapshotWait | None = None
) -> SnapshotSession:
    from replicators.sources.mysql.snapshot import SnapshotSession as Session

    return Session(params, name, lost=getattr(reader, "lost", None), wait=wait)


def _snapshot_again(
    params: MysqlParams, name: str, wait: SnapshotWait | None = None, after: Position | None = None
) -> SnapshotSession:
    from replicators.sources.mysql.snapshot import SnapshotSession as Session

    return Session(params, name, after, wait=wait)


def _repair_reader(params: MysqlParams, name: str, after: Position | None) -> RowReader:
    from replicators.sources.mysql.rows import RowReader as Reader

    return Reader(params, name, after)


def _translate(err: BaseException) -> Exception:
    from replicators.sources.mysql.errors import translate

    return translate(err)


def _schema_at(table: TableSchema, reached: Position, at: int) -> TableSchema | None:
    from replicators.sources.mysql.schemas import described
    from replicators.sources.mysql.steps import TableStep, steps_of

    known = [TableStep.from_json(s) for s in reached.detail.get("steps", ())]
    return described(table, [s for s in steps_of(known, table.id) if s.position <= at])


PLUGIN = SourcePlugin(
    name="mysql",
    label="MySQL / MariaDB",
    summary="Tables of a MySQL or MariaDB server, followed through its binlog.",
    params=MysqlParams,
    capabilities=SourceCapabilities(
        columns=ColumnKnowledge.BY_STATEMENTS,
        has_exact_snapshot=False,
        can_quarantine=True,
        follows_keyless=True,
        has_row_filters=True,
        minimum_version="8.0 (MariaDB: 10.5)",
        log_label="binlog",
    ),
    catalog=_catalog,
    checks=_checks,
    control=_control,
    log=ByteLog(
        reader=_log_reader,
        snapshot_first=_snapshot_first,
        decoder="replicators.sources.mysql.decode:decode",
        grows="replicators.sources.mysql.decode:grows",
    ),
    snapshot_again=_snapshot_again,
    chunk_reader="replicators.sources.mysql.snapshot:ChunkReader",
    translate=_translate,
    setup=setup,
    repair_reader=_repair_reader,
    keeps_values=keeps_values,
    schema_at=_schema_at,
    places=places,
    messages=MESSAGES,
)
