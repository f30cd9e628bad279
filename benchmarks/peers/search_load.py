"""A plain client writes change files into a search index, row by row. Runs in its own environment.

An input line: `{"url", "index", "files", "way", "rows"}`. With the way `one`, each change is a
request. With `bulk`, the client's own helper sends them with its own settings. Both decode the
files' rows and make the documents in one loop. After so many `rows` it stops; 0 means all. The
answer has the rows, the seconds and the process's peak memory.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow.parquet as pq
from opensearchpy import OpenSearch
from opensearchpy.exceptions import ConflictError
from opensearchpy.helpers import streaming_bulk
from peak import peak_mib

DELETE = 2
META = ("_sequence", "_op")
ROWS_READ = 10_000
SECONDS = 120


def actions(paths: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of the files as actions of the helper."""
    for path in paths:
        file = pq.ParquetFile(path)
        columns = [n for n in file.schema_arrow.names if n in META or not n.startswith("_")]
        for batch in file.iter_batches(ROWS_READ, columns=columns):
            for row in batch.to_pylist():
                document = {k: v for k, v in row.items() if not k.startswith("_")}
                action = {
                    "_id": str(row["id"]),
                    "version": row["_sequence"],
                    "version_type": "external",
                }
                if row["_op"] == DELETE:
                    yield {**action, "_op_type": "delete"}
                else:
                    yield {**action, "_op_type": "index", "_source": document}


def one_by_one(client: OpenSearch, index: str, found: Iterator[dict[str, Any]]) -> int:
    """A request for each of them; returns how many they were."""
    rows = 0
    for action in found:
        rows += 1
        asked = {n: action[n] for n in ("version", "version_type")}
        try:
            if action["_op_type"] == "delete":
                client.delete(index=index, id=action["_id"], params=asked, ignore=(404,))
            else:
                document = action["_source"]
                client.index(index=index, body=document, id=action["_id"], params=asked)
        except ConflictError:
            continue
    return rows


def in_bulk(client: OpenSearch, index: str, found: Iterator[dict[str, Any]]) -> int:
    """By the client's helper; returns how many they were."""
    told = streaming_bulk(client, found, index=index, raise_on_error=False)
    return sum(1 for _ in told)


def load(asked: dict[str, Any]) -> dict[str, Any]:
    """One load."""
    write = {"one": one_by_one, "bulk": in_bulk}[asked["way"]]
    began = time.monotonic()
    client = OpenSearch(asked["url"], timeout=SECONDS)
    found = itertools.islice(actions(asked["files"]), asked["rows"] or None)
    rows = write(client, asked["index"], found)
    return {"rows": rows, "seconds": time.monotonic() - began, "peak_mib": peak_mib()}


for line in sys.stdin:
    sys.stdout.write(json.dumps(load(json.loads(line))) + "\n")
    sys.stdout.flush()
