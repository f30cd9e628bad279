"""Debezium's embedded engine as a peer: its settings, and its answers. Where it is not installed or
fails, the answer says why."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import place
from benchmarks.peers.environments import Conversation, reason, talk
from benchmarks.programs import LIMIT_SECONDS
from benchmarks.report import Peer
from setup.machine import Missing
from tests.mysql_servers import ADMIN, HOST, PASSWORD

NAME = "Debezium embedded"
MARKS = "CREATE TABLE bench.marks (id bigint PRIMARY KEY)"
COMMON = {
    "name": "bench",
    "topic.prefix": "bench",
    "table.include.list": "bench.events,bench.marks",
    "snapshot.mode": "no_data",
    "include.schema.changes": "false",
    "tombstones.on.delete": "false",
    "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
    "offset.flush.interval.ms": "10000",
    "max.batch.size": "8192",
    "max.queue.size": "32768",
}


def for_mysql(port: int, folder: Path) -> dict[str, str]:
    """Debezium's settings for a MySQL server."""
    return {
        **COMMON,
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "database.hostname": HOST,
        "database.port": str(port),
        "database.user": ADMIN,
        "database.password": PASSWORD,
        "database.server.id": "987655",
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": str(folder / "history.dat"),
        "offset.storage.file.filename": str(folder / "offsets.dat"),
    }


def for_postgresql(params: Any, folder: Path) -> dict[str, str]:
    """Debezium's settings for a PostgreSQL server."""
    return {
        **COMMON,
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": params.host,
        "database.port": str(params.port),
        "database.user": params.user,
        "database.password": params.password,
        "database.dbname": params.database,
        "plugin.name": "pgoutput",
        "slot.name": "debezium",
        "publication.name": "debezium",
        "publication.autocreate.mode": "filtered",
        "offset.storage.file.filename": str(folder / "offsets.dat"),
    }


@dataclass(frozen=True, slots=True)
class Told:
    """What an engine needed for `events`. Where there is no engine, `missing` says why and the rest
    is None."""

    events: int = 0
    seconds: float | None = None
    lag_p50: float | None = None
    lag_p99: float | None = None
    memory_gib: float | None = None
    missing: str = ""

    @property
    def rate(self) -> float | None:
        """Events a second."""
        return self.events / self.seconds if self.seconds else None

    def peer(self, value: float | None, name: str = NAME) -> Peer:
        """The peer for the table of results."""
        return Peer(name, value, self.memory_gib, self.missing)


class Debezium:
    """A stopped engine that has an offset, or the reason why there is none."""

    def __init__(self, conversation: Conversation | None, missing: str = "") -> None:
        self._conversation = conversation
        self._missing = missing

    def ask(self, **values: Any) -> Told:
        """Let it run until it has seen what `values` ask for; returns what it needed."""
        if self._conversation is None:
            return Told(missing=self._missing)
        try:
            self._conversation.say(**values)
            told = self._conversation.hear(LIMIT_SECONDS + values.get("lag_seconds", 0.0))
        except (RuntimeError, OSError) as err:
            place.logger.warning("Debezium: %s", err)
            return Told(missing=reason(err))
        place.logger.info("Debezium: %s", json.dumps(told))
        return Told(
            told["events"], told["seconds"], told["lag_p50"], told["lag_p99"],
            round(told["peak_mib"] / 1024, 2)
        )  # fmt: skip


@contextmanager
def debezium(
    properties: dict[str, str], folder: Path, execute: Callable[[str], Any]
) -> Iterator[Debezium]:
    """Prepare an engine. Rows are written to the table of marks until the engine has seen one."""
    with ExitStack() as stack:
        try:
            peer = stack.enter_context(talk("debezium", "debezium_engine", folder))
            _begin(peer, properties, execute)
            ready = Debezium(peer)
        except (Missing, RuntimeError, OSError) as err:
            place.logger.warning("Debezium: %s", err)
            ready = Debezium(None, reason(err))
        yield ready


def _begin(peer: Conversation, properties: dict[str, str], execute: Callable[[str], Any]) -> None:
    peer.say(properties=properties)
    seen = threading.Event()
    marker = threading.Thread(target=_mark, args=(execute, seen))
    marker.start()
    try:
        peer.hear()
    finally:
        seen.set()
        marker.join()


def _mark(execute: Callable[[str], Any], seen: threading.Event) -> None:
    number = 0
    while not seen.wait(0.5):
        number += 1
        execute(f"INSERT INTO bench.marks VALUES ({number})")
