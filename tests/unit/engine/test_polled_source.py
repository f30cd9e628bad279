"""A source that is polled, through the whole engine: the in-memory source into the tests' own target, without a JVM."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from replicators.connectors import registry
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.params import parse
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.memory.database import Database, database, delete, insert, truncate, update
from runners.engine import failpoints, run
from runners.engine.job import Job
from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import MemoryStore, TableRow, TableState
from runners.engine.tasks.local import LocalTasks
from runners.engine.watchdog import Watchdog
from tests.local.tables import LocalTable
from tests.local.target import PLUGIN, LocalParams

NOTES, VIEWS = TableId("shop", "notes"), TableId("shop", "views")
ID = Column("id", Int(64), "bigint", nullable=False, ordinal=1)
NOTE = Column("note", String(), "text", ordinal=2)
KEYED = TableSchema(NOTES, (ID, NOTE), ("id",), ("id",), 901)
KEYLESS = TableSchema(VIEWS, (replace(ID, name="n"), NOTE), native_id=902, full_before=True)
DEADLINE_SECONDS = 30.0
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


class World:
    """A database, a target, and what the engine remembers of both between its runs."""

    def __init__(self, folder: Path, name: str) -> None:
        self.host = f"{name}.example"
        self.database: Database = database(self.host)
        self.store = MemoryStore([NOTES, VIEWS])
        self.folder = folder
        self.settings = replace(SETTINGS, log_url=str(folder / "log"), log_spool_dir=str(folder))
        for shape in (KEYED, KEYLESS):
            self.database.create(shape)

    def start(self) -> Running:
        source = registry.sources()["memory"]
        job = Job(
            "r1", "polled", "slot_r1", source, parse(source.params, {"host": self.host}),
            PLUGIN, LocalParams(str(self.folder / "target")),
        )  # fmt: skip
        return Running(job, self.store, self.settings)

    def copied(self, table: TableId) -> Counter[tuple[Any, ...]]:
        """The target's rows, each as often as it is there."""
        try:
            rows = LocalTable(self.folder / "target" / table.schema / table.name).rows()
        except FileNotFoundError:
            return Counter()
        names = [c.name for c in self.database.tables[table].columns if c.name in rows.column_names]
        return Counter(tuple(r.values()) for r in rows.select(names).to_pylist())

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

    def __init__(self, job: Job, store: MemoryStore, settings: RunnerSettings) -> None:
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._watchdog = Watchdog(store, settings, kill=lambda: None)
        spark = cast(Any, None)
        self.engine = run.EngineRun(job, store, settings, spark, self._watchdog, self._stop)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.engine.run()
        except BaseException as err:  # noqa: BLE001 - the test looks at it
            self.error = err

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for a state; what ends the run before it is raised."""
        deadline = time.monotonic() + DEADLINE_SECONDS
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


@pytest.fixture
def world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[World]:
    monkeypatch.setattr(run, "SparkTasks", lambda _: LocalTasks())
    made = World(tmp_path, request.node.name)
    made.database.commit(*(insert(NOTES, note(n)) for n in range(1, 21)))
    made.database.commit(*(insert(VIEWS, view(n % 3)) for n in range(9)))
    yield made
    database.cache_clear()


def change_all(held: Database, round_: int) -> None:
    """Every kind of change, with a transaction over both tables."""
    base = 1000 * round_
    held.commit(insert(NOTES, note(base)), insert(VIEWS, view(base)), insert(VIEWS, view(base)))
    held.commit(update(NOTES, note(base), note(base, "changed")))
    held.commit(update(NOTES, note(base, "changed"), note(base + 1, "moved")))
    held.commit(delete(VIEWS, view(base)), insert(NOTES, note(base)))
    held.commit(delete(NOTES, note(base)), update(VIEWS, view(base), view(-base)))


def test_snapshot_and_polled_changes_reach_the_target(world: World) -> None:
    """Guards the path of a polled source: a first view, then polls, each recorded as decoded; also a second start, which
    copies nothing again."""
    running = world.start()
    running.until(lambda: world.is_replicating() and world.is_level())
    change_all(world.database, 1)
    running.until(world.is_level)
    rows = world.store.segments()
    assert rows and all(s.is_decoded and s.is_closed for s in rows)
    world.database.commit(truncate(NOTES))
    world.database.commit(insert(NOTES, note(1, "after")))
    running.until(world.is_level)
    running.stop()
    change_all(world.database, 2)
    generations = [r.generation for r in world.store.tables()]
    running = world.start()
    running.until(world.is_level)
    running.stop()
    assert [r.generation for r in world.store.tables()] == generations


def test_a_new_column_comes_with_the_changes(world: World) -> None:
    """Guards `ColumnKnowledge.BY_LOG`: the schema that comes with the rows is what the copy follows; the catalog, which is
    ahead, changes nothing by itself."""
    running = world.start()
    running.until(lambda: world.is_replicating() and world.is_level())
    held, more = world.database, Column("more", Int(32), "integer", ordinal=3)
    held.commit(insert(NOTES, note(30)))
    held.create(replace(KEYED, columns=(ID, NOTE, more)))
    held.commit(insert(NOTES, {**note(31), "more": 5}))
    running.until(world.is_level)
    assert world.copied(NOTES)[31, "as it was", 5] == 1
    running.stop()


def test_a_table_that_is_chosen_later_lacks_nothing(world: World) -> None:
    """Guards a poll that began before the table was chosen (CORRECTNESS 18): it is thrown away, or its end would lie behind
    changes that neither the view nor a poll has."""
    late = TableId("shop", "late")
    world.database.create(replace(KEYED, id=late, native_id=903))
    running = world.start()
    running.until(world.is_replicating)
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.wait(0.002):
            number += 1
            world.database.commit(insert(late, note(number)), insert(NOTES, note(100 + number)))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        world.store._tables[late] = TableRow(late)
        running.until(world.is_replicating)
    finally:
        stop.set()
        writer.join()
    running.until(lambda: world.copied(late) == world.there(late) and world.is_level())
    running.stop()


@pytest.mark.parametrize(
    "place", ["segment_renamed", "change_files_written", "segment_recorded", "source_acknowledged"]
)
def test_nothing_is_lost_or_doubled_where_a_run_ends_within_the_order_of_writes(
    world: World, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Guards files, then the transaction, then the acknowledgement: before the transaction the poll comes again, after it the
    source is told later. Rows without a key count how often they came."""
    running = world.start()
    running.until(lambda: world.is_replicating() and world.is_level())
    hit = failpoints.hit
    died: list[str] = []

    def die(name: str) -> None:
        if name == place and not died:
            died.append(name)
            raise ReplicationError("run:lease-lost")
        hit(name)

    monkeypatch.setattr(failpoints, "hit", die)
    change_all(world.database, 1)
    ended = running.ended()
    assert isinstance(ended, ReplicationError) and ended.code == "run:lease-lost"
    assert died == [place]
    change_all(world.database, 2)
    again = world.start()
    again.until(world.is_level)
    change_all(world.database, 3)
    again.until(world.is_level)
    again.stop()
    assert min(world.database.slots.values()) == world.database.end


def test_a_damaged_change_file_stops_its_table_until_a_fresh_copy(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `Decoding.again` where nothing can be decoded again: going on without the file would leave a hole."""
    running = world.start()
    running.until(lambda: world.is_replicating() and world.is_level())
    hit = failpoints.hit
    broken: list[Path] = []

    def damage(name: str) -> None:
        found = sorted((world.folder / "log").rglob("changes/*notes*.parquet"))
        if name == "change_files_written" and found and not broken:
            broken.append(found[-1])
            found[-1].write_bytes(b"nothing")
        hit(name)

    def row(table: TableId) -> TableRow:
        return next(r for r in world.store.tables() if r.id == table)

    monkeypatch.setattr(failpoints, "hit", damage)
    change_all(world.database, 1)
    running.until(lambda: row(NOTES).state is TableState.FAILING)
    assert row(NOTES).error_code == "log:segment-corrupt"
    change_all(world.database, 2)
    running.until(lambda: world.copied(VIEWS) == world.there(VIEWS))
    world.store.table_progress(NOTES, is_resync_asked=True)
    running.until(lambda: world.is_replicating() and world.is_level())
    running.stop()
