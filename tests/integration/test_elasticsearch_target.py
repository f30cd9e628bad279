"""What a search index does with changes, faults and crashes, on a real server (OpenSearch)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from email.message import Message
from typing import Any

import pyarrow as pa
import pytest

from replicators.connectors.contract.sink import (
    Change,
    HeldLane,
    batch,
    kept,
    lanes,
    resolved,
    rows_of,
    snapshot,
)
from replicators.connectors.contract.source import code_of
from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Array, Float, Int, Json, String, Uuid
from replicators.connectors.target import BatchKind, ChangeBatch, TargetTable
from replicators.targets.elasticsearch import client
from replicators.targets.elasticsearch.checks import ElasticsearchChecks
from replicators.targets.elasticsearch.params import ElasticsearchParams
from replicators.targets.elasticsearch.refused import count
from replicators.targets.elasticsearch.writer import ElasticsearchSink
from runners.engine.tasks.local import LocalTasks
from tests.contract.test_elasticsearch import rows
from tests.search_proxies import before
from tests.search_server import SearchServer

ID = Column("id", Int(64), "bigint", nullable=False, ordinal=1)
NOTE = Column("note", String(), "text", ordinal=2)


class Index:
    """A table of its own on the server."""

    def __init__(self, server: SearchServer, *columns: Column) -> None:
        self.server = server
        self.alias = f"t{uuid.uuid4().hex[:10]}"
        self.params = ElasticsearchParams(address=server.url, index=self.alias, replicas=0)
        self.schema = TableSchema(
            TableId("shop", "table"), (ID, *(columns or (NOTE,))), ("id",), ("id",)
        )
        self.table = TargetTable(self.schema.id, "r1", 1)
        self.sink = self.open()

    def open(self) -> ElasticsearchSink:
        """As a new run does."""
        return ElasticsearchSink(self.params, LocalTasks(2))

    def begin(self, *found: tuple[int, str]) -> None:
        """A copy, up to sequence 10."""
        self.sink.begin(self.table, self.schema)
        self.sink.deliver(self.table, snapshot(found, self.schema, 1, 10))

    def deliver(self, changes: Sequence[Change], after: int, count: int = 1) -> None:
        """A batch of changes, by a new run."""
        self.open().deliver(self.table, batch(changes, self.schema, after, count))

    def rows(self) -> dict[int, str]:
        """Id -> note."""
        return {int(s.id or 0): s.note or "" for s in rows(self.server, self.alias)}

    def documents(self, values: Sequence[dict[str, Any]], after: int) -> None:
        """Rows with these values, as inserts."""
        meta = [
            {"_sequence": after + n, "_op": int(Op.INSERT), "_committed_at": 0, "_transaction": n,
             "_position": n, **row}
            for n, row in enumerate(values, 1)
        ]  # fmt: skip
        fields = [*rows_of([], replace(self.schema, columns=(ID, NOTE))).schema][:6]
        wanted = pa.schema([*fields, *self.schema.arrow_schema()])
        table = pa.Table.from_pylist(meta, schema=wanted)
        last = after + len(values)
        lane = HeldLane(1, after + 1, last, len(values), table)
        made = ChangeBatch(BatchKind.CHANGES, self.schema, after, last, (lane,))
        self.open().deliver(self.table, made)

    def found(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        """What a search finds."""
        self.server.ask("POST", f"/{self.alias}/_refresh")
        answer = self.server.ask("POST", f"/{self.alias}/_search", {"query": query})
        return [h["_source"] for h in answer["hits"]["hits"]]


@pytest.fixture
def index(search_server: SearchServer) -> Index:
    return Index(search_server)


CHANGES = [
    Change(11, Op.UPDATE, 1, unsent=True),
    Change(12, Op.UPDATE, 5, unsent=True, old_id=1),
    Change(13, Op.INSERT, 1, "again"),
    Change(14, Op.UPDATE, 2, "B"),
    Change(15, Op.UPDATE, 2, unsent=True),
    Change(16, Op.DELETE, 3),
    Change(17, Op.INSERT, 7, "g"),
    Change(18, Op.UPDATE, 7, unsent=True, old_id=7),
]


def test_unsent_values_survive_updates_changed_keys_and_every_retry(index: Index) -> None:
    """Guards values that the source does not send: a run dies after any of the lanes, and the next
    one delivers everything again."""
    first = [(1, "long text"), (2, "b"), (3, "c")]
    for done in (0, 2, 3, 5, 8):
        one = Index(index.server)
        one.begin(*first)
        if done:
            one.deliver(CHANGES[:done], 10, 3)
        one.deliver(CHANGES, 10, 2)
        one.deliver(CHANGES, 10, 1)
        assert one.rows() == {5: "long text", 1: "again", 2: "B", 7: "g"}, done


def test_a_truncate_empties_the_index_in_one_step_also_when_it_comes_again(index: Index) -> None:
    """Guards TRUNCATE: what came after it stays, whichever batch brings it again."""
    index.begin((1, "a"), (2, "b"))
    changes = [
        Change(11, Op.INSERT, 3, "c"),
        Change(12, Op.TRUNCATE, 0),
        Change(13, Op.INSERT, 4, "d"),
        Change(14, Op.UPDATE, 4, "e"),
    ]
    index.deliver(changes, 10, 4)
    assert index.rows() == {4: "e"}
    index.deliver(changes[:2], 10)
    index.deliver(changes[1:], 11, 2)
    assert index.rows() == {4: "e"}
    more = [Change(15, Op.TRUNCATE, 0)]
    index.deliver(more, 14)
    assert index.rows() == {}
    names = index.server.ask("GET", f"/{index.alias}*")
    assert len(names) == 1


def test_an_old_write_changes_nothing_and_is_no_fault(index: Index) -> None:
    """Guards external versions: fails where an earlier change wins over a later one."""
    index.begin((1, "a"))
    late = [Change(20, Op.UPDATE, 1, "new"), Change(21, Op.DELETE, 2)]
    index.deliver(late, 10)
    index.deliver([Change(12, Op.UPDATE, 1, "old"), Change(13, Op.INSERT, 2, "old")], 10)
    assert index.rows() == {1: "new"}


def test_a_refused_document_is_kept_aside_and_written_when_the_cluster_takes_it(
    search_server: SearchServer,
) -> None:
    """Guards documents that the cluster can't take: the others are written, nothing stale is found,
    and a later run tries again."""
    index = Index(search_server, NOTE, Column("price", Float(64), "double", ordinal=3))
    index.sink.begin(index.table, index.schema)
    index.sink.resolved(index.table, resolved(10, 1))
    good = {"id": 1, "note": "good", "price": 1.5}
    index.documents([good, {"id": 2, "note": "first", "price": 2.5}], 10)
    index.documents([{"id": 2, "note": "bad", "price": float("nan")}, {**good, "id": 3}], 12)
    assert sorted(d["id"] for d in index.found({"match_all": {}})) == [1, 3]
    aside = f"{index.alias}-g1-refused"
    search_server.ask("POST", f"/{aside}/_refresh")
    (kept_one,) = search_server.ask("POST", f"/{aside}/_search", {})["hits"]["hits"]
    found = kept_one["_source"]
    assert (found["id"], found["sequence"]) == ("2", 13)
    assert found["error"] == "mapper_parsing_exception" and "price" in found["reason"]
    assert json.loads(found["document"])["note"] == "bad"
    index.documents([{"id": 4, "note": "still", "price": 1.0}], 14)
    assert count(client.Search(index.params), aside) == 1
    sink = index.open()
    (listed,) = sink.refused(index.table, 10) or []
    assert listed.key == '{"_id": "2"}' and "price" in listed.reason and listed.number < 0
    assert sink.refused(index.table, 10) is None, "nothing has changed"
    index.documents([{"id": 2, "note": "mended", "price": 7.0}], 15)
    index.open().resolved(index.table, resolved(16, 9))
    search_server.ask("POST", f"/{aside}/_refresh")
    assert count(client.Search(index.params), aside) == 0
    (two,) = index.found({"term": {"id": 2}})
    assert two["note"] == "mended"


def test_a_mended_mapping_takes_the_refused_document(search_server: SearchServer) -> None:
    """Guards the new try itself: the person gave the field a type that takes the value."""
    index = Index(search_server, Column("doc", Json(), "jsonb", ordinal=3))
    index.params = replace(index.params, json="objects")
    index.sink = index.open()
    index.sink.begin(index.table, index.schema)
    index.sink.resolved(index.table, resolved(10, 1))
    index.documents([{"id": 1, "doc": '{"size": 5}'}, {"id": 2, "doc": '{"size": "large"}'}], 10)
    assert [d["id"] for d in index.found({"match_all": {}})] == [1]
    mended = {"properties": {"doc": {"properties": {"size": {
        "type": "long", "ignore_malformed": True}}}}}  # fmt: skip
    search_server.ask("PUT", f"/{index.alias}/_mapping", mended)
    search_server.ask("POST", f"/{index.alias}-g1-refused/_refresh")
    sink = index.open()
    assert len(sink.refused(index.table, 10) or []) == 1
    sink.replay(index.table)
    assert sink.refused(index.table, 10) == []
    assert sorted(d["id"] for d in index.found({"match_all": {}})) == [1, 2]


def test_a_read_only_index_is_said_and_goes_on_once_the_block_is_gone(index: Index) -> None:
    """Guards the block that a full disk brings."""
    index.begin((1, "a"))
    index.sink.resolved(index.table, resolved(10, 1))
    block = {"index.blocks.read_only_allow_delete": True}
    index.server.ask("PUT", f"/{index.alias}/_settings", block)
    changes = [Change(11, Op.INSERT, 2, "b")]
    assert code_of(lambda: index.deliver(changes, 10)) == "target:index-read-only"
    none = {"index.blocks.read_only_allow_delete": None}
    index.server.ask("PUT", f"/{index.alias}/_settings", none)
    index.deliver(changes, 10)
    assert index.rows() == {1: "a", 2: "b"}


def answering(
    server: SearchServer, status: Sequence[int], limit: int = 0
) -> AbstractContextManager[str]:
    """A proxy that answers bulk requests with these statuses first, and 413 to those that are
    larger than the limit. Its address."""
    left = list(status)

    def refuse(path: str, headers: Message, data: bytes) -> int | None:
        if "_bulk" not in path:
            return None
        if left:
            return left.pop(0)
        return 413 if limit and len(data) > limit else None

    return before(server, refuse)


def test_a_busy_cluster_is_asked_again_and_a_too_large_request_is_split(index: Index) -> None:
    """Guards 429, 503 and 413: every document arrives, and order per key holds."""
    index.begin()
    changes = [Change(11 + i, Op.UPDATE, i % 40, f"v{i}" * 20) for i in range(400)]
    with answering(index.server, [429, 503, 429], limit=4000) as url:
        index.params = replace(index.params, address=url)
        index.deliver(changes, 10, 3)
    index.params = replace(index.params, address=index.server.url)
    assert rows(index.server, index.alias) == kept([], changes)


def test_a_document_larger_than_a_request_may_be_is_put_aside(index: Index) -> None:
    """Guards the end of splitting."""
    index.begin()
    changes = [Change(11, Op.INSERT, 1, "x" * 5000), Change(12, Op.INSERT, 2, "small")]
    with answering(index.server, [], limit=2000) as url:
        index.params = replace(index.params, address=url)
        index.deliver(changes, 10)
    index.params = replace(index.params, address=index.server.url)
    index.open().resolved(index.table, resolved(12, 9))
    assert index.rows() == {2: "small"}
    index.server.ask("POST", f"/{index.alias}-g1-refused/_refresh")
    assert count(client.Search(index.params), f"{index.alias}-g1-refused") == 1


def test_a_cluster_that_stays_busy_is_said_and_retried_later(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the end of patience."""
    index.begin()
    monkeypatch.setattr(client, "LONGEST_WAIT", 0.01)
    changes = [Change(11, Op.INSERT, 1, "a")]
    with answering(index.server, [503] * 100_000) as url:
        index.params = replace(index.params, address=url)
        monkeypatch.setattr(client.Search.__init__, "__kwdefaults__",
                            {"patience": 0.2, "read_seconds": 5.0})  # fmt: skip
        assert code_of(lambda: index.deliver(changes, 10)) == "target:search-busy"


def test_a_renamed_column_asks_for_a_fresh_copy(index: Index) -> None:
    """Guards changes of a table that an index can't follow in place."""
    index.begin((1, "a"))
    index.deliver([Change(11, Op.INSERT, 2, "b")], 10)
    other = replace(index.schema, columns=(ID, replace(NOTE, name="remark")))
    held = lanes([Change(12, Op.DELETE, 2)], index.schema)
    made = ChangeBatch(BatchKind.CHANGES, other, 11, 12, held)
    assert code_of(lambda: index.open().deliver(index.table, made)) == "target:evolve"


def test_checks_name_what_an_index_can_not_hold(search_server: SearchServer) -> None:
    """Guards the assessment: names, keys, and two tables of one index."""
    params = ElasticsearchParams(address=search_server.url, index="{table}")
    bad = Column("a.b", String(), "text", ordinal=2)
    tables = [
        TableSchema(TableId("one", "T1"), (ID, bad), ("id",), ("id",)),
        TableSchema(TableId("two", "t1"), (ID, replace(bad, name="_id")), (), ()),
        TableSchema(TableId("two", "_t"), (ID,), ("id",), ("id",)),
    ]
    with ElasticsearchChecks(params) as checks:
        assert checks.connection() == []
        codes = [(p.code, str(p.table)) for p in checks.tables(tables, "r1")]
    assert codes == [
        ("target:field-name", "one.T1"),
        ("target:index-needs-key", "two.t1"),
        ("target:field-name", "two.t1"),
        ("target:index-name", "two._t"),
        ("target:index-shared", "two.t1"),
    ]


def test_the_vehicles_of_seed_003_are_found_by_words(search_server: SearchServer) -> None:
    """Guards the example of the third seed: a search over `type` and `status`, which changes."""
    columns = (
        Column("id", Uuid(), "uuid", nullable=False, ordinal=1),
        Column("type", String(), "varchar(200)", ordinal=2),
        Column("status", String(), "varchar(20)", ordinal=3),
        Column("tags", Array(String()), "text[]", ordinal=4),
    )
    index = Index(search_server)
    index.schema = TableSchema(TableId("movr", "vehicles"), columns, ("id",), ("id",))
    index.table = TargetTable(index.schema.id, "r1", 1)
    index.sink.begin(index.table, index.schema)
    index.sink.resolved(index.table, resolved(10, 1))
    key = [str(uuid.UUID(int=n)) for n in range(3)]
    kinds = ["BMW Z4", "Vespa Scooter", "1980s military tank"]
    made = [
        {"id": k, "type": t, "status": "available", "tags": [t.split()[0], None]}
        for k, t in zip(key, kinds, strict=True)
    ]
    index.documents(made, 10)

    def search(words: str) -> list[str]:
        must = [{"match": {"type": words}}, {"match": {"status": "available"}}]
        return [d["type"] for d in index.found({"bool": {"must": must}})]

    assert search("Tank") == ["1980s military tank"]
    assert search("1980s military tank")[0] == "1980s military tank"
    assert [d["type"] for d in index.found({"term": {"type.keyword": "BMW Z4"}})] == ["BMW Z4"]
    index.documents([{**made[2], "status": "in_use"}], 13)
    assert search("tank") == [] and search("scooter") == ["Vespa Scooter"]
    index.documents([{**made[2], "status": "available"}], 14)
    assert search("tank") == ["1980s military tank"]


def test_an_unsent_value_of_a_document_that_is_gone_is_put_aside(index: Index) -> None:
    """Guards documents that somebody removed: what is left is not written as if it were whole."""
    index.begin((1, "a"), (2, "b"))
    index.sink.resolved(index.table, resolved(10, 1))
    gone = f"/{index.alias}/_doc/1?version=10&version_type=external_gte"
    index.server.ask("DELETE", gone)
    index.deliver([Change(11, Op.UPDATE, 1, unsent=True), Change(12, Op.UPDATE, 2, "c")], 10)
    assert index.rows() == {2: "c"}
    aside = f"{index.alias}-g1-refused"
    index.server.ask("POST", f"/{aside}/_refresh")
    (found,) = index.server.ask("POST", f"/{aside}/_search", {})["hits"]["hits"]
    assert (found["_source"]["error"], found["_source"]["id"]) == ("unsent", "1")
    index.deliver([Change(13, Op.UPDATE, 1, "whole")], 12)
    index.open().resolved(index.table, resolved(13, 9))
    index.server.ask("POST", f"/{aside}/_refresh")
    assert count(client.Search(index.params), aside) == 0
    assert index.rows() == {1: "whole", 2: "c"}
