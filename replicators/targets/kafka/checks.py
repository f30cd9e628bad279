"""Preflight of a Kafka target: whether the brokers answer, who owns the topics, and whether missing
ones may be made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.preflight import reported, unsupported_columns
from replicators.connectors.problems.problem import Problem
from replicators.targets.kafka.errors import translated
from replicators.targets.kafka.params import KafkaParams
from replicators.targets.kafka.topics import Claim, Topics, claim_key, topic_name
from replicators.targets.kafka.types import fit

LOOK_SECONDS = 5.0
"""librdkafka asks again where a port refuses it, so a broker that is away takes this long."""


class KafkaChecks:
    """`TargetChecks`. It only reads."""

    def __init__(self, params: KafkaParams) -> None:
        self._params = params
        self._topics = Topics(params)
        self._is_away = False

    def close(self) -> None:
        """Nothing stays open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def connection(self) -> list[Problem]:
        """Check that a broker answers, and the schema registry."""
        found = reported(translated, lambda: self._topics.admin().list_topics(timeout=LOOK_SECONDS))
        self._is_away = bool(found)
        if registry := self._params.schema_registry:
            found += reported(translated, registry.subjects)
        return found

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        """Report types without a form, topics of others, and topics that nobody makes."""
        found = unsupported_columns(tables, fit)

        def look() -> None:
            claims = self._topics.claims() if tables else {}
            if tables and not self._params.make_topics:
                self._require(self._topics.state, found)
            for table in tables:
                self._look(table, replicator, claims, found)

        late = [] if self._is_away else reported(translated, look)
        return [*found, *late]

    def _require(self, name: str, found: list[Problem]) -> None:
        if self._topics.find(name) is None:
            found.append(Problem.of("target:kafka-topic-missing", topic=name))

    def _look(
        self, table: TableSchema, replicator: str, claims: dict[str, Claim], found: list[Problem]
    ) -> None:
        name = topic_name(self._params, table.id)
        claim = claims.get(claim_key(name, table.id))
        topic = self._topics.find(name)
        if claim is not None:
            is_taken = not replicator or claim.replicator != replicator
        else:
            is_taken = bool(topic and not self._params.topic and self._topics.has_messages(topic))
        if is_taken:
            found.append(Problem.of("target:table-taken", table=table.id, target=name))
        elif topic is None and not self._params.make_topics:
            found.append(Problem.of("target:kafka-topic-missing", table=table.id, topic=name))
