"""The client library of Spanner copies a table of PostgreSQL: a loop with its helper for mutations.
Runs in its own environment.

An input line: `{"url", "into", "key"}`, where `into` is `{"project", "instance", "database",
"endpoint"}`. With a `key` only the rows whose key is above the last one are put. The answer has the
seconds, the process's peak memory and the number of rows.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import psycopg
from google.cloud import spanner
from peak import peak_mib

ROWS = 5_000
"""A commit takes at most 80,000 values."""
COLUMNS = ("id", "customer", "status", "amount", "note", "at", "ok")
DDL = """CREATE TABLE IF NOT EXISTS `events` (`id` INT64 NOT NULL,
`customer` INT64,
`status` STRING(MAX),
`amount` NUMERIC,
`note` STRING(MAX),
`at` TIMESTAMP,
`ok` BOOL) PRIMARY KEY (`id`)"""


def load(asked: dict[str, Any], last: int | None) -> tuple[dict[str, Any], int | None]:
    """One copy of the rows, or of those whose key is above `last`; the answer, and the last key."""
    into, where = asked["into"], ""
    if last is not None:
        where = f" WHERE {asked['key']} > {last}"
    os.environ["SPANNER_EMULATOR_HOST"] = into["endpoint"].removeprefix("http://")
    began, count = time.monotonic(), 0
    client = spanner.Client(project=into["project"], disable_builtin_metrics=True)
    database = client.instance(into["instance"]).database(into["database"])
    database.update_ddl([DDL]).result()
    with psycopg.connect(asked["url"]) as source, source.cursor(name="rows") as cursor:
        cursor.execute(f"SELECT {', '.join(COLUMNS)} FROM bench.events{where}")  # noqa: S608
        while rows := cursor.fetchmany(ROWS):
            with database.batch() as batch:
                batch.insert_or_update("events", COLUMNS, rows)
            count += len(rows)
            last = max(r[0] for r in rows) if last is None else max(last, *(r[0] for r in rows))
    return {"seconds": time.monotonic() - began, "peak_mib": peak_mib(), "rows": count}, last


known: int | None = None
for line in sys.stdin:
    asked = json.loads(line)
    told, known = load(asked, known if asked.get("key") else None)
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
