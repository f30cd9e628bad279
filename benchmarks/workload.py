"""The row changes for the measurements of capture and decode: seven columns, inserts, updates with
before images, deletes."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import place, programs
from demo.postgres import EmbeddedPostgres
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema

TABLE = TableId("bench", "events")
STEP = 1000
SECOND = int(datetime(2025, 1, 1, tzinfo=UTC).timestamp())
DDL = """
CREATE SCHEMA bench;
CREATE TABLE bench.events (
    id bigint PRIMARY KEY, customer int, status text, amount numeric(12, 2), note text,
    at timestamptz, ok boolean);
ALTER TABLE bench.events REPLICA IDENTITY FULL;
CREATE PROCEDURE bench.change(inserts int, updates int, deletes int, step int) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..inserts / step LOOP
        INSERT INTO bench.events
        SELECT k, k % 5000, 'shipped', (k * 37 % 100000) / 100.0, 'note ' || k || ' for this row',
               timestamptz '2025-01-01 00:00Z' + k * interval '1 second', k % 3 = 0
        FROM generate_series((i - 1) * step + 1, i * step) k;
        COMMIT;
    END LOOP;
    FOR i IN 1..updates / step LOOP
        UPDATE bench.events SET amount = amount + 1, status = 'returned'
        WHERE id BETWEEN (i - 1) * step + 1 AND i * step;
        COMMIT;
    END LOOP;
    FOR i IN 1..deletes / step LOOP
        DELETE FROM bench.events WHERE id BETWEEN (i - 1) * step + 1 AND i * step;
        COMMIT;
    END LOOP;
END $$;
"""  # noqa: E501


@dataclass(frozen=True, slots=True)
class Stream:
    """What to capture: a source's log from `start` up to `marker`, for these tables."""

    source: Any
    params: Any
    slot: str
    start: Position
    tables: Sequence[TableSchema]
    marker: int


@dataclass
class Workload:
    """A server with the changes in its log, and slots that stand before them. `marker` is a log
    position between the last change and one more small transaction: a reader that sees a message
    beyond it has read everything."""

    server: EmbeddedPostgres
    slots: int
    inserts: int = field(default_factory=lambda: place.scaled(1_000_000, STEP))
    marker: int = 0

    def __post_init__(self) -> None:
        self.updates = self.inserts // 2 // STEP * STEP
        self.deletes = self.inserts // 10 // STEP * STEP
        self.starts: dict[str, Position] = {}
        self.params: Any = place.source_params(self.server)
        self.tables: list[TableSchema] = []

    @property
    def changes(self) -> int:
        """Number of rows changed before the marker."""
        return self.inserts + self.updates + self.deletes

    def make(self) -> Workload:
        """Create the table and the slots, then make the changes."""
        return self.prepare().change()

    def prepare(self) -> Workload:
        """Create the table and the slots."""
        self.server.execute(DDL)
        self.tables = place.describe(self.params, TABLE)
        for number in range(self.slots):
            self._slot(f"ours_{number}")
            self._slot(f"peer_{number}")
        return self

    def change(self) -> Workload:
        """Make the changes, the marker, and one more change."""
        began = time.monotonic()
        call = "CALL bench.change({}, {}, {}, {})"
        self.server.execute(call.format(self.inserts, self.updates, self.deletes, STEP))
        place.logger.info("made %d changes in %.1f s", self.changes, time.monotonic() - began)
        (lsn,) = self.server.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")[0]
        self.marker = int(lsn)
        self.server.execute("INSERT INTO bench.events (id) VALUES (-1)")
        self.server.execute("CHECKPOINT")
        return self

    def stream(self, slot: str) -> Stream:
        """The whole load, for one of our slots."""
        return Stream(place.SOURCE, self.params, slot, self.starts[slot], self.tables, self.marker)

    def _slot(self, name: str) -> None:
        with place.SOURCE.log.reader(self.params, name) as reader:
            reader.prepare(self.tables, None)
            with place.SOURCE.stream.snapshot_first(self.params, name, reader) as session:
                self.starts[name] = session.point.position

    def receive(self, number: int, path: Path) -> programs.Ran:
        """Run pg_recvlogical into `path`, with the same options as our reader."""
        slot, lsn = f"peer_{number}", f"{self.marker >> 32:X}/{self.marker & 0xFFFFFFFF:X}"
        command = [
            programs.postgresql("pg_recvlogical"), "-d", self.server.dsn(), "-S", slot, "--start",
            "--no-loop", f"--endpos={lsn}",
            "-o", "proto_version=1", "-o", f"publication_names={slot}_full,{slot}_ins", "-o",
            "binary=true",
            "-f", str(path),
        ]  # fmt: skip
        log = path.with_suffix(".log")
        return programs.run("pg_recvlogical", command, log, env={**os.environ, "LC_ALL": "C"})


def expected(load: Workload) -> tuple[tuple[int, int, int], tuple[int, ...]]:
    """The numbers of inserts, updates and deletes, and `copied.sums` of the images of inserts and
    updates (without the last small transaction)."""
    upto = (load.inserts, load.updates)
    k = np.concatenate([np.arange(1, n + 1, dtype=np.int64) for n in upto])
    cents, customer, ok = k * 37 % 100000, k % 5000, (k % 3 == 0).astype(np.int64)
    cents[load.inserts :] += 100
    seconds = SECOND + k
    length = sum(int(low <= n) * (n - low + 1) for n in upto for low in (10**d for d in range(9)))
    length += len("note  for this row") * len(k)
    singles = (k, customer, ok, cents, seconds)
    whole, customers, oks, total, at = (int(v.sum()) for v in singles)
    part = k % 1000
    pairs = (int((part * v).sum()) for v in (customer + ok, cents, k, seconds))
    right = (len(k), whole, customers, oks, load.inserts, whole, length, total, at, *pairs)
    return (load.inserts, load.updates, load.deletes), right
