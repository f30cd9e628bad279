"""The kinds of changes that a page lets a table take, and texts on what leaving each of them out
means."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from replicators.connectors.model.schema import EXCLUDABLE

WITHOUT = {
    "inserts": "Off: no new rows are added; those of the first copy are kept up. In append mode "
    "only the inserts are missing.",
    "updates": "Off: a row stays as it was when it was copied.",
    "deletes": "Off: a deleted row stays in the copy, also where the table is emptied.",
}


def kind_lines(excluded: Collection[str]) -> list[dict[str, Any]]:
    """A line for each kind of change: whether the copy takes it, and what leaving it out means."""
    return [
        {
            "name": kind,
            "label": kind.capitalize(),
            "is_taken": kind not in excluded,
            "about": WITHOUT[kind],
        }
        for kind in EXCLUDABLE
    ]


def kinds_left(taken: Collection[str]) -> list[str]:
    """The kinds to leave out if `taken` are ticked."""
    return [kind for kind in EXCLUDABLE if kind not in taken]
