"""The Spanner target in the wizard: what it says of itself, its secret, and faults of fields."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from drafts.models import Draft
from tests.app.pages import page
from tests.app.wizarding import address, make_draft, press

pytestmark = pytest.mark.django_db
KEY = json.dumps(
    {
        "type": "service_account",
        "client_email": "a@b.iam.gserviceaccount.com",
        "private_key": "very-secret",
        "token_uri": "https://oauth2.googleapis.com/token",
    }
)


def saved(browser: Client, draft: Draft, **changes: str) -> str:
    """Save the form of the target; the page."""
    given = {"project": "my-project", "instance": "main", "database": "copies", **changes}
    form = {f"target.{n}": v for n, v in given.items()}
    answer = press(browser, draft, "target", "next", target_kind="spanner", **form)
    draft.refresh_from_db()
    return str(answer.content.decode())


def test_the_form_says_what_it_was_tested_against(browser: Client, editor: Any) -> None:
    """Guards the sentence that keeps people from trusting what nobody saw."""
    html = page(browser, address(make_draft(editor), "target"))
    assert "protocol&#x27;s messages only: it was not tested on the real service" in html


def test_a_draft_keeps_its_secret_to_itself_and_faults_are_told(
    browser: Client, editor: Any
) -> None:
    draft = make_draft(editor)
    saved(browser, draft, credentials=KEY, table_names="{schema}_{table}")
    assert draft.target_kind == "spanner"
    assert draft.target_params["table_names"] == "{schema}_{table}"
    assert "very-secret" not in page(browser, address(draft, "target"))
    assert "must have {table}" in saved(browser, draft, table_names="{schema}")
    assert "must be an instance id" in saved(browser, draft, instance="Main!")
