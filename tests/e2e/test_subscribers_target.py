"""The subscribers target is built in the wizard; a subscriber is registered on the page, and the
page shows the changes as they come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.building import begin, choose, deploy, fill_source, fill_subscribers, go_on
from tests.e2e.building import test_connection as press_test
from tests.e2e.conftest import Web
from tests.e2e.local_run import running
from tests.servers import Database

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.long]


def test_a_subscriber_is_registered_and_changes_are_seen_live(
    open_page: Any, web: Web, database: Database, tmp_path: Path
) -> None:
    """Guards the target from the first page to the changes that the page shows as they come."""
    database.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, note text);"
        "INSERT INTO orders SELECT i, 'row ' || i FROM generate_series(1, 50) i"
    )
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, "to subscribers")
    fill_source(page, database)
    go_on(page, "target")
    fill_subscribers(page, tmp_path)
    press_test(page)
    expect(page.get_by_test_id("test-ok")).to_be_visible()
    go_on(page, "tables")
    choose(page, "public.orders")
    go_on(page, "advanced")
    go_on(page, "assessment")
    expect(page.get_by_text("Ready to deploy")).to_be_visible()
    go_on(page, "summary")
    deploy(page)

    with running(web, tmp_path, "to subscribers"):
        page.get_by_role("link", name="Tables", exact=True).click()
        badge = page.locator('[data-table="public.orders"] [data-state]')
        expect(badge).to_have_attribute("data-state", "replicating", timeout=90_000)
        page.get_by_role("link", name="Subscribers", exact=True).click()
        expect(page.get_by_text("No subscriber yet")).to_be_visible()
        page.get_by_role("link", name="Register…").click()
        page.get_by_label("Name", exact=True).fill("search")
        page.get_by_role("button", name="Register").click()
        expect(page.locator('[data-subscriber="search"]')).to_be_visible()
        database.execute("UPDATE orders SET note = 'seen live' WHERE id = 7")
        changes = page.get_by_test_id("last-changes")
        expect(changes).to_contain_text("seen live", timeout=60_000)
        expect(page.locator('[data-subscriber="search"]')).to_contain_text("1")
        watched.assert_accessible()
        watched.assert_fits()
        page.set_viewport_size({"width": 400, "height": 860})
        watched.assert_fits()
