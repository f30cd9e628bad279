"""Reads drafts; writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from drafts.choice import by_key
from drafts.models import Draft, Listing
from replicators.services import params_shown


def drafts_for_list() -> QuerySet[Draft]:
    """Drafts that are not yet replicators, newest first."""
    return Draft.objects.filter(replicator_id=None).select_related("created_by")


def drafts_found(
    *, name: str = "", source_kind: str = "", target_kind: str = ""
) -> QuerySet[Draft]:
    """The drafts of the list that match all given conditions. `name` matches a part of the name."""
    said = {"name__icontains": name, "source_kind": source_kind, "target_kind": target_kind}
    return drafts_for_list().filter(**{k: v for k, v in said.items() if v})


@dataclass(frozen=True, slots=True)
class Stake:
    """What is lost when a draft is deleted: its tables, their rows as the source estimates them,
    and the decisions."""

    tables: int
    rows: int | None
    decisions: int
    has_secrets: bool


def draft_stake(draft: Draft) -> Stake:
    """What is lost when the draft is deleted. The rows are None if the source was not asked."""
    listing = Listing.objects.filter(draft=draft).first()
    chosen = by_key(draft.tables)
    rows = None
    if listing is not None:
        rows = sum(t[2] or 0 for t in listing.tables if (t[0], t[1]) in chosen)
    chosen_in_part = sum(
        bool(t["columns"] or t["filter"] or t["excluded"]) for t in chosen.values()
    )
    return Stake(
        tables=len(chosen),
        rows=rows,
        decisions=len(draft.accepted) + chosen_in_part,
        has_secrets=bool(draft.source_secrets or draft.target_secrets),
    )


def draft_shown(draft: Draft) -> dict[str, Any]:
    """The draft's fields for a form or REST, with secrets masked."""
    return {
        "id": str(draft.pk),
        "name": draft.name,
        "description": draft.description,
        "source_kind": draft.source_kind,
        "source_params": params_shown(draft, "source"),
        "target_kind": draft.target_kind,
        "target_params": params_shown(draft, "target"),
        "tables": draft.tables,
        "options": draft.options,
        "version": draft.version,
        "replicator_id": str(draft.replicator_id) if draft.replicator_id else None,
    }
