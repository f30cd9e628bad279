"""librdkafka's errors as error codes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from confluent_kafka import KafkaError, KafkaException

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError

_REFUSED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_LOGIN = {
    KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
}
_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}
_TLS = "target:kafka-tls"
HEARD_SECONDS = 30.0
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
    if kind == KafkaError._SSL or (fault is not None and "SSL handshake" in fault.str()):
        return _TLS
    if kind == KafkaError._INVALID_ARG and fault is not None and "ssl." in fault.str():
        return _TLS
    if kind in {KafkaError.POLICY_VIOLATION, KafkaError.INVALID_REPLICATION_FACTOR}:
        return "target:kafka-topic-settings"
    return "target:unreachable"


class Heard:
    """What clients say on the side. A client that can't log in only reports that no broker answers;
    why is told to this callback. `poll` lets a client tell it."""

    def __init__(self) -> None:
        self.poll: Callable[[float], object] = lambda _: None
        self._code, self._at = "", 0.0

    def __call__(self, fault: KafkaError) -> None:
        code = code_of(fault)
        if code in {"target:kafka-login", _TLS}:
            self._code, self._at = code, time.monotonic()

    def code(self) -> str:
        """The code of a fault that was heard of lately; empty for none."""
        self.poll(0)
        return self._code if time.monotonic() - self._at < HEARD_SECONDS else ""


@contextlib.contextmanager
def translated(
    table: TableId | None = None, topic: str = "", heard: Heard | None = None
) -> Iterator[None]:
    """Raise librdkafka's errors as `ReplicationError`s."""
    try:
        yield
    except KafkaException as err:
        fault = err.args[0] if err.args and isinstance(err.args[0], KafkaError) else None
        name = fault.name() if fault is not None else type(err).__name__
        code = code_of(fault)
        if code == "target:unreachable" and heard is not None:
            code = heard.code() or code
        raise ReplicationError(code, table=table, name_of_error=name, topic=topic) from err
