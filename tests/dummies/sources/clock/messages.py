"""Texts of the clock's own codes."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Help, Message, Retry, of_table

MESSAGES: Mapping[str, Message] = {
    "source:clock-stopped": Message(
        "The clock has stopped",
        "The clock in the {place} has stopped.",
        "Wind it up, then try again.",
        "No minute is struck meanwhile.",
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "source:clock-muffled": of_table(
        "The bell is muffled",
        "The strikes of table `{table}` can't be heard.",
        "Take the felt off, then re-sync the table.",
        help=Help.CHANGE,
    ),
}
