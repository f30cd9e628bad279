"""librdkafka's errors as error codes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from confluent_kafka import KafkaError, KafkaException

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError

_REFUSED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_LOGIN = {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED}
_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}
_MISSING = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}


def code_of(fault: KafkaError | None) -> str:
    """The error code for a fault that librdkafka reports."""
    kind = fault.code() if fault is not None else None
    if kind in _LARGE:
        return "target:kafka-message-large"
    if kind in _REFUSED:
        return "target:kafka-refused"
    if kind in _LOGIN:
        return "target:kafka-login"
    if kind in _MISSING:
        return "target:kafka-topic-missing"
    return "target:unreachable"


@contextlib.contextmanager
def translated(table: TableId | None = None, topic: str = "") -> Iterator[None]:
    """Raise librdkafka's errors as `ReplicationError`s."""
    try:
        yield
    except KafkaException as err:
        fault = err.args[0] if err.args and isinstance(err.args[0], KafkaError) else None
        name = fault.name() if fault is not None else type(err).__name__
        raise ReplicationError(
            code_of(fault), table=table, name_of_error=name, topic=topic
        ) from err
