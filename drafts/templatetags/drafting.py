"""Shows drafts beside the list of replicators."""

from __future__ import annotations

from typing import Any

from django import template
from django.contrib.auth.models import AnonymousUser, User

from drafts.selectors import drafts_for_list
from replicators.permissions import changeable

register = template.Library()
SHOWN = 5


@register.inclusion_tag("drafts/partials/_beside.html")
def drafts_beside(user: User | AnonymousUser) -> dict[str, Any]:
    """The newest drafts; empty if there are none."""
    found = list(drafts_for_list()[: SHOWN + 1])
    shown = found[:SHOWN]
    return {
        "drafts": shown,
        "has_more": len(found) > SHOWN,
        "changeable": changeable(user, shown),
    }
