"""Shows drafts beside the list of replicators."""

from __future__ import annotations

from typing import Any

from django import template

from drafts.selectors import drafts_for_list

register = template.Library()
SHOWN = 5


@register.inclusion_tag("drafts/partials/_beside.html")
def drafts_beside(is_editor: bool) -> dict[str, Any]:
    """The newest drafts; empty if there are none."""
    found = list(drafts_for_list()[: SHOWN + 1])
    return {"drafts": found[:SHOWN], "has_more": len(found) > SHOWN, "is_editor": is_editor}
