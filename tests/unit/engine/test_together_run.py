"""A run whose tables merge together, without a JVM and without a server: from the in-memory source
into DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import TargetPlugin
from replicators.sources.memory.database import database, insert
from runners.engine import run
from runners.engine.job import Job, JobOptions
from runners.engine.store.protocol import TableState
from runners.engine.tasks.local import LocalTasks
from tests.local import duck
from tests.local.polled import NOTES, VIEWS, PolledWorld, change_all, note, view


class TogetherWorld(PolledWorld):
    """The copies are tables of a DuckDB file."""

    plugin = duck.PLUGIN

    def target(self) -> tuple[TargetPlugin, Any]:
        path, files = str(self.folder / "copies.db"), str(self.folder / "files")
        return self.plugin, duck.DuckParams(path, files)

    def job(self) -> Job:
        return replace(super().job(), options=JobOptions(consistent=True))

    @property
    def client(self) -> duck.DuckClient:
        return duck.DuckClient(str(self.folder / "copies.db"))

    def records(self, table: TableId) -> list[dict[str, Any]]:
        try:
            return self.client.records((table.schema, table.name))
        except duckdb.CatalogException:
            return []

    def tokens(self) -> set[int]:
        """The tables' sequences in the target."""
        rows = self.client.records(("shop", "_replicator_progress"))
        return {row["sequence"] for row in rows}


@pytest.fixture
def world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[TogetherWorld]:
    monkeypatch.setattr(run, "SparkTasks", lambda _, folder: LocalTasks(folder=folder))
    made = TogetherWorld(tmp_path, request.node.name)
    yield made
    database.cache_clear()


def test_tables_that_are_copied_again_or_failed_join_the_others(world: TogetherWorld) -> None:
    """Guards `Scheduler._gather`: what a table does by itself holds the group up only for that
    long, and it takes part again. Both tables have one sequence in the target after a transaction
    over both."""
    running = world.start()
    running.until(lambda: world.is_replicating() and world.is_level())
    change_all(world.database, 1)
    running.until(world.is_level)
    world.store.table_progress(NOTES, is_resync_asked=True)
    change_all(world.database, 2)
    running.until(lambda: world.store.table(NOTES).generation == 2 and world.is_level())
    world.store.table_event(
        VIEWS, "table_failed", error_code="target:conflict", error_facts={}, retry_at=1.0
    )
    world.database.commit(insert(NOTES, note(7000)), insert(VIEWS, view(7000)))
    running.until(lambda: world.is_replicating() and world.is_level())
    world.database.commit(insert(NOTES, note(7001)), insert(VIEWS, view(7001)))
    running.until(world.is_level)
    running.stop()
    assert len(world.tokens()) == 1
    assert {r.state for r in world.store.tables()} == {TableState.REPLICATING}


def test_a_run_does_not_begin_where_the_target_can_not(world: TogetherWorld) -> None:
    """Guards `Kit.together`: the option must not be without effect."""
    can = replace(duck.PLUGIN.capabilities, merges_together=False)
    world.plugin = replace(duck.PLUGIN, capabilities=can)
    error = world.start().ended()
    assert isinstance(error, ReplicationError) and error.code == "target:no-consistent"
