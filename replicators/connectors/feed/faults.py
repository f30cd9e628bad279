"""Texts of the errors that feeds with a schema registry have."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Help, Message, Retry, of_table

_WAITS = "Changes wait in the change log."

FEED_MESSAGES: Mapping[str, Message] = {
    "target:registry-unreachable": Message(
        "Schema registry not reachable",
        "The schema registry does not answer, or says that it can't answer now.",
        "Check its address, that it runs, and that its firewall lets this machine in.",
        _WAITS,
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "target:registry-login-refused": Message(
        "Schema registry refused the login",
        "The schema registry does not accept the user, the password or the token, or this user may "
        "not register schemas.",
        "Check them, and that the user may read and write the subjects of the topics.",
        _WAITS,
        help=Help.EDIT,
    ),
    "target:registry-tls": Message(
        "TLS to the schema registry failed",
        "The certificate of the schema registry is not trusted.",
        "Give the file with the certificates of its authority.",
        _WAITS,
        help=Help.EDIT,
    ),
    "target:registry-answer": Message(
        "No schema registry there",
        "What answers at the schema registry's address is none (status {status}).",
        "Check the address. Apicurio's ends with `/apis/ccompat/v7`.",
        _WAITS,
        help=Help.EDIT,
    ),
    "target:registry-incompatible": of_table(
        "Schema registry refused the new schema",
        "The columns of `{table}` changed in a way that the compatibility of the subject "
        "`{subject}` does not allow.",
        "Let the subject accept it (compatibility NONE), delete the subject, or give the feed "
        "another topic. Then try again. Consumers must be able to read both schemas.",
        _WAITS,
        retry=Retry.AFTER_FIX,
    ),
    "target:registry-schema": of_table(
        "Schema registry does not accept the schema",
        "The registry says that the schema of `{table}` for the subject `{subject}` is not valid.",
        "Look for other schemas of this subject. Give the feed another topic if they are of "
        "something else.",
        _WAITS,
        retry=Retry.AFTER_FIX,
    ),
}
