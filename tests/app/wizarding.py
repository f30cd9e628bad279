"""Plain functions that drive the wizard's pages as a browser without JavaScript, or as HTMX."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from drafts.models import Draft
from drafts.services import draft_create
from tests.app.factories import config_fields

HTMX = {"HX-Request": "true"}
STEPS = ("name", "source", "target", "tables", "advanced", "assessment", "summary")


def make_draft(editor: Any, **changes: Any) -> Draft:
    """A draft of the in-memory pair that could be deployed."""
    return draft_create(actor=editor, **config_fields(**changes))


def address(draft: Draft, step: str) -> str:
    """A page of the wizard."""
    return f"/drafts/{draft.pk}/{step}/"


def press(
    client: Client, draft: Draft, step: str, act: str, htmx: bool = False, **form: Any
) -> Any:
    """Press a button of a page; the version is the draft's newest unless `form` says another."""
    data = {"version": Draft.objects.get(pk=draft.pk).version, "act": act, **form}
    headers = HTMX if htmx else {}
    return client.post(address(draft, step), data, headers=headers)


def connector(role: str, **values: Any) -> dict[str, Any]:
    """What the form of a connector of the in-memory pair sends."""
    given = {"host": "db.example", "port": "1"} if role == "source" else {"namespace": "shop"}
    given = {"fault": "none", **given, **values}
    return {f"{role}_kind": "memory", **{f"{role}.{k}": v for k, v in given.items()}}


def packed(*names: str) -> list[str]:
    """Tables of the schema `shop` as the boxes send them."""
    return [json.dumps(["shop", name]) for name in names]


def ticked(*names: str, shown: tuple[str, ...] = (), **without: tuple[str, ...]) -> dict[str, Any]:
    """What a page of the list sends with these tables ticked; `without` names tables that leave a
    kind out."""
    shown = shown or ("customers", "orders", "page_views", "places")
    return {
        "shown": packed(*shown),
        "tables": packed(*names),
        **{
            kind: packed(*(n for n in shown if n not in without.get(kind, ())))
            for kind in ("inserts", "updates", "deletes")
        },
    }
