"""Preflight of a Kafka target: whether the brokers answer, who owns the topics, and whether missing
ones may be made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Self

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.preflight import reported, unsupported_columns
from replicators.connectors.problems.problem import Problem
from replicators.targets.kafka.errors import Heard, translated
from replicators.targets.kafka.params import KafkaParams
from replicators.targets.kafka.topics import Claim, Topic, Topics, claim_key, topic_name
from replicators.targets.kafka.types import fit

LOOK_SECONDS = 5.0
"""librdkafka asks again where a port refuses it, so a broker that is away takes this long."""


class KafkaChecks:
    """`TargetChecks`. It only reads."""

    def __init__(self, params: KafkaParams) -> None:
        self._params = params
        self._heard = Heard()
        self._topics = Topics(params, self._heard)
        self._is_away = False

    def close(self) -> None:
        """Nothing stays open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def connection(self) -> list[Problem]:
        """Check that a broker answers, and the schema registry."""
        found = self._reported(lambda: self._topics.admin().list_topics(timeout=LOOK_SECONDS))
        self._is_away = bool(found)
        if registry := self._params.schema_registry:
            found += reported(translated, registry.subjects)
        return found

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        """Report types without a form, topics of others, and topics that nobody makes."""
        found = unsupported_columns(tables, fit)

        if self._is_away or not tables:
            return found
        claims: dict[str, Claim] = {}

        def look_at_own() -> None:
            for name in self._topics.own:
                found.extend(self._usable(name, self._topics.find(name)))
            claims.update(self._topics.claims())

        late = self._reported(look_at_own, self._topics.state)
        for table in tables:
            if any(problem.code == "target:unreachable" for problem in late):
                break
            name = topic_name(self._params, table.id)
            look = partial(self._look, table, replicator, claims, found)
            late += self._reported(look, name, table.id)
        return [*found, *late]

    def _reported(
        self, look: Callable[[], object], topic: str = "", table: TableId | None = None
    ) -> list[Problem]:
        return reported(lambda: translated(table, topic, self._heard), look)

    def _usable(
        self, name: str, topic: Topic | None, table: TableId | None = None
    ) -> list[Problem]:
        """Whether the user may use the topic, or may make it where there is none."""
        if topic is None and not self._params.make_topics:
            return [Problem.of("target:kafka-topic-missing", table=table, topic=name)]
        if topic is not None:
            is_fine = self._topics.is_writable(name)
            return [] if is_fine else [Problem.of("target:kafka-refused", table=table, topic=name)]
        return self._reported(partial(self._topics.could_make, name), name, table)

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
        else:
            found.extend(self._usable(name, topic, table.id))
