"""A connector that was there when something was made, and is not any more: every page says so, none breaks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from drafts.models import Draft
from replicators.models import Replicator
from runners.models import Event
from runners.removal import drop_replicator
from runners.services import progress_of
from tests.app.pages import page
from tests.app.wizarding import STEPS, address, make_draft, press

pytestmark = pytest.mark.django_db
GONE = "removed_one"


@pytest.mark.parametrize("role", ["source", "target"])
def test_a_draft_whose_connector_is_gone_says_so_on_every_page(
    browser: Client, editor: Any, role: str
) -> None:
    """The look for the plugin before a page of the wizard is made."""
    draft = make_draft(editor)
    Draft.objects.filter(pk=draft.pk).update(**{f"{role}_kind": GONE})
    assert "shop to lakehouse" in page(browser, "/drafts/")
    assert "shop to lakehouse" in page(browser, "/")
    for step in STEPS:
        found = browser.get(address(draft, step))
        assert found.status_code == 409, step
        assert GONE in found.content.decode()
        assert press(browser, draft, step, "next").status_code == 409
    assert browser.get(f"/drafts/{draft.pk}/").status_code == 409
    for path in ("", "assess/", "deploy/"):
        url = f"/api/v1/drafts/{draft.pk}/{path}"
        answer = browser.post(url) if path else browser.get(url)
        assert answer.status_code in {200, 400, 409}, path


@pytest.mark.parametrize("role", ["source", "target"])
def test_a_replicator_whose_connector_is_gone_is_shown_and_deleted(
    browser: Client, replicator: Replicator, role: str
) -> None:
    """The pages' readings of a plugin that may be gone, and the end of a delete that has nobody to ask."""
    Replicator.objects.filter(pk=replicator.pk).update(**{f"{role}_kind": GONE})
    one = f"/replicators/{replicator.pk}/"
    for tab in ("", "tables/", "activity/", "logs/", "configuration/", "delete/"):
        page(browser, one + tab)
    page(browser, "/")
    assert browser.post(f"{one}duplicate/").status_code == 302
    assert browser.get(f"/api/v1/replicators/{replicator.pk}/").status_code == 200
    Replicator.objects.filter(pk=replicator.pk).update(deleting_since=timezone.now())
    progress_of(replicator)
    assert drop_replicator(replicator.pk, timezone.now() + timedelta(minutes=1))
    event = Event.objects.get(kind="replicator_deleted")
    assert bool(event.facts["statements"]) == (role == "source")
