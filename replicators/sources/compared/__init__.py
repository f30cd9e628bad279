"""Data sets that arrive as files, compared with the rows that came before. There is no log: what
changed is found by hashes, on Spark. This module imports no driver."""

from __future__ import annotations

from replicators.connectors.capabilities import ColumnKnowledge, SourceCapabilities
from replicators.connectors.control import SourceControl
from replicators.connectors.model.positions import Position
from replicators.connectors.poll import ChangePoll, PollReader
from replicators.connectors.snapshot import SnapshotSession, SnapshotWait
from replicators.connectors.source import Catalog, Checks, SourcePlugin
from replicators.sources.compared.messages import MESSAGES
from replicators.sources.compared.params import ComparedParams, places

__all__ = ["PLUGIN"]

SHORT_SECONDS, LONG_SECONDS = 1.0, 5.0


def _catalog(params: ComparedParams) -> Catalog:
    from replicators.sources.compared.catalog import ComparedCatalog

    return ComparedCatalog(params)


def _checks(params: ComparedParams) -> Checks:
    from replicators.sources.compared.checks import ComparedChecks

    return ComparedChecks(params)


def _reader(params: ComparedParams, name: str) -> PollReader:
    from replicators.sources.compared.poll import ComparedPoll

    return ComparedPoll(params, name)


def _control(params: ComparedParams, name: str, after: Position | None = None) -> SourceControl:
    from replicators.sources.compared.control import ComparedControl

    return ComparedControl(params, name, after)


def _snapshot_first(
    params: ComparedParams, name: str, reader: PollReader, wait: SnapshotWait | None = None
) -> SnapshotSession:
    from replicators.sources.compared.snapshot import snapshot_first

    return snapshot_first(params, name, reader, wait)


def _snapshot_again(
    params: ComparedParams,
    name: str,
    wait: SnapshotWait | None = None,
    after: Position | None = None,
) -> SnapshotSession:
    from replicators.sources.compared.snapshot import snapshot_again

    return snapshot_again(params, name, wait, after)


def _translate(err: BaseException) -> Exception:
    from replicators.sources.compared.errors import translate

    return translate(err)


def _seconds(params: ComparedParams) -> float:
    return SHORT_SECONDS if params.settle_seconds < LONG_SECONDS else LONG_SECONDS


def _jars(params: ComparedParams) -> tuple[str, ...]:
    is_avro = params.format == "Avro" or params.files.lower().endswith(".avro")
    return ("spark-avro",) if is_avro else ()


PLUGIN = SourcePlugin(
    name="compared",
    label="Files or a query, compared",
    summary="Data sets that arrive again and again; each is compared with the one before.",
    params=ComparedParams,
    capabilities=SourceCapabilities(
        columns=ColumnKnowledge.BY_LOG,
        can_quarantine=True,
        has_deliveries=True,
        log_label="deliveries",
        reader_label="state",
    ),
    catalog=_catalog,
    checks=_checks,
    control=_control,
    poll=ChangePoll(reader=_reader, snapshot_first=_snapshot_first, seconds=_seconds),
    snapshot_again=_snapshot_again,
    chunk_reader="replicators.sources.compared.snapshot:ComparedChunks",
    translate=_translate,
    objects=lambda name: [("state", name)],
    places=places,
    messages=MESSAGES,
    jars=_jars,
    icon="files",
    rank=110,
)
