"""The compared source into every target that takes each change."""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors import registry
from replicators.connectors.model.modes import Mode
from replicators.connectors.params import parse
from replicators.connectors.pulling import KeptTable
from runners.subscribing.snapshot import snapshot
from tests import kafka_world, replayed
from tests.kafka_servers import KafkaBroker
from tests.search_server import SearchServer
from tests.spark.test_compared_database import (
    DDL,
    RECENT,
    ROWS,
    Clock,
    World,
    two_deliveries,
)

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(900)]
_NUMBERS = itertools.count(1)
Rows = Counter[Any]
HERE = ("elasticsearch", "files", "kafka", "subscribers")
"""The sinks of this program. A new one is added here, with its rows below."""


def test_every_sink_is_here() -> None:
    """Guards the list: a target that is left out of it is never tried with deliveries."""
    found = [n for n, plugin in registry.targets().items() if plugin.capabilities.takes_changes]
    assert sorted(n for n in found if n != "memory") == sorted(HERE)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def _rows(found: Iterable[dict[str, Any]]) -> Rows:
    return Counter((r["id"], r["name"], f"{float(r['price']):.2f}") for r in found)


class Sink:
    """A sink with the params of a target, and the rows that a reader makes of what it holds."""

    def __init__(self, name: str, request: pytest.FixtureRequest, folder: Path) -> None:
        self.plugin = registry.targets()[name]
        self.place = str(folder / "sink")
        self.name = f"compared-{next(_NUMBERS)}"
        self.request = request
        self.of: Callable[[World], Rows] = getattr(self, f"_{name}_rows")
        self.params = parse(self.plugin.params, getattr(self, f"_{name}")())

    def _files(self) -> dict[str, Any]:
        return {"location": self.place, "format": "JSON lines", "bucket": "10 seconds"}

    def _files_rows(self, _: World) -> Rows:
        found = replayed.generations(Path(self.place) / f"{RECENT}")
        return _rows(replayed.rows(found[-1])) if found else Counter()

    def _kafka(self) -> dict[str, Any]:
        self.broker: KafkaBroker = self.request.getfixturevalue("kafka")
        return {"servers": self.broker.address, "topic_prefix": f"{self.name}.", "partitions": 2}

    def _kafka_rows(self, _: World) -> Rows:
        told = kafka_world.consumed(self.broker.address, f"{self.name}.{RECENT}")
        assert kafka_world.faults(told, may_repeat=False) == []
        return _rows(kafka_world.rows(kafka_world.whole_copy(told)).values())

    def _elasticsearch(self) -> dict[str, Any]:
        self.search: SearchServer = self.request.getfixturevalue("search_server")
        return {"address": self.search.url, "replicas": 0, "index": f"{self.name}-{{table}}"}

    def _elasticsearch_rows(self, _: World) -> Rows:
        alias = f"/{self.name}-{RECENT.name}"
        if "error" in self.search.ask("POST", f"{alias}/_refresh", must=False):
            return Counter()
        hits = self.search.ask("POST", f"{alias}/_search", {"size": 100})["hits"]["hits"]
        return _rows(h["_source"] for h in hits)

    def _subscribers(self) -> dict[str, Any]:
        return {"location": self.place}

    def _subscribers_rows(self, world: World) -> Rows:
        assert self.plugin.feed is not None
        feed, row = self.plugin.feed(self.params), world.store.tables()[0]
        kept = feed.kept(KeptTable(RECENT, "r9", row.generation), row.merged_sequence)
        if kept is None or not row.is_snapshot_done:
            return Counter()
        found = snapshot(feed, RECENT, kept, row.merged_sequence)
        return _rows(r for one in found for r in one.rows.to_pylist())


@pytest.mark.long
@pytest.mark.parametrize("name", HERE)
def test_two_deliveries_reach_it(
    tmp_path: Path, spark: Any, clock: Clock, request: pytest.FixtureRequest, name: str
) -> None:
    """Guards what deliveries ask of a sink: a copy, then every change between two sets. Its rows
    are what a reader of the sink makes of them."""
    path = tmp_path / "shop.db"

    def execute(statement: str) -> None:
        with closing(sqlite3.connect(path)) as made, made:
            made.execute(statement)

    execute(DDL)
    execute(ROWS)
    world = World(tmp_path, spark, f"sqlite:///{path}", "")
    sink = Sink(name, request, tmp_path)
    running = world.start(sink.plugin, sink.params, Mode.MIRROR)
    two_deliveries(world, running, clock, execute, lambda: sink.of(world))
