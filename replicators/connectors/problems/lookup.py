"""Finds a code's message, first in the program's own messages, then in those of the plugins.

The plugins' messages are joined at the first code that is not the program's own, so nothing is
imported before it is needed. This also holds in a Spark task's process: a plugin's descriptor
imports no driver.
"""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Message
from replicators.connectors.problems.messages import MESSAGES

UNKNOWN = "internal:unknown-code"


def messages() -> Mapping[str, Message]:
    """Every code's message."""
    from replicators.connectors import registry  # it imports what makes problems

    return {**MESSAGES, **registry.messages()}


def message_of(code: str) -> Message:
    """A code's message. Where no plugin has the code any more, a message that says so."""
    found = _find(code)
    return found or MESSAGES[UNKNOWN].render({"code": code})


def is_known(code: str) -> bool:
    """Whether the code has a message here."""
    return _find(code) is not None


def _find(code: str) -> Message | None:
    if code in MESSAGES:
        return MESSAGES[code]
    from replicators.connectors import registry

    return registry.messages().get(code)
