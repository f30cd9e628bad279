"""python-mysql-replication reads row events and counts their rows. Runs in its own environment.

An input line: `{"server": {host, port, user, passwd}, "is_mariadb", "file", "position", "rows"}`.
The answer has rows, seconds and peak memory.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from peak import peak_mib
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent


def read(asked: dict[str, Any]) -> dict[str, Any]:
    """Read rows from a position on, until there are enough."""
    stream = BinLogStreamReader(
        connection_settings=asked["server"], server_id=987_654, is_mariadb=asked["is_mariadb"],
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent], blocking=True,
        resume_stream=True, log_file=asked["file"], log_pos=asked["position"],
    )  # fmt: skip
    rows, began = 0, 0.0
    for event in stream:
        began = began or time.monotonic()
        rows += len(event.rows)
        if rows >= asked["rows"]:
            break
    seconds = time.monotonic() - began
    stream.close()
    return {"rows": rows, "seconds": seconds, "peak_mib": peak_mib()}


for line in sys.stdin:
    sys.stdout.write(json.dumps(read(json.loads(line))) + "\n")
    sys.stdout.flush()
