"""Pages that poll let themselves be led away, also by a server that takes its time."""

from __future__ import annotations

import uuid

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.e2e.conftest import Watched, Web

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180), pytest.mark.long]

_MADE = """
from tests.app.factories import make_replicator
from runners.services import replicator_delete
replicator_delete(replicator=make_replicator(), actor=None, keep_target=True)
"""
_GONE = """
from replicators.models import Replicator
from runners.supervision.removal import drop_replicator
assert drop_replicator(Replicator.objects.get().pk)
"""


def test_the_page_of_a_deleted_replicator_leads_to_a_list_that_is_slow(
    chromium: Browser, web: Web
) -> None:
    """Guards `isLeaving`: every poll's answer led to the list anew and broke off the load before
    it, so that a list that took longer than two seconds never came, and the page said "Deleting"
    for as long as the server was busy."""
    page: Page = chromium.new_context().new_page()
    watched = Watched(page, web.url)
    watched.watch()
    watched.sign_in()
    web.shell(_MADE)
    [[pk]] = web.execute("SELECT id FROM replicators_replicator")
    page.goto(f"{web.url}/replicators/{uuid.UUID(pk)}/")
    expect(page.get_by_role("heading", name="Being deleted")).to_be_visible()
    asked: list[Route] = []
    page.route(f"{web.url}/", lambda route: asked.append(route))  # noqa: PLW0108 - it takes no builtin
    polls: list[str] = []
    page.on("request", lambda r: polls.append(r.url) if "version=" in r.url else None)
    web.shell(_GONE)
    with page.expect_request(f"{web.url}/", timeout=20_000):
        pass
    before = len(polls)
    page.wait_for_timeout(5000)  # two polls would have begun
    assert (len(asked), len(polls) - before) == (1, 0)
    asked[0].continue_()
    expect(page.get_by_role("heading", name="No replicator yet")).to_be_visible()
    expect(page.get_by_test_id("toast")).to_contain_text("is deleted")
    assert watched.faults == []
