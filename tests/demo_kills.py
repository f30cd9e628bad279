"""SIGKILL of the demo's workers, beat, broker and run under traffic: every table is equal
afterwards."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from contextlib import suppress
from typing import Any

import psycopg
from pyiceberg.catalog.sql import SqlCatalog

from demo.shop import SCHEMA, TABLES
from tests.demos import Demo, pids, until
from tests.harness import differing, table_rows


def is_copied(reported: dict[str, Any], seen: list[str]) -> bool:
    """Whether every table follows its changes; `seen` are the states as they are now."""
    address = f"{reported['url']}/api/v1/replicators/{reported['replicator_id']}/status/"
    request = urllib.request.Request(
        address, headers={"Authorization": f"Bearer {reported['token']}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            status = json.load(answer)
    except OSError:
        return False
    seen[:] = [status["state"], *(f"{t['table']} {t['state']}" for t in status["tables"])]
    return (
        len(status["tables"])
        == len(TABLES)
        == sum(t["state"] == "replicating" for t in status["tables"])
    )


class Copies:
    """The demo's tables at the source and at the target."""

    def __init__(self, reported: dict[str, Any]) -> None:
        target = reported["target"]
        self.dsn = reported["source"]["dsn"]
        self.namespace = target["namespace"]
        self.catalog = SqlCatalog(
            target["catalog_name"], uri=target["catalog_uri"], warehouse=target["warehouse"]
        )

    def target(self, name: str) -> list[dict[str, Any]]:
        table = self.catalog.load_table((self.namespace, name))
        return list(table.scan().to_arrow().to_pylist())

    def differences(self, name: str) -> list[str]:
        with psycopg.connect(self.dsn) as connection:
            source = table_rows(connection, SCHEMA, name)
        return differing(source, self.target(name))

    def newest(self) -> int:
        """The highest order that has arrived."""
        return max(row["id"] for row in self.target("orders"))


def kills_lose_and_double_nothing(demo: Demo, reported: dict[str, Any]) -> None:
    """Of workers, beat, broker and run, while traffic goes on."""
    seen: list[str] = []
    until(lambda: is_copied(reported, seen), lambda: f"every table has its copy: {seen}", 240)
    copies = Copies(reported)
    for parts in (
        ("worker-runs",),
        ("broker", "beat", "worker-default"),
        ("worker-runs", "run"),
    ):
        before, gone = copies.newest(), [pid for part in parts for pid in pids(demo, part)]
        assert len(gone) >= len(parts)
        for pid in gone:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(
            lambda parts=parts, gone=gone: all(  # type: ignore[misc]
                (now := pids(demo, part)) and not set(now) & set(gone) for part in parts
            ),
            f"{parts} started again",
        )
        until(lambda before=before: copies.newest() > before, f"changes after {parts}")  # type: ignore[misc]
    become_equal(demo, copies)


def become_equal(demo: Demo, copies: Copies) -> None:
    """Without traffic, every table of the target becomes equal to its source."""
    for pid in pids(demo, "traffic"):
        os.kill(pid, signal.SIGSTOP)
    try:
        left: dict[str, list[str]] = {}

        def is_equal() -> bool:
            left.update({name: copies.differences(name) for name in TABLES})
            return not any(left.values())

        until(is_equal, "the copies are equal")
    finally:
        for pid in pids(demo, "traffic"):
            os.kill(pid, signal.SIGCONT)
