"""Texts of errors and problems that only the subscribers target has: none. What its readers are
told has codes of the program (`subscriber:...`)."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Message

MESSAGES: Mapping[str, Message] = {}
