"""The Kafka target: every change is a message in a topic. Importing this loads no driver."""

from __future__ import annotations

from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.model.modes import Mode
from replicators.connectors.target import ChangeSink, TargetChecks, TargetPlugin
from replicators.connectors.tasks import Tasks
from replicators.connectors.uris import UriScheme
from replicators.targets.kafka.messages import MESSAGES
from replicators.targets.kafka.params import KafkaParams, places
from replicators.targets.kafka.types import fit

__all__ = ["PLUGIN"]


def _checks(params: KafkaParams) -> TargetChecks:
    from replicators.targets.kafka.checks import KafkaChecks

    return KafkaChecks(params)


def _writer(params: KafkaParams, tasks: Tasks) -> ChangeSink:
    from replicators.targets.kafka.writer import KafkaSink

    return KafkaSink(params, tasks)


PLUGIN = TargetPlugin(
    name="kafka",
    label="Kafka",
    summary="Every change as a message in Kafka topics, in JSON or Avro, in order by key.",
    params=KafkaParams,
    unseen="Whether the user may use the topics is seen once tables are assessed.",
    capabilities=TargetCapabilities(
        delivery=Delivery.AT_LEAST_ONCE, modes=(Mode.APPEND,), rejects_rows=True
    ),
    fit=fit,
    checks=_checks,
    writer=_writer,
    modules=lambda _: ("replicators.targets.kafka.writer",),
    task_modules=("replicators.targets.kafka.sending", "replicators.connectors.feed.avro"),
    places=places,
    uri=UriScheme(
        hosts="servers",
        words={
            "cluster_address": "servers",
            "kafka_topic_prefix": "topic_prefix",
            "confluent_schema_registry": "registry",
        },
    ),
    merge_seconds=lambda _: 1.0,
    messages=MESSAGES,
)
