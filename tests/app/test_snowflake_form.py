"""The Snowflake target in the wizard: what it says of itself, its secrets, and its own interval."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from drafts.models import Draft
from tests.app.pages import page
from tests.app.wizarding import address, make_draft, press

pytestmark = pytest.mark.django_db
GIVEN = {
    "account": "myorg-main", "user": "REPLICATOR", "database": "REPLICAS",
    "warehouse": "REPLICATION", "password": "very-secret-1",
}  # fmt: skip


def saved(browser: Client, draft: Draft, **changes: str) -> str:
    """Save the form of the target; the page."""
    form = {f"target.{n}": v for n, v in {**GIVEN, **changes}.items()}
    answer = press(browser, draft, "target", "next", target_kind="snowflake", **form)
    draft.refresh_from_db()
    return str(answer.content.decode())


def test_the_form_says_what_it_was_tested_against(browser: Client, editor: Any) -> None:
    """Guards the sentence that keeps people from trusting what nobody saw."""
    html = page(browser, address(make_draft(editor), "target"))
    assert "never seen on the real service" in html


def test_a_draft_keeps_its_secrets_to_itself(browser: Client, editor: Any) -> None:
    draft = make_draft(editor)
    saved(browser, draft)
    assert draft.target_kind == "snowflake"
    assert draft.target_params["warehouse"] == "REPLICATION"
    html = page(browser, address(draft, "target"))
    assert "very-secret-1" not in html and "REPLICATION" in html


def test_an_account_with_a_host_name_and_a_wrong_key_are_told(browser: Client, editor: Any) -> None:
    draft = make_draft(editor)
    assert "without a host name" in saved(browser, draft, account="https://x.example/")
    assert "PEM form" in saved(browser, draft, private_key="ssh-rsa AAAA")
