"""Lines `binlog-decode` and `binlog-capture-decode`: MariaDB's log, 1.6 million row events of one table of seven columns,
beside `mariadb-binlog`, which prints the same rows or copies the log as it is."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import place
from benchmarks.capture import Watched
from benchmarks.report import Peer, Result
from replicators.connectors import registry
from replicators.connectors.params import parse
from replicators.connectors.schema import TableId, TableSchema, TableSelection
from replicators.connectors.source import DecodedTable
from runners.engine.capture import Capture
from runners.engine.changelog import ChangeLog, read_segment
from runners.engine.decode import decode_segments, load, task_for
from runners.engine.store import MemoryStore, SegmentRow
from tests.mysql_servers import ADMIN, HOST, PASSWORD, MariadbServer

SOURCE = registry.sources()["mysql"]
TABLE = TableId("bench", "events")
STEP = 10_000
JOBS, WARM = 7, 2
DDL = (
    "CREATE DATABASE bench",
    "CREATE TABLE bench.events (id bigint PRIMARY KEY, n int, name varchar(20), price decimal(12,2),"
    " note varchar(200), at datetime(6), seen timestamp(6) NULL)",
)
ROWS = (
    "INSERT INTO bench.events WITH RECURSIVE g AS (SELECT {0} i UNION ALL SELECT i + 1 FROM g WHERE i < {1})"
    " SELECT i, i % 1000, concat('name ', i % 997), i / 7, repeat('x', 20 + i % 30), now(6), now(6) FROM g"
)


@dataclass
class BinlogLoad:
    """A server with the changes in its log: inserts, updates of two fifths of them, deletes of one fifth."""

    server: MariadbServer
    inserts: int = field(default_factory=lambda: place.scaled(1_000_000, STEP))
    tables: list[TableSchema] = field(default_factory=list)
    marker: int = 0

    def __post_init__(self) -> None:
        values = {"host": HOST, "port": self.server.port, "user": ADMIN, "password": PASSWORD}
        self.params: Any = parse(SOURCE.params, values)

    @property
    def changes(self) -> int:
        """Row events."""
        return self.inserts + 2 * self.inserts // 5 + self.inserts // 5

    def make(self) -> BinlogLoad:
        """The table, a position, and then the changes."""
        self.server.execute(*DDL)
        with SOURCE.catalog(self.params) as catalog:
            self.tables = list(catalog.describe([TableSelection(TABLE)]).values())
        with (
            SOURCE.log_reader(self.params, "bench") as reader,
            SOURCE.snapshot_first(self.params, "bench", reader) as session,
        ):
            self.start = session.point.position
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SET max_recursive_iterations = {10 * STEP}")
            for first in range(1, self.inserts, STEP):
                cursor.execute(ROWS.format(first, first + STEP - 1))
            cursor.execute("UPDATE bench.events SET n = n + 1, price = price + 1 WHERE id % 5 < 2")
            cursor.execute("DELETE FROM bench.events WHERE id % 5 = 4")
        with SOURCE.log_control(self.params, "bench") as control:
            self.marker = control.heartbeat()
        self.server.execute("INSERT INTO bench.events (id) VALUES (-1)")
        return self

    def capture(self, folder: Path, on_seal: Any = lambda row: None) -> list[SegmentRow]:
        """Everything into raw segments."""
        store = MemoryStore([TABLE])
        log = ChangeLog(str(folder / "log"), "bench", "bench")
        reader = Watched(SOURCE.log_reader(self.params, "bench"), self.marker)
        reader.start(self.start, self.tables)
        capture = Capture(
            reader, log, store, place.settings(folder), describe=lambda: self.tables, next_number=1,
            on_seal=on_seal,
        )  # fmt: skip
        thread = threading.Thread(target=capture.run)
        thread.start()
        while not reader.done.wait(0.5) and capture.fault is None:
            pass
        capture.stop()
        thread.join()
        reader.close()
        if capture.fault is not None:
            raise capture.fault
        return store.segments()

    def is_right(self, parts: Sequence[pa.Table]) -> bool:
        """Whether the last image of each key, deletes left out, sums to what the table holds."""
        columns = ["_sequence", "_op", "id", "n", "price"]
        changes = pa.concat_tables([p.select(columns) for p in parts]).sort_by("_sequence")
        changes = changes.filter(pc.not_equal(changes.column("id"), -1))
        ids = changes.column("id").to_numpy()
        _, last = np.unique(ids[::-1], return_index=True)
        kept = changes.take(pa.array(len(ids) - 1 - last))
        kept = kept.filter(pc.not_equal(kept.column("_op"), 2))
        total = pc.sum(kept.column("price").cast(pa.decimal128(38, 2))).as_py()
        found = (kept.num_rows, pc.sum(kept.column("n")).as_py(), total)
        ((count, n, price),) = self.server.execute(
            "SELECT count(*), sum(n), sum(price) FROM bench.events WHERE id > 0"
        )
        expected = (count, int(n), Decimal(price))
        if found != expected or changes.num_rows != self.changes:
            place.logger.error("found %s of %d, expected %s", found, changes.num_rows, expected)
            return False
        return True

    def files(self) -> list[str]:
        """The server's own binlog files."""
        assert self.server.folder is not None
        data = self.server.folder / "data"
        return [str(data / name) for name, *_ in self.server.execute("SHOW BINARY LOGS")]

    def printed(self) -> float:
        """Seconds of `mariadb-binlog -v` for the same rows, into nowhere."""
        command = ["mariadb-binlog", "-v", "--base64-output=decode-rows", *self.files()]
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - began

    def dumped(self, folder: Path) -> float:
        """Seconds of `mariadb-binlog --raw`, which copies the log from the server into files."""
        first = Path(self.files()[0]).name
        command = [
            "mariadb-binlog", "--read-from-remote-server", "--raw", "--to-last-log", f"--host={HOST}",
            f"--port={self.server.port}", f"--user={ADMIN}", f"--password={PASSWORD}",
            f"--result-file={folder}/raw-", first,
        ]  # fmt: skip
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - began


def measure(line: str) -> list[Result]:
    """One of the two lines."""
    options = {"max-binlog-size": "1G", "innodb-buffer-pool-size": "256M"}
    with place.folder(line) as folder, MariadbServer(options=options) as server:
        made = BinlogLoad(server).make()
        return [(_decode if line == "binlog-decode" else _capture_decode)(made, folder, line)]


def _decode(made: BinlogLoad, folder: Path, line: str) -> Result:
    """Segments in memory to Arrow tables, in this process, on one core."""
    segments = [read_segment(s.path, s.crc32, s.number) for s in made.capture(folder)]
    decoder = load(SOURCE.decoder)
    rates = []
    for _ in range(JOBS):
        began = time.monotonic()
        found = [
            part
            for number, (head, body) in enumerate(segments, 1)
            for part in decoder(head, body, number)
        ]
        rates.append(made.changes / (time.monotonic() - began))
    tables = [p.changes for p in found if isinstance(p, DecodedTable)]
    checked = len(tables) == len(found) and made.is_right(tables)
    printed = place.median([made.changes / made.printed() for _ in range(place.ROUNDS)])
    size = sum(len(body) for _, body in segments) / made.changes
    return Result(
        line,
        "row events/s",
        round(place.median(rates[WARM:])),
        2_000_000,
        (Peer("mariadb-binlog -v", round(printed)),),
        checked=checked,
        note=f"one core, checksums verified, every bound checked; {size:.0f} bytes an event.",
    )


def _capture_decode(made: BinlogLoad, folder: Path, line: str) -> Result:
    """Rounds of the whole way to durable change files, beside a copy of the log's bytes."""
    ours, theirs, checked = [], [], True
    with place.spark(folder, place.target_params(folder)) as spark:
        for number in range(place.ROUNDS + 1):
            raw = folder / f"raw{number}"
            raw.mkdir()
            theirs.append(made.dumped(raw))
            began = time.monotonic()
            segments = made.capture(folder / str(number))
            tasks = [task_for(s, str(raw / f"{s.number}")) for s in segments]
            done = decode_segments(spark, tasks, SOURCE.decoder)
            ours.append(time.monotonic() - began)
            checked = checked and made.is_right([pq.read_table(f.path) for f in done.files])
    mine, peer = (made.changes / place.median(v[1:]) for v in (ours, theirs))
    return Result(
        line,
        "row events/s",
        round(mine),
        0.1,
        (Peer("mariadb-binlog --raw", round(peer)),),
        round(mine / peer, 3),
        checked=checked,
        note="the whole log captured, then decoded; the peer copies bytes and decodes nothing.",
    )
