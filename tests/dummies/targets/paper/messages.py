"""Texts of paper's own codes."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Help, Message, of_table

MESSAGES: Mapping[str, Message] = {
    "target:paper-used-up": Message(
        "No paper left",
        "The drawer has {sheets} sheets.",
        "Put paper into the drawer.",
        "Nothing is written.",
        help=Help.EDIT,
    ),
    "target:paper-too-narrow": of_table(
        "Table too wide for the paper",
        "Table `{table}` has {count} columns; a sheet has room for 2.",
        "Exclude columns.",
        "The table is not written.",
        help=Help.CHANGE,
    ),
}
