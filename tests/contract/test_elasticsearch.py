"""The elasticsearch target keeps the promises of every sink that has the rows as they are, on a
real server (OpenSearch); read by its alias alone."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from replicators.connectors import registry
from replicators.connectors.contract.sink import Change, Seen, SinkContract, batch, resolved
from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.target import TargetPlugin, TargetTable
from replicators.targets.elasticsearch import client
from replicators.targets.elasticsearch.params import ElasticsearchParams
from runners.engine.tasks.local import LocalTasks
from tests.search_server import SearchServer

pytestmark = [pytest.mark.contract]


class TestElasticsearch(SinkContract):
    """On local tasks."""

    keeps_rows = True

    @pytest.fixture
    def plugin(self) -> TargetPlugin:
        return registry.targets()["elasticsearch"]

    @pytest.fixture
    def params(self, search_server: SearchServer) -> ElasticsearchParams:
        rule = f"t{uuid.uuid4().hex[:8]}-{{schema}}-{{table}}"
        return ElasticsearchParams(address=search_server.url, index=rule, replicas=0)

    @pytest.fixture
    def dead_params(self, monkeypatch: pytest.MonkeyPatch) -> ElasticsearchParams:
        hurried = {"patience": 0.2, "read_seconds": 5.0}
        monkeypatch.setattr(client.Search.__init__, "__kwdefaults__", hurried)
        return ElasticsearchParams(address="http://127.0.0.1:1")

    @pytest.fixture
    def tasks(self, monkeypatch: pytest.MonkeyPatch) -> LocalTasks:
        monkeypatch.setattr("replicators.targets.elasticsearch.writer.ROWS_HERE", 100)
        return LocalTasks(3)

    @pytest.fixture
    def read(
        self, search_server: SearchServer, plugin: TargetPlugin, params: ElasticsearchParams
    ) -> Callable[[TableSchema], list[Seen]]:
        def look(schema: TableSchema) -> list[Seen]:
            alias = params.index.format(schema=schema.id.schema, table=schema.id.name)
            return rows(search_server, alias)

        return look

    def test_nothing_older_follows_a_mark_and_marks_do_not_go_back(
        self, open_sink: Any, live: TargetTable, schema: TableSchema, read: Any
    ) -> None:
        """Guards `resolved`: it changes nothing in an index, whose rows are those of the changes
        and not of the marks."""
        early = [Change(11 + i, Op.INSERT, i, f"v{i}", at=i) for i in range(60)]
        late = [Change(71 + i, Op.UPDATE, i, "late", at=i - 5000) for i in range(10)]
        sink = open_sink()
        sink.deliver(live, batch(early, schema, 10, 2))
        for one in (sink, open_sink()):
            one.resolved(live, resolved(70, 400))
            one.resolved(live, resolved(30, 100))
            assert read(schema) == self.expected(self.FIRST, early)
        open_sink().deliver(live, batch(late, schema, 70, 2, resolved=400))
        assert read(schema) == self.expected(self.FIRST, [*early, *late])


def rows(server: SearchServer, alias: str) -> list[Seen]:
    """The documents of an alias, in order of version and id."""
    if "error" in server.ask("POST", f"/{alias}/_refresh", must=False):
        return []
    query = {"size": 10_000, "version": True}
    hits = server.ask("POST", f"/{alias}/_search", query)["hits"]["hits"]
    found = [Seen(h["_version"], "row", h["_source"]["id"], h["_source"]["note"]) for h in hits]
    return sorted(found, key=lambda s: (s.sequence, s.id or 0))
