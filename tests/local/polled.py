"""A run in this process, of a source that is polled: the in-memory database, what the engine
remembers, and the run's thread."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from replicators.connectors import registry
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.params import parse
from replicators.connectors.target import TargetPlugin
from replicators.sources.memory.database import Database, database, delete, insert, update
from runners.engine import run
from runners.engine.job import Job
from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import MemoryStore, TableState
from runners.engine.watchdog import Watchdog
from tests.local.tables import LocalTable
from tests.local.target import PLUGIN, LocalParams

NOTES, VIEWS = TableId("shop", "notes"), TableId("shop", "views")
ID = Column("id", Int(64), "bigint", nullable=False, ordinal=1)
NOTE = Column("note", String(), "text", ordinal=2)
KEYED = TableSchema(NOTES, (ID, NOTE), ("id",), ("id",), 901)
KEYLESS = TableSchema(VIEWS, (replace(ID, name="n"), NOTE), native_id=902, full_before=True)
DEADLINE_SECONDS = 60.0
SETTINGS = RunnerSettings(
    disk_reserve_bytes=0,
    rows_per_chunk=7,
    merge_seconds=0.05,
    round_seconds=0.2,
    heartbeat_seconds=0.2,
    catalog_seconds=0.2,
)


def note(number: int, text: str = "as it was") -> dict[str, Any]:
    return {"id": number, "note": text}


def view(number: int, text: str = "seen") -> dict[str, Any]:
    return {"n": number, "note": text}


class PolledWorld:
    """A database, a target, and what the engine remembers of both between its runs."""

    def __init__(self, folder: Path, name: str) -> None:
        self.host = f"{name}.example"
        self.database: Database = database(self.host)
        self.store = MemoryStore([NOTES, VIEWS])
        self.folder = folder
        self.settings = replace(SETTINGS, log_url=str(folder / "log"), log_spool_dir=str(folder))
        for schema in (KEYED, KEYLESS):
            self.database.create(schema)

        self.database.commit(*(insert(NOTES, note(n)) for n in range(1, 21)))
        self.database.commit(*(insert(VIEWS, view(n % 3)) for n in range(9)))

    def target(self) -> tuple[TargetPlugin, Any]:
        """Where the run copies to."""
        return PLUGIN, LocalParams(str(self.folder / "target"))

    def start(self, spark: Any = None) -> Running:
        """A run, as it would start after the one before."""
        return Running(self.job(), self.store, self.settings, spark)

    def job(self) -> Job:
        """What the runs copy."""
        source = registry.sources()["memory"]
        return Job(
            "r1", "polled", "slot_r1", source, parse(source.params, {"host": self.host}),
            *self.target(),
        )  # fmt: skip

    def copied(self, table: TableId) -> Counter[tuple[Any, ...]]:
        """The target's rows, each as often as it is there."""
        names = [c.name for c in self.database.tables[table].columns]
        return Counter(tuple(r[n] for n in names if n in r) for r in self.records(table))

    def records(self, table: TableId) -> list[dict[str, Any]]:
        """The target's rows, by column names; none before the table is there."""
        try:
            rows = LocalTable(self.folder / "target" / table.schema / table.name).rows()
        except FileNotFoundError:
            return []
        found: list[dict[str, Any]] = rows.to_pylist()
        return found

    def there(self, table: TableId) -> Counter[tuple[Any, ...]]:
        """The source's rows."""
        _, rows = self.database.view()
        names = [c.name for c in self.database.tables[table].columns]
        return Counter(tuple(r.get(n) for n in names) for r in rows.get(table, []))

    def is_level(self) -> bool:
        return all(self.copied(t) == self.there(t) for t in (NOTES, VIEWS))

    def is_replicating(self) -> bool:
        return {r.state for r in self.store.tables()} == {TableState.REPLICATING}


class Running:
    """A run in a thread of its own; `error` is what ended it."""

    def __init__(
        self, job: Job, store: MemoryStore, settings: RunnerSettings, spark: Any = None
    ) -> None:
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._watchdog = Watchdog(store, settings, kill=lambda: None)
        self.engine = run.EngineRun(
            job, store, settings, cast(Any, spark), self._watchdog, self._stop
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.engine.run()
        except BaseException as err:  # noqa: BLE001 - the test looks at it
            self.error = err

    def until(self, is_so: Callable[[], bool], seconds: float = DEADLINE_SECONDS) -> None:
        """Wait for a state; what ends the run before it is raised."""
        deadline = time.monotonic() + seconds
        while not is_so():
            if self.error is not None:
                raise self.error
            assert time.monotonic() < deadline, "it did not come"
            self._stop.wait(0.02)

    def ended(self) -> BaseException | None:
        """What ended the run by itself."""
        self._thread.join(DEADLINE_SECONDS)
        assert not self._thread.is_alive()
        return self.error

    def stop(self) -> None:
        self._stop.set()
        assert self.ended() is None


def change_all(held: Database, round_: int) -> None:
    """Every kind of change, with a transaction over both tables."""
    base = 1000 * round_
    held.commit(insert(NOTES, note(base)), insert(VIEWS, view(base)), insert(VIEWS, view(base)))
    held.commit(update(NOTES, note(base), note(base, "changed")))
    held.commit(update(NOTES, note(base, "changed"), note(base + 1, "moved")))
    held.commit(delete(VIEWS, view(base)), insert(NOTES, note(base)))
    held.commit(delete(NOTES, note(base)), update(VIEWS, view(base), view(-base)))
