"""Reads drafts; writes nothing."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from drafts.models import Draft
from replicators.services import params_shown


def drafts_for_list() -> QuerySet[Draft]:
    """Drafts that did not become replicators yet, newest first."""
    return Draft.objects.filter(replicator_id=None).select_related("created_by")


def drafts_found(
    *, name: str = "", source_kind: str = "", target_kind: str = ""
) -> QuerySet[Draft]:
    """The drafts of the list that fit all that is said; `name` is a part of it."""
    said = {"name__icontains": name, "source_kind": source_kind, "target_kind": target_kind}
    return drafts_for_list().filter(**{k: v for k, v in said.items() if v})


def draft_shown(draft: Draft) -> dict[str, Any]:
    """The draft's fields as a form or REST shows them: secrets masked."""
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
