"""The progress table in the target. Each row is a watermark: it tells readers at which versions the
other tables are consistent with each other. SQL text only."""

# ruff: noqa: S608 - names are quoted by the caller, values go through `dialect.text`

from __future__ import annotations

import json

from replicators.connectors.model.schema import TableId
from replicators.connectors.model.watermarks import Watermark
from replicators.targets.lakehouse import dialect, naming
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.state import OWNER, UUID

MARK = "replicator.progress"
"""The owner of a progress table. All replicators that write to the namespace share the table."""
COMMITS_A_TURN = 50
PROPERTIES = {
    "iceberg": {
        "format-version": "2",
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "20",
        "commit.manifest.min-count-to-merge": "20",
        "history.expire.min-snapshots-to-keep": "1",
    },
    "delta": {
        "delta.enableDeletionVectors": "false",
        "delta.checkpointInterval": "20",
        "delta.logRetentionDuration": "interval 1 days",
        "delta.deletedFileRetentionDuration": "interval 1 days",
    },
}
_TABLE = "STRUCT<`namespace`: STRING, `name`: STRING, `{}`: STRING>"
_TABLES = f"ARRAY<{_TABLE.format('version')}>"
_LEFT_OUT = f"ARRAY<{_TABLE.format('reason')}>"
_COLUMNS = (
    "`replicator` STRING, `sequence` BIGINT, `position` DECIMAL(20, 0), `committed_at` TIMESTAMP, "
    f"`published_at` TIMESTAMP, `readable_until` TIMESTAMP, `tables` {_TABLES}, `left_out` "
    f"{_LEFT_OUT}"
)


def create(target: str, form: str, uuid: str) -> str:
    """CREATE TABLE with our mark."""
    values = {**PROPERTIES[form], OWNER: MARK, UUID: uuid}
    return (
        f"CREATE TABLE {target} ({_COLUMNS})\nUSING {form}\nTBLPROPERTIES "
        f"({dialect.properties(values)})"
    )


def insert(target: str, params: LakehouseParams, replicator: str, mark: Watermark) -> str:
    """INSERT of one watermark."""
    tables = _listed(params, mark.versions, "version")
    left_out = _listed(params, mark.left_out, "reason")
    return (
        f"INSERT INTO {target} SELECT {dialect.text(replicator)}, CAST({mark.sequence} AS BIGINT), "
        f"CAST({mark.position.ordinal} AS DECIMAL(20, 0)), {_moment(mark.committed_at)}, "
        f"current_timestamp(), {_moment(mark.readable_until)}, "
        f"from_json({dialect.text(tables)}, {dialect.text(_TABLES)}), "
        f"from_json({dialect.text(left_out)}, {dialect.text(_LEFT_OUT)})"
    )


def prune(target: str, replicator: str, before: int) -> str:
    """Remove the replicator's rows with a sequence below `before` whose `readable_until` has
    passed: their versions may be gone."""
    return (
        f"DELETE FROM {target} WHERE `replicator` = {dialect.text(replicator)} "
        f"AND `sequence` < {before} AND `readable_until` < current_timestamp()"
    )


def forget(target: str, replicator: str) -> str:
    """Remove all rows of the replicator."""
    return f"DELETE FROM {target} WHERE `replicator` = {dialect.text(replicator)}"


def _moment(seconds: float) -> str:
    return f"timestamp_micros({int(seconds * 1e6)})"


def _listed(params: LakehouseParams, found: dict[TableId, str], word: str) -> str:
    rows = [(*naming.names(params, table), value) for table, value in found.items()]
    return json.dumps([{"namespace": s, "name": n, word: v} for s, n, v in sorted(rows)])
