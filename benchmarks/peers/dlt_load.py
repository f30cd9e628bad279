"""dlt loads a table of PostgreSQL into another server. Runs in its own environment.

An input line: `{"url", "schema", "table", "backend", "format", "into", "dataset", "key",
"folder"}`. `into` is `{"url"}` for PostgreSQL, `{"host", "project"}` for an emulator of BigQuery,
`{"sqlalchemy"}` and `{"snowflake"}` with an address, `{"redshift"}` with an address and the bucket.
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
    if "redshift" in into:
        return redshift(into["redshift"])
    if "snowflake" in into:
        return snowflake(into["snowflake"])
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


def redshift(address: str) -> Any:
    """A server that plays Redshift, and knows no TRUNCATE."""

    class Played(dlt.destinations.redshift):
        """Redshift, whose tables are emptied by DELETE."""

        def _raw_capabilities(self) -> Any:
            found = super()._raw_capabilities()
            found.supports_truncate_command = False
            return found

    return Played(credentials=address)


def snowflake(address: str) -> Any:
    """An emulator, which knows no requests with several statements, neither a stage's name nor how
    columns are matched as a text, and only the type of a file's format."""
    from dlt.destinations.impl.snowflake import snowflake as loading
    from dlt.destinations.impl.snowflake import utils

    as_text, copying = utils.escape_snowflake_literal, loading.gen_copy_sql

    def named(value: str) -> str:
        if not value.startswith("@"):
            return str(as_text(value))
        stage, _, folder = value.partition("/")
        return f"{stage}/{folder.replace(chr(34), '')}"

    loading.escape_snowflake_literal = utils.escape_snowflake_literal = named
    utils._build_format_clause = lambda options: f"({options[0]})"
    word = "CASE_INSENSITIVE"
    loading.gen_copy_sql = lambda **asked: copying(**asked).replace(f"'{word}'", word)

    class Emulated(dlt.destinations.snowflake):
        """Snowflake, a statement at a time."""

        def _raw_capabilities(self) -> Any:
            found = super()._raw_capabilities()
            found.supports_multiple_statements = False
            found.preferred_loader_file_format = "parquet"  # for dlt's own tables
            return found

    return Emulated(credentials=address)


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
    # The place is empty, and the server that plays Redshift knows no TRUNCATE.
    first = "append" if "redshift" in asked["into"] else "replace"
    pipeline.run(table, loader_file_format=asked["format"], **{"write_disposition": first, **how})
    seconds = time.monotonic() - began
    counts = pipeline.last_trace.last_normalize_info.row_counts
    return {"seconds": seconds, "peak_mib": peak_mib(), "rows": counts.get(asked["table"], 0)}


for line in sys.stdin:
    sys.stdout.write(json.dumps(load(json.loads(line))) + "\n")
    sys.stdout.flush()
