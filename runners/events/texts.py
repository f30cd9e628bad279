"""Sentences for events about schemas, tables that appear or vanish, and waits at the source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCHEMA_EVENTS = frozenset(
    {
        "schema_followed",
        "schema_kept",
        "schema_resync",
        "table_given_up",
        "tables_appeared",
        "source_waits",
    }
)


def schema_text(kind: str, facts: Mapping[str, Any]) -> str:
    """A sentence of the event's facts."""
    if kind == "tables_appeared":
        shown = [str(t) for t in facts.get("tables", ())]
        more = int(facts.get("count", 0)) - len(shown)
        act = "They are added." if facts.get("policy") == "add" else "Add or ignore them."
        return f"{', '.join(shown)}{f' and {more} more' if more > 0 else ''}. {act}"
    if kind == "table_given_up":
        minutes = facts.get("minutes", "")
        return (
            f"It was tried for {minutes} minutes, which is the retry time. Fix the cause, "
            "then retry."
        )
    change = str(facts.get("holder" if kind == "source_waits" else "change", ""))
    return f"{change[:1].upper()}{change[1:]}".removesuffix(".") + "."
