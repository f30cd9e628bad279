"""Texts of errors and problems that only the files target has."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Message

MESSAGES: Mapping[str, Message] = {
    "target:probe-lost": Message(
        "Files do not come back",
        "A small file was written to the location, and was then {fault}.",
        "Check that nothing removes or changes files there, and that the store lists new objects "
        "at once.",
        "A loader would miss changes.",
    ),
}
