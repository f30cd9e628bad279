"""data-diff compares a table of PostgreSQL with one of DuckDB. Runs in its own environment.

An input line: `{"source", "target", "table", "key", "columns"}`. `target` is a DuckDB
file. The answer has the seconds, the number of differing rows, and the peak memory.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from data_diff import connect_to_table, diff_tables
from peak import peak_mib


def compare(asked: dict[str, Any]) -> dict[str, Any]:
    """Compare all rows; both databases compute checksums of segments."""
    began = time.monotonic()
    path, more = tuple(asked["table"]), tuple(asked["columns"])
    source = connect_to_table(asked["source"], path, asked["key"], extra_columns=more)
    place = {"driver": "duckdb", "filepath": asked["target"]}
    target = connect_to_table(place, path[-1:], asked["key"], extra_columns=more)
    found = sum(1 for _ in diff_tables(source, target, threaded=True, max_threadpool_size=2))
    return {
        "seconds": time.monotonic() - began,
        "differences": found,
        "peak_mib": peak_mib(),
    }


for line in sys.stdin:
    sys.stdout.write(json.dumps(compare(json.loads(line))) + "\n")
    sys.stdout.flush()
