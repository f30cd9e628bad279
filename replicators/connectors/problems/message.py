"""What a code of an error or a problem carries: its texts, who tries again, what it stops, and what
a page offers.

Texts are for the user: what happened, to what, what to do. `{placeholders}` are named values of
ours. A problem found before the run and the error of a run with the same fault have the same code.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, replace
from enum import StrEnum


class Retry(StrEnum):
    """AUTO: the outer loop tries again. AFTER_FIX: it tries again, slowly, since a person has to
    mend something. NEVER: only an action (re-sync, edit) helps."""

    AUTO = "auto"
    AFTER_FIX = "after_fix"
    NEVER = "never"


class Scope(StrEnum):
    """What an error stops."""

    RUN = "run"
    TABLE = "table"


class Help(StrEnum):
    """What a page offers where a new try or a re-sync alone would fail again: EDIT the connections,
    CHANGE what is copied of the table, or REMOVE the table."""

    NONE = ""
    EDIT = "edit"
    CHANGE = "change"
    REMOVE = "remove"


class _Lenient(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return f"({key})"


@dataclass(frozen=True, slots=True)
class Message:
    """Texts of a code: `title` (a few words), `text` (what happened), `suggestion` (what to do),
    `impact` (what follows if nobody does it).

    `waits`: the suggestion is to wait for the next try, which is wrong once there is no next try.
    `ends_log`: the source's log does not go on where we stopped, so every table needs a fresh copy.
    `copy_mends`: the source's table is fine, and a fresh copy mends the fault. `is_of_name`: a
    column's name can't be used; a fresh copy mends it once the source has no such column.
    """

    title: str
    text: str
    suggestion: str
    impact: str = ""
    retry: Retry = Retry.AFTER_FIX
    scope: Scope = Scope.RUN
    help: Help = Help.NONE
    waits: bool = False
    ends_log: bool = False
    copy_mends: bool = False
    is_of_name: bool = False

    def render(self, values: dict[str, str]) -> Message:
        """The same message with its placeholders filled. A missing value shows its name in
        brackets."""
        known = _Lenient(values)
        fill = string.Formatter().vformat
        return replace(
            self,
            title=fill(self.title, (), known),
            text=fill(self.text, (), known),
            suggestion=fill(self.suggestion, (), known),
            impact=fill(self.impact, (), known),
        )


def of_table(
    title: str,
    text: str,
    suggestion: str,
    impact: str = "",
    *,
    retry: Retry = Retry.NEVER,
    help: Help = Help.NONE,
    copy_mends: bool = False,
    is_of_name: bool = False,
) -> Message:
    """The message of a fault that stops one table; the others go on."""
    return Message(
        title,
        text,
        suggestion,
        impact,
        retry,
        Scope.TABLE,
        help,
        copy_mends=copy_mends,
        is_of_name=is_of_name,
    )
