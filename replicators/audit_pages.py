"""The page of the audit trail, for administrators and for whoever was given the right to see it."""

from __future__ import annotations

from dataclasses import asdict
from urllib.parse import urlencode

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from replicators.audit_reading import ACTIONS, KINDS, Asked, action_label, entries_before
from replicators.pages import is_partial, render_page
from replicators.permissions import AUDIT

ENTRIES = 100
_FILTERS = ("actor", "act", "kind", "object", "since", "until")


@never_cache
@require_GET
@permission_required(AUDIT, raise_exception=True)
def audit(request: HttpRequest) -> HttpResponse:
    """The newest rows that match; with `before`, those ahead of that cursor."""
    asked, raw = Asked.of(request.GET), request.GET.get("before", "")
    before = int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 19 else 0
    rows = entries_before(asked, before, ENTRIES)
    typed = {name: request.GET.get(name, "") for name in _FILTERS}
    context = {
        "section": "audit",
        "entries": rows,
        "before": rows[-1].pk if len(rows) == ENTRIES else 0,
        "is_earlier": bool(before),
        "asked": typed,
        "is_filtered": any(asdict(asked).values()),
        "query": urlencode({name: value for name, value in typed.items() if value}),
        "actions": [(act, action_label(act)) for act in ACTIONS],
        "kinds": [(kind, kind.capitalize()) for kind in KINDS],
    }
    is_more = bool(before) and is_partial(request)
    panel = (
        "replicators/partials/_audit_lines.html" if is_more else "replicators/partials/_audit.html"
    )
    return render_page(request, "replicators/audit.html", panel, context)
