"""The Redshift target in the wizard: what it says of itself, its secrets, and faults of fields."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from drafts.models import Draft
from tests.app.pages import page
from tests.app.wizarding import address, make_draft, press

pytestmark = pytest.mark.django_db
GIVEN = {
    "host": "x.redshift.amazonaws.com", "database": "replicas", "user": "replicator",
    "staging": "s3://bucket/staging", "password": "very-secret-1", "s3_access_key": "AKIA",
    "s3_secret_key": "very-secret-2",
}  # fmt: skip


def saved(browser: Client, draft: Draft, **changes: str) -> str:
    """Save the form of the target; the page."""
    form = {f"target.{n}": v for n, v in {**GIVEN, **changes}.items()}
    answer = press(browser, draft, "target", "next", target_kind="redshift", **form)
    draft.refresh_from_db()
    return str(answer.content.decode())


def test_the_form_says_what_it_was_tested_against(browser: Client, editor: Any) -> None:
    """Guards the sentence that keeps people from trusting what nobody saw."""
    html = page(browser, address(make_draft(editor), "target"))
    assert "plays Redshift and an S3 server only, and never seen on the real service" in html


def test_a_draft_keeps_its_secrets_to_itself(browser: Client, editor: Any) -> None:
    draft = make_draft(editor)
    saved(browser, draft)
    assert draft.target_kind == "redshift"
    assert draft.target_params["staging"] == "s3://bucket/staging"
    html = page(browser, address(draft, "target"))
    assert "very-secret" not in html and "s3://bucket/staging" in html


def test_a_folder_that_is_no_bucket_and_a_wrong_role_are_told(browser: Client, editor: Any) -> None:
    draft = make_draft(editor)
    assert "must be a folder in a bucket of S3" in saved(browser, draft, staging="/data")
    assert "arn:aws:iam::123456789012:role/name" in saved(browser, draft, role="reader")
    wanted = "give an IAM role or the S3 keys"
    assert wanted in saved(browser, draft, s3_access_key="", s3_secret_key="")
