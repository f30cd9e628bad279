"""dlt copies a table into Parquet files. Runs in its own environment.

An input line: `{"url", "schema", "table", "backend", "folder"}`. The answer has its seconds, its
peak memory and the files.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import dlt
from dlt.sources.sql_database import sql_table
from peak import peak_mib


def copy(asked: dict[str, Any]) -> dict[str, Any]:
    """One copy into an empty folder."""
    folder = Path(asked["folder"])
    began = time.monotonic()
    pipeline = dlt.pipeline(
        f"copy_{asked['backend']}",
        destination=dlt.destinations.filesystem(str(folder / "files")),
        dataset_name="bench",
        pipelines_dir=str(folder / "pipelines"),
    )
    more = {"backend_kwargs": asked["backend_kwargs"]} if asked.get("backend_kwargs") else {}
    table = sql_table(
        credentials=asked["url"], schema=asked["schema"], table=asked["table"],
        backend=asked["backend"], chunk_size=100_000, reflection_level="full_with_precision",
        **more,
    )  # fmt: skip
    pipeline.run(table, loader_file_format="parquet", write_disposition="replace")
    seconds = time.monotonic() - began
    files = sorted((folder / "files" / "bench" / asked["table"]).glob("*.parquet"))
    return {
        "seconds": seconds,
        "files": [str(f) for f in files],
        "peak_mib": peak_mib(),
    }


for line in sys.stdin:
    sys.stdout.write(json.dumps(copy(json.loads(line))) + "\n")
    sys.stdout.flush()
