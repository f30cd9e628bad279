"""Texts of errors and problems that only the Kafka target has."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Help, Message, Retry, of_table

MESSAGES: Mapping[str, Message] = {
    "target:kafka-topic-missing": of_table(
        "A topic is missing",
        "The topic {topic} does not exist, and this target does not make topics.",
        "Make the topic, or switch on Make topics.",
        "The table's changes wait until then.",
        retry=Retry.AFTER_FIX,
        help=Help.EDIT,
    ),
    "target:kafka-message-large": of_table(
        "A message is too large",
        "A message for the topic {topic} has {size} bytes. The topic takes {limit} at most.",
        "Raise max.message.bytes of the topic, or leave out the large column.",
        "The table's changes wait until then. Nothing after this message was sent.",
        retry=Retry.AFTER_FIX,
        help=Help.CHANGE,
    ),
    "target:kafka-refused": of_table(
        "The brokers refuse it",
        "The user may not use the topic {topic}, or may not make it.",
        "Allow the user to describe, read and write the topics, and to create them if Make topics "
        "is on.",
        "The table's changes wait until then.",
        retry=Retry.AFTER_FIX,
    ),
    "target:kafka-login": Message(
        "The brokers do not accept the login",
        "The brokers refused user and password, or the encryption.",
        "Check user, password, SASL mechanism and CA file.",
        "Nothing is delivered until then.",
        help=Help.EDIT,
    ),
}
