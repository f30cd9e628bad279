"""Deliveries through the whole engine into Iceberg: a copy, a second delivery, and a run that dies
while it is compared."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors import failpoints
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.compared import PLUGIN
from replicators.targets.lakehouse import PLUGIN as LAKEHOUSE
from replicators.targets.lakehouse.naming import names
from runners.engine.job import Job
from runners.engine.store.protocol import MemoryStore, TableState
from tests.compared_world import SCHEMA_NAME, Inbox, line
from tests.local.polled import SETTINGS, Running
from tests.spark_fixtures import lakehouse_params

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
PEOPLE = TableId(SCHEMA_NAME, "people")
SECONDS = 200.0


class World:
    """Files, a lakehouse, and what the engine remembers."""

    def __init__(self, folder: Path, lakehouse: Path, spark: Any) -> None:
        self.inbox = Inbox(folder)
        self.params = lakehouse_params(lakehouse, "iceberg")
        self.store = MemoryStore([PEOPLE])
        self.spark = spark
        log = str(folder / "log")
        self.settings = dataclasses.replace(SETTINGS, log_url=log, log_spool_dir=str(folder))

    def start(self) -> Running:
        """A run, as it would start after the one before."""
        source = self.inbox.params()
        job = Job("r9", "compared", "slot_r9", PLUGIN, source, LAKEHOUSE, self.params)
        return Running(job, self.store, self.settings, self.spark)

    def copied(self) -> Counter[tuple[int, str]]:
        """The target's rows, read by Iceberg's own Python reader."""
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.exceptions import NoSuchTableError

        at = self.params
        catalog = SqlCatalog(at.catalog_name, uri=at.catalog_uri, warehouse=at.warehouse)
        try:
            rows = catalog.load_table(names(at, PEOPLE)).scan().to_arrow()
        except NoSuchTableError:
            return Counter()
        return Counter(zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True))

    def is_replicating(self) -> bool:
        return {r.state for r in self.store.tables()} == {TableState.REPLICATING}


@pytest.fixture
def world(tmp_path: Path, lakehouse_root: Path, spark: Any) -> World:
    return World(tmp_path, lakehouse_root, spark)


def test_two_deliveries_reach_iceberg_also_over_a_crash(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the whole path: chunks of the state in Spark's tasks, changes that are polled, the
    deliveries that are recorded, and a run that dies after it compared and before the engine
    knows."""
    first = [line(1), line(2), line(3)]
    world.inbox.deliver("2026-01-01", first)
    running = world.start()
    expected = Counter((int(r[0]), r[1]) for r in first)
    running.until(lambda: world.is_replicating() and world.copied() == expected, SECONDS)
    hit = failpoints.hit

    def die(name: str) -> None:
        if name == "delivery_recorded":
            raise ReplicationError("run:lease-lost")
        hit(name)

    monkeypatch.setattr(failpoints, "hit", die)
    second = [line(1), line(2, "changed"), line(4)]
    world.inbox.deliver("2026-01-02", second)
    assert running.ended() is not None
    monkeypatch.setattr(failpoints, "hit", hit)
    running = world.start()
    then = Counter((int(r[0]), r[1]) for r in second)
    running.until(lambda: world.copied() == then, SECONDS)
    running.stop()
    found = {d.name: d for d in world.store.deliveries.values()}
    counts = [(d.inserts, d.updates, d.deletes, d.unchanged) for _, d in sorted(found.items())]
    assert counts == [(3, 0, 0, 0), (1, 1, 1, 1)]
