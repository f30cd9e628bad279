"""Line `kafka-lag`: 1,000 row changes a second in PostgreSQL, from a change's commit to the moment
at which a consumer has its message. PostgreSQL wrote the commit time, which is in the message; the
consumer looks at the same machine's clock."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
from confluent_kafka import Consumer, TopicPartition

from benchmarks import place
from benchmarks.report import Result
from benchmarks.resources import Cpu
from benchmarks.run import EngineRun
from benchmarks.workload import DDL, TABLE
from demo.postgres import EmbeddedPostgres
from tests.kafka_servers import KafkaBroker

RATE = 1000
EVERY_SECONDS = 0.05
WARM_SECONDS = 20.0
PARTITIONS = 4
WRITE = """
INSERT INTO bench.events SELECT k, k %% 5000, 'shipped', (k %% 100000) / 100.0, 'note ' || k, now(),
    k %% 3 = 0
FROM generate_series(%s::bigint, %s::bigint) k
"""


class Reader(threading.Thread):
    """A consumer: for each insertion its key, its lag, and when it came."""

    def __init__(self, address: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._consumer = Consumer(
            {"bootstrap.servers": address, "group.id": "bench", "fetch.wait.max.ms": 50}
        )
        self._consumer.assign([TopicPartition(topic, n, 0) for n in range(PARTITIONS)])
        self.is_over = threading.Event()
        self.keys: list[bytes] = []
        self.came: list[tuple[float, float]] = []

    def run(self) -> None:
        """Read until it is over."""
        while not self.is_over.is_set():
            for message in self._consumer.consume(1000, 0.02):
                now, headers = time.time(), dict(message.headers() or [])
                if headers.get("op") == b"insert":
                    self.keys.append(bytes(message.key() or b""))
                    self.came.append((now, now - int(headers["committed_at"] or 0) / 1e6))
        self._consumer.close()


def measure(line: str) -> list[Result]:
    """Run the engine for a minute beside a writer and a consumer."""
    seconds = max(15.0, 60 * place.SCALE)
    with place.folder(line) as folder, EmbeddedPostgres() as source, KafkaBroker() as broker:
        source.execute(DDL)
        values: dict[str, Any] = {"servers": broker.address, "partitions": PARTITIONS}
        with EngineRun(
            folder, source.params(), values, [TABLE], into="kafka", is_paced=True
        ) as run:
            run.wait_replicating()
            reader = Reader(broker.address, f"{TABLE.schema}.{TABLE.name}")
            reader.start()
            cpu = Cpu()
            written = _write(source, WARM_SECONDS + seconds)
            spent = cpu.said()
            end = time.monotonic() + 60
            while len(set(reader.keys)) < written and time.monotonic() < end:
                time.sleep(0.1)
            reader.is_over.set()
            reader.join()
    since = reader.came[0][0] + WARM_SECONDS
    lags = np.array([lag for at, lag in reader.came if at >= since])
    rate = written / (WARM_SECONDS + seconds)
    checked = len(set(reader.keys)) == written and rate >= 0.9 * RATE
    note = (
        f"{len(lags):,} changes in {seconds:.0f} s, {rate:.0f} a second, twenty transactions a "
        f"second; largest {lags.max():.1f} s. CPU seconds: {spent}."
    )
    return [
        _result(f"{line}-p50", lags, 50, 1.5, checked, note),
        _result(f"{line}-p99", lags, 99, 4, checked, note),
    ]


def _write(source: EmbeddedPostgres, seconds: float) -> int:
    """Write at the rate; returns the number of rows."""
    step, done = round(RATE * EVERY_SECONDS), 0
    began = time.monotonic()
    with source.connect() as connection:
        connection.autocommit = True
        while (now := time.monotonic() - began) < seconds:
            if done > RATE * now:
                time.sleep(0.005)
                continue
            connection.execute(WRITE, (done + 1, done + step))
            done += step
    return done


def _result(
    name: str, lags: np.ndarray[Any, Any], percent: int, target: float, checked: bool, note: str
) -> Result:
    return Result(
        name, "s", round(float(np.percentile(lags, percent)), 2), target,
        at_most=True, is_absolute=True, checked=checked, note=note,
    )  # fmt: skip
