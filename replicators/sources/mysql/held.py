"""Transactions that have a GTID in MySQL but are not visible yet."""

from __future__ import annotations

import re

from replicators.sources.mysql.connections import Connection, query

_SOURCE = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.IGNORECASE)

Held = frozenset[tuple[str, int]]
"""GTIDs, each with the number of the process that holds it."""


def held(connection: Connection) -> Held:
    """Transactions that are being committed, logged or not, and those that began under a GTID, as a
    replica's do."""
    return held_in(str(query(connection, "SELECT @@global.gtid_owned")[0][0] or ""))


def held_in(text: str) -> Held:
    """Parse `gtid_owned`: `uuid:5#19:4#17`, also with tags. No separator stands between sources."""
    found = set()
    _, *parts = _SOURCE.split(text)
    for source, rest in zip(parts[::2], parts[1::2], strict=True):
        key = source.lower()
        for word in filter(None, (w.strip(" ,\n") for w in rest.split(":"))):
            number, mark, process = word.partition("#")
            if mark:
                found.add((f"{key}:{number}", int(process)))
            else:
                key = f"{source.lower()}:{word.lower()}"
    return frozenset(found)
