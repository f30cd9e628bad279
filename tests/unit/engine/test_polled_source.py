"""A source that is polled, through the whole engine: the in-memory source into the tests' own
target, without a JVM."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from replicators.connectors.model.schema import Column, TableId
from replicators.connectors.model.types import Int
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.memory.database import database, insert, truncate
from runners.engine import failpoints, run
from runners.engine.store.protocol import TableRow, TableState
from runners.engine.tasks.local import LocalTasks
from tests.local.polled import ID, KEYED, NOTE, NOTES, VIEWS, PolledWorld, change_all, note


@pytest.fixture
def world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[PolledWorld]:
    monkeypatch.setattr(run, "SparkTasks", lambda _, folder: LocalTasks(folder=folder))
    made = PolledWorld(tmp_path, request.node.name)
    yield made
    database.cache_clear()


def test_snapshot_and_polled_changes_reach_the_target(world: PolledWorld) -> None:
    """Guards the path of a polled source: a first view, then polls, each recorded as decoded; also
    a second start, which copies nothing again."""
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


def test_a_new_column_comes_with_the_changes(world: PolledWorld) -> None:
    """Guards `ColumnKnowledge.BY_LOG`: the schema that comes with the rows is what the copy
    follows; the catalog, which is ahead, changes nothing by itself."""
    running = world.start()
    running.until(lambda: world.is_replicating() and world.is_level())
    held, more = world.database, Column("more", Int(32), "integer", ordinal=3)
    held.commit(insert(NOTES, note(30)))
    held.create(replace(KEYED, columns=(ID, NOTE, more)))
    held.commit(insert(NOTES, {**note(31), "more": 5}))
    running.until(world.is_level)
    assert world.copied(NOTES)[31, "as it was", 5] == 1
    running.stop()


def test_a_table_that_is_chosen_later_lacks_nothing(world: PolledWorld) -> None:
    """Guards the hand-off from a later view to the polls (CORRECTNESS 18), while rows are written:
    `follow` has the next poll name the table."""
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
    world: PolledWorld, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Guards files, then the transaction, then the acknowledgement: before the transaction the poll
    comes again, after it the source is told later. Rows without a key count how often they came."""
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
    world: PolledWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `Decoding.again` where nothing can be decoded again: going on without the file would
    leave a hole."""
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
