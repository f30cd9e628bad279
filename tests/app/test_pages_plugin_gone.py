"""A connector that was there when something was made, and is not any more: every page says so, none
breaks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from drafts.models import Draft
from replicators.models import Replicator
from runners.models import Event
from runners.services import progress_of
from runners.supervision.removal import drop_replicator
from tests.app.pages import htmx, page
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
    """The pages' readings of a plugin that may be gone, and the end of a delete that has nobody to
    ask."""
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


TABLE = {"schema": "shop", "table": "orders"}
NEW = {"schema": "shop", "table": "places"}


@pytest.mark.parametrize("role", ["source", "target"])
def test_actions_that_need_a_connector_that_is_gone_are_refused_in_words(
    browser: Client, replicator: Replicator, role: str
) -> None:
    """Guards the pages of a table: adding, choosing and rewinding ask a plugin that nobody has, and
    none may end in a 500."""
    Replicator.objects.filter(pk=replicator.pk).update(**{f"{role}_kind": GONE})
    one = f"/replicators/{replicator.pk}/tables/"
    query = f"?{urlencode(TABLE)}"
    added = browser.post(f"{one}add/", NEW)
    partly = browser.post(f"{one}add/", NEW, headers=htmx(one))
    chosen = browser.get(f"{one}columns/{query}"), browser.post(f"{one}columns/", TABLE)
    for response, status in ((added, 409), (partly, 409), (chosen[0], 502), (chosen[1], 502)):
        assert response.status_code == status
        assert f"There is no {role} of kind" in response.content.decode()
    if role == "target":
        for headers in ({}, htmx(one)):
            assert browser.get(f"{one}rewind/{query}", headers=headers).status_code == 409


def test_actions_that_need_secrets_of_a_lost_key_are_refused_in_words(
    browser: Client, replicator: Replicator, settings: Any
) -> None:
    """Guards the same where the passwords can't be read any more."""
    settings.REPLICATOR_SECRET_KEY = "another"
    one = f"/replicators/{replicator.pk}/"
    added = browser.post(f"{one}tables/add/", NEW)
    assert added.status_code == 409 and "encrypted with another key" in added.content.decode()
    made = browser.post(f"{one}duplicate/", follow=True)
    assert made.redirect_chain == [(one, 302)] and not Draft.objects.exists()
    assert "encrypted with another key" in made.content.decode()
