"""Line `binlog-decode`: decode MariaDB's log, 1.6 million row events of one table of seven columns,
on one core. The peers are `mariadb-binlog`, which prints the same rows, and
python-mysql-replication."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import place, programs
from benchmarks.capture import Taken
from benchmarks.peers.environments import reason, talk
from benchmarks.report import Peer, Result
from benchmarks.resources import turn
from benchmarks.workload import Stream
from replicators.connectors import registry
from replicators.connectors.log import DecodedTable
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.connectors.params import parse
from runners.engine.changelog.segments import read_segment
from runners.engine.decode.job import load
from setup.machine import Missing
from tests.mysql_servers import ADMIN, HOST, PASSWORD, MariadbServer, SqlServer

SOURCE = registry.sources()["mysql"]
TABLE = TableId("bench", "events")
STEP = 10_000
JOBS, WARM = 7, 2
PRINTER = "mariadb-binlog -v"
REPLICATION = "python-mysql-replication"
REPLICATION_ROWS = 200_000
COLUMNS = ["id", "n", "name", "price", "note", "at", "seen"]
DEPTH = {"mariadb": "max_recursive_iterations", "mysql": "cte_max_recursion_depth"}
DDL = (
    "CREATE DATABASE bench",
    "CREATE TABLE bench.events (id bigint PRIMARY KEY, n int, name varchar(20), price "
    "decimal(12,2),"
    " note varchar(200), at datetime(6), seen timestamp(6) NULL)",
)
ROWS = (
    "INSERT INTO bench.events WITH RECURSIVE g AS (SELECT {0} i UNION ALL SELECT i + 1 FROM g "
    "WHERE i < {1})"
    " SELECT i, i % 1000, concat('name ', i % 997), i / 7, repeat('x', 20 + i % 30), now(6), "
    "now(6) FROM g"
)


YEAR = 1_577_836_800_000_000  # 2020, in microseconds
PRIME = 1_000_003
SUMS = f"""
SELECT count(*), sum(id), sum(n), sum(price) * 100, sum(length(note)), sum(cast(substr(name, 6) AS signed)),
       sum(id % 1000 * n), sum(id % 1000 * price) * 100, sum(id % 1000 * length(note)),
       sum(id % 1000 * cast(substr(name, 6) AS signed)),
       sum(id % 1000 * (timestampdiff(MICROSECOND, '2020-01-01', at) % {PRIME})),
       sum(id % 1000 * ((cast(unix_timestamp(seen) * 1000000 AS signed) - {YEAR}) % {PRIME}))
FROM bench.events WHERE id > 0
"""  # noqa: E501


def sums(table: pa.Table) -> tuple[int, ...]:
    """Checksums of a table: its rows, each column, and each column combined with the key, as the
    servers' statement above computes them. The small changes, whose keys are negative, are left
    out."""
    table = table.filter(pc.greater(table.column("id"), 0))
    cents = pc.cast(pc.round(pc.multiply(table.column("price").cast("float64"), 100.0)), "int64")
    names = pc.cast(pc.utf8_slice_codeunits(table.column("name"), 5), "int64")
    times = (table.column(c).cast("int64").to_numpy() for c in ("at", "seen"))
    at, seen = ((t - YEAR) % PRIME for t in times)
    ids, n, notes = (
        column.cast("int64").to_numpy()
        for column in (table.column("id"), table.column("n"), pc.utf8_length(table.column("note")))
    )
    single = [n, cents.to_numpy(), notes, names.to_numpy()]
    pairs = [ids % 1000 * v for v in (*single, at, seen)]
    return len(ids), *(int(v.sum()) for v in (ids, *single, *pairs))


def sums_of(server: SqlServer) -> tuple[int, ...]:
    """The same checksums of the source's table."""
    (row,) = server.execute(SUMS)
    return tuple(int(v or 0) for v in row)


@dataclass
class BinlogLoad:
    """A server with the changes in its log: inserts, updates of two fifths of the rows, deletes of
    one fifth."""

    server: SqlServer
    inserts: int = field(default_factory=lambda: place.scaled(1_000_000, STEP))
    tables: list[TableSchema] = field(default_factory=list)
    marker: int = 0

    def __post_init__(self) -> None:
        values = {"host": HOST, "port": self.server.port, "user": ADMIN, "password": PASSWORD}
        self.params: Any = parse(SOURCE.params, values)

    @property
    def changes(self) -> int:
        """Number of row events."""
        return self.inserts + 2 * self.inserts // 5 + self.inserts // 5

    def make(self) -> BinlogLoad:
        """Create the table, note a position, and then make the changes."""
        return self.prepare().change()

    def prepare(self) -> BinlogLoad:
        """Create the table, and note the position before the changes."""
        self.server.execute(*DDL)
        with SOURCE.catalog(self.params) as catalog:
            self.tables = list(catalog.describe([TableSelection(TABLE)]).values())
        with (
            SOURCE.log.reader(self.params, "bench") as reader,
            SOURCE.stream.snapshot_first(self.params, "bench", reader) as session,
        ):
            self.start = session.point.position
        return self

    def change(self) -> BinlogLoad:
        """Make the changes, the marker, and one more change."""
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SET {DEPTH[self.server.flavour]} = {10 * STEP}")
            for first in range(1, self.inserts, STEP):
                cursor.execute(ROWS.format(first, first + STEP - 1))
            cursor.execute("UPDATE bench.events SET n = n + 1, price = price + 1 WHERE id % 5 < 2")
            cursor.execute("DELETE FROM bench.events WHERE id % 5 = 4")
        with SOURCE.control(self.params, "bench") as control:
            self.marker = control.heartbeat()
        self.server.execute("INSERT INTO bench.events (id) VALUES (-1)")
        return self

    def stream(self) -> Stream:
        """The whole log from the noted position."""
        return Stream(SOURCE, self.params, "bench", self.start, self.tables, self.marker)

    def is_right(self, parts: Sequence[pa.Table]) -> bool:
        """Whether the last image of each key, without deletes, equals the source's table, and the
        number of changes is right."""
        columns = ["_sequence", "_op", *COLUMNS]
        changes = pa.concat_tables([p.select(columns) for p in parts]).sort_by("_sequence")
        changes = changes.filter(pc.not_equal(changes.column("id"), -1))
        ids = changes.column("id").to_numpy()
        _, last = np.unique(ids[::-1], return_index=True)
        kept = changes.take(pa.array(len(ids) - 1 - last))
        found = sums(kept.filter(pc.not_equal(kept.column("_op"), 2)))
        expected = sums_of(self.server)
        if found != expected or changes.num_rows != self.changes:
            place.logger.error("found %s of %d, expected %s", found, changes.num_rows, expected)
            return False
        return True

    def files(self) -> list[str]:
        """The server's own binlog files."""
        assert self.server.folder is not None
        data = self.server.folder / "data"
        return [str(data / name) for name, *_ in self.server.execute("SHOW BINARY LOGS")]

    @property
    def _print(self) -> list[str]:
        return ["mariadb-binlog", "-v", "--base64-output=decode-rows", *self.files()]

    def printed(self, folder: Path) -> Peer:
        """`mariadb-binlog -v` printing the same rows to nowhere, in row events a second; no figure
        where it prints another number of rows."""
        try:
            log = folder / "printed.log"
            runs = [programs.run("mariadb-binlog", self._print, log) for _ in range(place.ROUNDS)]
            rows = _rows(self._print)
        except (RuntimeError, OSError, subprocess.SubprocessError) as err:
            place.logger.warning("mariadb-binlog: %s", err)
            return Peer(PRINTER, None, missing=reason(err))
        if rows != self.changes + 1:
            return Peer(PRINTER, None, missing=f"failed: it printed {rows} of {self.changes + 1}")
        rate = place.median([self.changes / r.seconds for r in runs])
        return Peer(PRINTER, round(rate), max(r.memory_gib for r in runs))

    def by_replication(self, folder: Path) -> Peer:
        """python-mysql-replication reading the first row events, in row events a second."""
        name = Path(self.files()[0]).name
        server = {"host": HOST, "port": self.server.port, "user": ADMIN, "passwd": PASSWORD}
        asked = {"server": server, "is_mariadb": True, "file": name, "position": 4}
        try:
            with talk("replication", "replication_reader", folder) as peer:
                peer.say(**asked, rows=read_rows(self))
                told = peer.hear()
        except (Missing, RuntimeError, OSError) as err:
            place.logger.warning("python-mysql-replication: %s", err)
            return Peer(REPLICATION, None, missing=reason(err))
        return Peer(
            REPLICATION, round(told["rows"] / told["seconds"]), round(told["peak_mib"] / 1024, 2)
        )


def read_rows(load: BinlogLoad) -> int:
    """Number of rows that python-mysql-replication reads: all of them would take it a minute."""
    return min(REPLICATION_ROWS, load.inserts)


def _rows(command: Sequence[str]) -> int:
    """Number of the table's rows that a program prints as comments."""
    find = ["grep", "-cE", f"^### (INSERT INTO|UPDATE|DELETE FROM) `{TABLE.schema}`.`{TABLE.name}`"]
    with subprocess.Popen(list(command), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as child:
        try:
            limit = programs.LIMIT_SECONDS
            done = subprocess.run(find, stdin=child.stdout, stdout=subprocess.PIPE, check=False,
                timeout=limit)  # fmt: skip
        finally:
            child.kill()
    return int(done.stdout or 0)


def measure(line: str) -> list[Result]:
    """Segments in memory to Arrow tables, in this process, on one core."""
    options = {"max-binlog-size": "1G", "innodb-buffer-pool-size": "256M"}
    with place.folder(line) as folder, MariadbServer(options=options) as server:
        made = BinlogLoad(server).make()
        taken = Taken(made.stream(), folder).run()
        segments = [read_segment(s.path, s.crc32, s.number) for s in taken.segments]
        with turn():
            rates, busy, found = _decoded(segments, made)
        tables = [p.changes for p in found if isinstance(p, DecodedTable)]
        checked = len(tables) == len(found) and made.is_right(tables)
        printed = made.printed(folder)
        read = made.by_replication(folder)
    mine = place.median(rates[WARM:])
    size = sum(len(body) for _, body in segments) / made.changes
    beside = (
        f", {mine / read.value:.0f} times python-mysql-replication, which reads the first "
        f"{read_rows(made):,} rows, inserts all, once"
        if read.value
        else ""
    )
    return [
        Result(
            line, "row events/s", round(mine), 2_000_000,
            (printed, read), round(mine / printed.value, 2) if printed.value else None,
            is_absolute=True, checked=checked,
            note=f"one core, checksums verified, every bound checked; {size:.0f} bytes an event; "
                 "the ratio is to mariadb-binlog "
            f"(wanted 3){beside}. Programs beside it read the server's files or its log. The "
            f"segments lie in memory; decoding had {100 * busy:.0f} % of one "
            f"core, {size * mine / 1e6:,.0f} MB of log a second. Memory is of this process, with "
            "the segments and the columns.",
        )
    ]  # fmt: skip


def _decoded(segments: list[Any], made: BinlogLoad) -> tuple[list[float], float, list[Any]]:
    """Row events a second in each turn, the share of one core used, and the last turn's tables."""
    decoder = load(SOURCE.log.decoder)
    rates: list[float] = []
    found: list[Any] = []
    start, spent = time.monotonic(), time.process_time()
    for _ in range(JOBS):
        began = time.monotonic()
        found = [p for n, (head, body) in enumerate(segments, 1) for p in decoder(head, body, n)]
        rates.append(made.changes / (time.monotonic() - began))
    busy = (time.process_time() - spent) / (time.monotonic() - start)
    return rates, busy, found
