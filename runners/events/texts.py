"""Sentences for events about schemas, tables that appear or vanish, waits at the source,
verifications and repairs."""

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
        "replicator_owner_gone",
        "replicator_paused_for",
        "replicator_resumed_after",
        "retention_others_paused",
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
    name = facts.get("name", "")
    match kind:
        case "replicator_owner_gone":
            return f"`{facts.get('owner', '')}` made it. Whoever resumes it becomes its owner."
        case "replicator_paused_for":
            return f"The source keeps its log for `{name}` for a few hours only."
        case "replicator_resumed_after":
            return f"It was paused for `{name}`."
        case "retention_others_paused":
            return f"`{name}` is paused until this one has caught up."
    change = str(facts.get("holder" if kind == "source_waits" else "change", ""))
    return f"{change[:1].upper()}{change[1:]}".removesuffix(".") + "."


VERIFY_EVENTS = frozenset(
    {
        "verification_asked",
        "verification_done",
        "verification_skipped",
        "verify_schedule_changed",
        "repair_asked",
        "repair_done",
    }
)

WITH_SENTENCE = SCHEMA_EVENTS | VERIFY_EVENTS


def sentence(kind: str, facts: Mapping[str, Any]) -> str:
    """The sentence of an event of one of these kinds."""
    return verify_text(kind, facts) if kind in VERIFY_EVENTS else schema_text(kind, facts)


def verify_text(kind: str, facts: Mapping[str, Any]) -> str:
    """A sentence about a verification or a repair, of the event's facts."""
    match kind:
        case "verification_asked":
            tables = facts.get("tables", "all")
            return "" if tables == "all" else f"Only {_listed(tables)}."
        case "verification_done":
            return _result(facts)
        case "verification_skipped":
            return str(facts.get("reason", ""))
        case "verify_schedule_changed":
            return f"At `{facts['cron']}`, UTC." if facts.get("cron") else "Never by itself."
        case "repair_asked":
            return f"{_count(facts.get('keys', 0), 'row')}."
        case "repair_done":
            parts = [f"{facts.get('written', 0):,} written", f"{facts.get('deleted', 0):,} deleted"]
            parts += [f"{facts['equal']:,} equal already"] if facts.get("equal") else []
            parts += [f"{facts['left']:,} left as they are"] if facts.get("left") else []
            return f"{', '.join(parts)}."
    return ""


def _listed(tables: Any) -> str:
    names = [f"`{t}`" for t in tables]
    more = len(names) - 3
    return f"{', '.join(names[:3])}{f' and {more} more' if more > 0 else ''}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _result(facts: Mapping[str, Any]) -> str:
    compared = f"{_count(facts.get('rows', 0), 'row')} of {_count(facts.get('tables', 0), 'table')}"
    wrong, unsettled = facts.get("wrong", 0), facts.get("unsettled", 0)
    found = f"{_count(wrong, 'row')} differ{'s' if wrong == 1 else ''}" if wrong else "all equal"
    if not wrong and facts.get("outcome") != "equal":
        found = "not all could be compared"
    rest = f"; {_count(unsettled, 'row')} unsettled" if unsettled else ""
    return f"{compared} compared: {found}{rest}."
