"""The identity of a table, kept as a part of its comment, where a database has no mark of its own
that lasts. A person may write around it."""

from __future__ import annotations

import re
import uuid

MARK = re.compile(r"\s*\(replicator [0-9a-f-]{36}\)")


def mark_of(comment: str) -> str:
    """The identity in a comment; empty where there is none."""
    found = MARK.search(comment)
    return found[0].strip(" ()") if found else ""


def marked(comment: str) -> tuple[str, str]:
    """A new identity, and the comment with it in place of the one before."""
    identity = f"replicator {uuid.uuid4()}"
    return identity, f"{MARK.sub('', comment)} ({identity})".strip()
