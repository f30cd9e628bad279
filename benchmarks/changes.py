"""Lines `changes-mysql` and `changes-postgresql`: the log to durable change files, 1.6 million row changes, on two cores with the
server beside, against Debezium's embedded engine, whose records are counted and thrown away."""

from __future__ import annotations

import json
import resource
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks import place
from benchmarks.binlog import BinlogLoad
from benchmarks.capture import SERVER, Taken, is_right
from benchmarks.peers.environments import Conversation, talk
from benchmarks.report import Peer, Result
from benchmarks.resources import Cpu
from benchmarks.workload import Workload
from demo.postgres import EmbeddedPostgres
from setup.machine import Missing, mysql_root
from tests.mysql_servers import ADMIN, HOST, PASSWORD, MysqlServer

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


@contextmanager
def debezium(
    properties: dict[str, str], folder: Path, execute: Callable[[str], Any]
) -> Iterator[Conversation | None]:
    """An engine that has an offset and stands still; None where it could not be installed. Rows are written to the table of
    marks until it saw one."""
    try:
        with talk("debezium", "debezium_engine", folder) as peer:
            peer.say(properties=properties)
            seen = threading.Event()
            marker = threading.Thread(target=_mark, args=(execute, seen))
            marker.start()
            try:
                peer.hear()
            finally:
                seen.set()
                marker.join()
            yield peer
    except Missing as err:
        place.logger.warning("%s", err)
        yield None


def _mark(execute: Callable[[str], Any], seen: threading.Event) -> None:
    number = 0
    while not seen.wait(0.5):
        number += 1
        execute(f"INSERT INTO bench.marks VALUES ({number})")


def _rounds(ours: Callable[[int], Taken], changes: int) -> tuple[list[float], list[Taken], str]:
    taken = []
    for number in range(place.ROUNDS + 1):
        cpu = Cpu()
        taken.append(ours(number))
        place.logger.info("CPU seconds: %s", cpu.said())
    return [changes / t.seconds for t in taken[1:]], taken, cpu.said()


def told_of(peer: Conversation | None, changes: int) -> dict[str, Any] | None:
    """What Debezium needed for everything, once: it takes long."""
    if peer is None:
        return None
    peer.say(events=changes)
    told = peer.hear()
    place.logger.info("Debezium: %s", json.dumps(told))
    return {**told, "rate": told["events"] / told["seconds"]}


def _result(
    line: str, target: float, rates: list[float], told: dict[str, Any] | None, checked: bool, note: str,
    others: tuple[Peer, ...] = (),
) -> Result:  # fmt: skip
    mine = place.median(rates)
    peers = (Peer("Debezium embedded", round(told["rate"])), *others) if told else others
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    said = (
        f"Debezium {told['peak_mib'] / 1024:.1f} GiB at its peak, our driver {memory:.1f}. "
        if told
        else "Debezium could not be installed. "
    )
    shown = ", ".join(f"{r:,.0f}" for r in rates)
    return Result(
        line, "row changes/s", round(mine), target, peers, round(mine / told["rate"], 1) if told else None,
        checked=checked and told is not None,
        note=f"rounds: {shown}. {said}Debezium's clock runs from its first batch to its last, without its start; "
        f"its records are counted and thrown away. {note}",
    )  # fmt: skip


def measure(line: str) -> list[Result]:
    """One of the two lines."""
    with place.folder(line) as folder:
        return [(_mysql if line == "changes-mysql" else _postgresql)(line, folder)]


def _mysql(line: str, folder: Path) -> Result:
    options = {"max-binlog-size": "1G", "innodb-buffer-pool-size": "256M"}
    with MysqlServer(options=options) as server:
        made = BinlogLoad(server).prepare()
        server.execute(MARKS)
        with debezium(for_mysql(server.port, folder), folder, server.execute) as peer:
            made.change()
            raw = [made.changes / _dumped(server, folder) for _ in range(place.ROUNDS)]
            with place.spark(folder, place.target_params(folder)) as spark:
                rates, taken, spent = _rounds(
                    lambda n: Taken(made.stream(), folder / str(n), spark).run(), made.changes
                )
                checked = all(made.is_right([pq.read_table(p) for p in t.paths()]) for t in taken)
            told = told_of(peer, made.changes)
    copied = place.median(raw)
    note = (
        f"The raw copy of the log is {copied / place.median(rates):.1f} times as fast (wanted: 10 at most)."
        f" CPU seconds of a round: {spent}."
    )
    return _result(
        line, 25, rates, told, checked, note, (Peer("mysqlbinlog --raw", round(copied)),)
    )


def _dumped(server: MysqlServer, folder: Path) -> float:
    """Seconds of `mysqlbinlog --raw`, which copies the log from the server into files and decodes nothing."""
    root = mysql_root()
    assert root is not None
    first = str(server.execute("SHOW BINARY LOGS")[0][0])
    libraries = root / "usr/lib/x86_64-linux-gnu"
    command = [
        str(libraries / "ld-linux-x86-64.so.2"), "--library-path", f"{libraries}:{root}/usr/lib/mysql/private",
        str(root / "usr/bin/mysqlbinlog"), "--no-defaults", "--read-from-remote-server", "--raw", "--to-last-log",
        f"--host={HOST}", f"--port={server.port}", f"--user={ADMIN}", f"--password={PASSWORD}",
        f"--result-file={folder}/raw-", first,
    ]  # fmt: skip
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def _postgresql(line: str, folder: Path) -> Result:
    with EmbeddedPostgres(fsync=False, options=SERVER) as server:
        load = Workload(server, place.ROUNDS + 1).prepare()
        server.execute(MARKS)
        with debezium(for_postgresql(load.params, folder), folder, server.execute) as peer:
            load.change()
            with place.spark(folder, place.target_params(folder)) as spark:
                rates, taken, spent = _rounds(
                    lambda n: Taken(load.stream(f"ours_{n}"), folder / str(n), spark).run(),
                    load.changes,
                )
                checked = all(is_right(t.paths(), load) for t in taken)
            told = told_of(peer, load.changes)
    note = f"Both wait for the server's decoding process. CPU seconds of a round: {spent}."
    return _result(line, 8, rates, told, checked, note)
