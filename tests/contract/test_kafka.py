"""The Kafka target keeps the promises of every sink on a real broker, read by a consumer that
leaves out repeated messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from demo.postgres import free_port
from replicators.connectors import registry
from replicators.connectors.contract.sink import Change, Seen, SinkContract, as_seen
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.target import TargetPlugin
from replicators.targets.kafka.params import KafkaParams
from runners.engine.tasks.local import LocalTasks
from tests.kafka_servers import KafkaBroker, fresh_prefix
from tests.kafka_world import Told, consumed, faults, whole_copy

pytestmark = [pytest.mark.contract]


class TestKafka(SinkContract):
    """On local tasks. A changed key is two messages: the old key is deleted, the new one is
    inserted."""

    def expected(self, first: Sequence[Seen], changes: Sequence[Change]) -> list[Seen]:
        found = list(first)
        for change in changes:
            told = as_seen([change])
            if change.old_id is not None:
                found.append(Seen(change.sequence, "delete", change.old_id, None))
                told = [replace(t, operation="insert") for t in told]
            found += told
        return found

    @pytest.fixture
    def plugin(self) -> TargetPlugin:
        return registry.targets()["kafka"]

    @pytest.fixture
    def params(self, kafka: KafkaBroker) -> KafkaParams:
        return KafkaParams(
            kafka.address,
            topic_prefix=fresh_prefix(),
            partitions=3,
            envelope="diff",
            tombstones=False,
            truncates=True,
        )

    @pytest.fixture
    def dead_params(self, monkeypatch: pytest.MonkeyPatch) -> KafkaParams:
        monkeypatch.setattr("replicators.targets.kafka.topics.ASK_SECONDS", 1.0)
        monkeypatch.setattr("replicators.targets.kafka.checks.LOOK_SECONDS", 1.0)
        return KafkaParams(f"127.0.0.1:{free_port()}")

    @pytest.fixture
    def tasks(self) -> LocalTasks:
        return LocalTasks(3)

    @pytest.fixture
    def read(self, params: KafkaParams) -> Callable[[TableSchema], list[Seen]]:
        def look(schema: TableSchema) -> list[Seen]:
            topic = f"{params.topic_prefix}{schema.id.schema}.{schema.id.name}"
            found = consumed(params.servers, topic)
            assert faults(found, may_repeat=True) == []
            return [seen(m) for m in whole_copy(found)]

        return look


def seen(told: Told) -> Seen:
    key = None if told.op == "truncate" else json.loads(told.key or b"[null]")[0]
    after = (told.json or {}).get("after") or {}
    return Seen(told.sequence, told.op, key, after.get("note"))
