"""The subscribers target keeps the promises of every sink; read as the program's feed reads it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from replicators.connectors import registry
from replicators.connectors.contract.sink import Seen, SinkContract
from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.pulling import KeptTable, Part
from replicators.connectors.target import TargetPlugin
from replicators.targets.subscribers.feed import SubscribersFeed
from replicators.targets.subscribers.params import SubscribersParams
from runners.engine.tasks.local import LocalTasks

pytestmark = [pytest.mark.contract]


class TestSubscribers(SinkContract):
    """In a folder, on local tasks."""

    @pytest.fixture
    def plugin(self) -> TargetPlugin:
        return registry.targets()["subscribers"]

    @pytest.fixture
    def params(self, tmp_path: Path) -> SubscribersParams:
        return SubscribersParams(location=f"{tmp_path}/feeds")

    @pytest.fixture
    def dead_params(self, tmp_path: Path) -> SubscribersParams:
        (tmp_path / "file").write_text("a file where the folder should be")
        return SubscribersParams(location=f"{tmp_path}/file")

    @pytest.fixture
    def tasks(self, monkeypatch: pytest.MonkeyPatch) -> LocalTasks:
        monkeypatch.setattr("replicators.targets.subscribers.writer.ROWS_HERE", 100)
        return LocalTasks(3)

    @pytest.fixture
    def read(self, params: SubscribersParams) -> Callable[[TableSchema], list[Seen]]:
        def look(schema: TableSchema) -> list[Seen]:
            folder = Path(params.root) / f"{schema.id.schema}.{schema.id.name}"
            whole = sorted(p.parent for p in folder.glob("g*/_resolved.json"))
            if not whole:
                return []
            upto = json.loads((whole[-1] / "_resolved.json").read_text())["sequence"]
            owner = json.loads((folder / "_table.json").read_text())["replicator"]
            feed = SubscribersFeed(params)
            kept = feed.kept(KeptTable(schema.id, owner, int(whole[-1].name[1:])), upto)
            assert kept is not None
            return [s for p in (*kept.copy, *kept.changes) for s in seen(feed, p, upto)]

        return look


def seen(feed: SubscribersFeed, part: Part, upto: int) -> list[Seen]:
    schema, batches = feed.read(part)
    rows = [r for b in batches for r in b.to_pylist() if r["_sequence"] <= upto]
    assert schema.key == ("id",)
    return [Seen(r["_sequence"], Op(r["_op"]).name.lower(), r["id"], r["note"]) for r in rows]
