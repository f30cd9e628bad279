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
        "Messages are too large",
        "The topic {topic} takes messages of {limit} bytes. More than 10,000 messages at once are "
        "larger, or the brokers take less than the topic says.",
        "Raise max.message.bytes of the topic, or leave out the large column.",
        "The table's changes wait until then.",
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
    "target:kafka-topic-settings": of_table(
        "The brokers do not make such a topic",
        "The brokers refuse to make the topic {topic} with these partitions and replicas.",
        "Set Partitions and Replicas to what the brokers allow, or make the topic yourself.",
        "The table's changes wait until then.",
        retry=Retry.AFTER_FIX,
        help=Help.EDIT,
    ),
    "target:kafka-login": Message(
        "The brokers do not accept the login",
        "The brokers refused the user and the password, or they do not have the SASL mechanism "
        "there.",
        "Check User, Password and SASL mechanism, and that the port is one for SASL.",
        "Nothing is delivered until then.",
        help=Help.EDIT,
    ),
    "target:kafka-tls": Message(
        "TLS to the brokers failed",
        "The brokers' certificate is not trusted, or the port speaks no TLS.",
        "Give the CA file with the certificates that sign the brokers' own, and a port for TLS.",
        "Nothing is delivered until then.",
        help=Help.EDIT,
    ),
}
