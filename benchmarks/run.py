"""A whole run of the engine in a process of its own, as `run_replicator` starts it, but without
Django: for lag and memory.

The process reads its job as JSON from standard input and writes the tables' states to a file twice
a second. SIGTERM stops it cleanly.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from benchmarks import place, waits
from benchmarks.resources import turn
from replicators.connectors import registry
from replicators.connectors.model.schema import TableId
from replicators.connectors.params import parse
from runners.engine.run import Job, run_engine
from runners.engine.store.protocol import MemoryStore

REPLICATOR = "bench"
WAIT_SECONDS = 300.0


class EngineRun:
    """The parent's side: starts the process, reads its state, stops it. Its whole time is our turn:
    its memory counts as ours. `is_paced`: the time between merges is the one that the target
    suggests, as in a new replicator."""

    def __init__(
        self,
        folder: Path,
        source: dict[str, Any],
        target: dict[str, Any],
        tables: Sequence[TableId],
        kind: str = "postgresql",
        into: str = "lakehouse",
        *,
        is_paced: bool = False,
    ) -> None:
        self.folder = folder
        self.log = folder / "log" / REPLICATOR
        self._states = folder / "states.json"
        self._waits = folder / "waits.json"
        self._asked = {
            "folder": str(folder),
            "kind": kind,
            "into": into,
            "source": source,
            "target": target,
            "tables": [[t.schema, t.name] for t in tables],
            "is_paced": is_paced,
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._turn = ExitStack()

    @property
    def pid(self) -> int:
        """The process's id."""
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.run"],
            stdin=subprocess.PIPE,
            cwd=place.ROOT,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(self._asked).encode())
        self._process.stdin.close()
        self._turn.enter_context(turn(root=self.pid))
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._turn.close()
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(90)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def hold(self) -> None:
        """Suspend the whole run, with its JVM."""
        os.killpg(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let the run continue."""
        os.killpg(self.pid, signal.SIGCONT)

    def states(self) -> dict[str, dict[str, Any]]:
        """The last states that the run wrote of its tables."""
        try:
            return dict(json.loads(self._states.read_text()))
        except (OSError, ValueError):
            return {}

    def waits(self) -> list[waits.Span]:
        """When the run waited for an answer of an HTTP service."""
        return waits.read(self._waits)

    def wait(
        self,
        is_done: Callable[[dict[str, dict[str, Any]]], bool],
        seconds: float = WAIT_SECONDS,
        each: Callable[[], None] = lambda: None,
        *,
        pause_seconds: float = 0.2,
    ) -> None:
        """Wait for a state. Raises RuntimeError where the run ended, TimeoutError where it takes
        too long."""
        end = time.monotonic() + seconds
        while not is_done(self.states()):
            if self._process is None or self._process.poll() is not None:
                raise RuntimeError("The run ended; see its log above.")
            if time.monotonic() > end:
                raise TimeoutError(f"Not there after {seconds} s: {self.states()}")
            each()
            time.sleep(pause_seconds)

    def wait_replicating(self) -> None:
        """Wait until every table is replicating."""
        self.wait(lambda s: bool(s) and all(t["state"] == "replicating" for t in s.values()))


def _tell(store: MemoryStore, path: Path, asked: waits.Waits, stop: threading.Event) -> None:
    part = path.with_suffix(".part")
    while not stop.wait(0.5):
        said = {
            row.id.name: {
                "state": str(row.state),
                "error": row.error_code,
                "merged": row.merged_sequence,
                "rows": store.counts[row.id].rows if row.id in store.counts else 0,
            }
            for row in store.tables()
        }
        part.write_text(json.dumps(said))
        part.replace(path)
        if asked.spans:
            asked.write(path.with_name("waits.json"))


def main() -> int:
    """Run until SIGTERM."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    asked = json.load(sys.stdin)
    folder = Path(asked["folder"])
    tables = [TableId(*t) for t in asked["tables"]]
    source, target = registry.sources()[asked["kind"]], registry.targets()[asked["into"]]
    job = Job(
        replicator=REPLICATOR,
        name="benchmark",
        slot="bench_run",
        source=source,
        source_params=parse(source.params, asked["source"]),
        target=target,
        target_params=parse(target.params, asked["target"]),
    )
    seconds = target.merge_seconds(job.target_params) if asked["is_paced"] else None
    values = {} if seconds is None else {"merge_seconds": seconds}
    store, stop, told = MemoryStore(tables), threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with waits.counted() as requests:
        states = folder / "states.json"
        teller = threading.Thread(target=_tell, args=(store, states, requests, told))
        teller.start()
        try:
            run_engine(job, store, place.settings(folder, **values), stop)
        finally:
            told.set()
            teller.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
