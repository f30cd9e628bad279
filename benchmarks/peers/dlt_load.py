"""dlt loads a table of PostgreSQL into another server. Runs in its own environment.

An input line: `{"url", "schema", "table", "backend", "format", "into", "dataset", "key",
"folder"}`. `into` is `{"url"}` for PostgreSQL, `{"host", "project"}` for an emulator of BigQuery,
`{"sqlalchemy"}` with an address of SQLAlchemy.
Without a `key` the table is replaced. With a `key` the rows whose key is above the last one are
merged; the pipeline's folder remembers it. The answer has the seconds, the process's peak memory
and the number of rows that the load reports.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("RUNTIME__DLTHUB_TELEMETRY", "false")

import dlt
from dlt.sources.sql_database import sql_table
from peak import peak_mib


def destination(into: dict[str, str]) -> Any:
    """The place that dlt loads into."""
    if "url" in into:
        return dlt.destinations.postgres(credentials=into["url"])
    if "sqlalchemy" in into:
        return dlt.destinations.sqlalchemy(credentials=into["sqlalchemy"])
    os.environ["BIGQUERY_EMULATOR_HOST"] = into["host"]
    os.environ["NORMALIZE__DATA_WRITER__DISABLE_COMPRESSION"] = "true"  # it reads no gzip
    from dlt.common.configuration.specs import GcpServiceAccountCredentials
    from google.auth.credentials import AnonymousCredentials

    class Nobody(GcpServiceAccountCredentials):
        """Credentials that an emulator does not ask for."""

        def to_native_credentials(self) -> Any:
            return AnonymousCredentials()

    login = Nobody()
    login.project_id, login.private_key, login.client_email = into["project"], "none", "none"
    login.resolve()
    return dlt.destinations.bigquery(credentials=login, location="US")


def load(asked: dict[str, Any]) -> dict[str, Any]:
    """One load."""
    key = asked.get("key")
    began = time.monotonic()
    pipeline = dlt.pipeline(
        "bench",
        destination=destination(asked["into"]),
        dataset_name=asked["dataset"],
        pipelines_dir=str(Path(asked["folder"]) / "pipelines"),
    )
    more: dict[str, Any] = {"incremental": dlt.sources.incremental(key)} if key else {}
    table = sql_table(
        credentials=asked["url"], schema=asked["schema"], table=asked["table"],
        backend=asked["backend"], chunk_size=100_000, reflection_level="full_with_precision",
        **more,
    )  # fmt: skip
    how = {"write_disposition": "merge", "primary_key": key} if key else {}
    pipeline.run(
        table, loader_file_format=asked["format"], **{"write_disposition": "replace", **how}
    )
    seconds = time.monotonic() - began
    counts = pipeline.last_trace.last_normalize_info.row_counts
    return {"seconds": seconds, "peak_mib": peak_mib(), "rows": counts.get(asked["table"], 0)}


for line in sys.stdin:
    sys.stdout.write(json.dumps(load(json.loads(line))) + "\n")
    sys.stdout.flush()
