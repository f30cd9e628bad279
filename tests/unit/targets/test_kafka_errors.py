"""How librdkafka's errors become codes, and what a lost producer means."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.kafka import errors
from replicators.targets.kafka.errors import Heard, code_of, translated
from replicators.targets.kafka.sending import TRIES, ProducerLost, again_where_lost


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "target:kafka-refused"),
        (KafkaError.SASL_AUTHENTICATION_FAILED, "target:kafka-login"),
        (KafkaError._AUTHENTICATION, "target:kafka-login"),
        (KafkaError._SSL, "target:kafka-tls"),
        (KafkaError.MSG_SIZE_TOO_LARGE, "target:kafka-message-large"),
        (KafkaError.INVALID_REPLICATION_FACTOR, "target:kafka-topic-settings"),
        (KafkaError._MSG_TIMED_OUT, "target:unreachable"),
    ],
)
def test_a_fault_has_a_code(kind: int, code: str) -> None:
    """Guards the table of codes."""
    assert code_of(KafkaError(kind)) == code


def test_what_a_client_said_on_the_side_explains_that_no_broker_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards wrong logins: librdkafka reports only a broken transport for the call itself."""
    heard = Heard()
    away = KafkaException(KafkaError(KafkaError._TRANSPORT))

    def code() -> str:
        with pytest.raises(ReplicationError) as found, translated(heard=heard):
            raise away
        return found.value.code

    assert code() == "target:unreachable"
    heard(KafkaError(KafkaError._AUTHENTICATION))
    heard(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    assert code() == "target:kafka-login"
    monkeypatch.setattr(errors, "HEARD_SECONDS", 0.0)
    assert code() == "target:unreachable"


def test_a_batch_whose_producer_was_lost_is_sent_by_another() -> None:
    """Guards the other tables where one table's topic is refused."""
    tries: list[int] = []

    def act() -> int:
        tries.append(1)
        if len(tries) < TRIES:
            raise ProducerLost(KafkaError(KafkaError._FATAL))
        return len(tries)

    assert again_where_lost(act) == TRIES
    with pytest.raises(KafkaException):
        again_where_lost(_always_lost)


def _always_lost() -> int:
    raise ProducerLost(KafkaError(KafkaError._FATAL))
