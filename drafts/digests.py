"""Short digests of a draft's contents. They show that an earlier answer is older than an edit. They
are keyed, so that nobody can guess secrets from them."""

from __future__ import annotations

import json
from typing import Any

from django.utils.crypto import salted_hmac

from drafts.models import Draft
from replicators.models import Replicator
from replicators.options import Options
from replicators.services import params_of


def _digest(*values: Any) -> str:
    text = json.dumps(values, sort_keys=True, default=str)
    return salted_hmac("drafts.digests", text, algorithm="sha256").hexdigest()


def source_digest(draft: Draft | Replicator) -> str:
    """The digest of the source."""
    return _digest(draft.source_kind, params_of(draft, "source"))


def assessed_digest(draft: Draft) -> str:
    """The digest of everything that an assessment looks at."""
    options = Options.readable(draft.options)
    return _digest(
        draft.source_kind,
        params_of(draft, "source"),
        draft.target_kind,
        params_of(draft, "target"),
        sorted(
            [
                t["schema"],
                t["name"],
                sorted(t.get("columns") or ()),
                sorted(t.get("excluded") or ()),
                *(t.get(name) or "" for name in ("mode", "filter", "unsupported")),
            ]
            for t in draft.tables
        ),
        options.mode,
        options.unsupported_values,
    )
