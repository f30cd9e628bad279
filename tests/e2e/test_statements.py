"""The page of statements in a browser: an example is clicked, an error points at its place, and a
statement makes a replicator that shows it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Web
from tests.servers import Database

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.long]


def test_a_statement_is_clicked_mended_and_run(
    open_page: Any, web: Web, database: Database, tmp_path: Path
) -> None:
    """Guards the page from the navigation to the copied statement."""
    database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, note text)")
    given = {k: quote(str(v), safe="") for k, v in database.params.items()}
    address = "{user}:{password}@{host}:{port}/{database}".format(**given)
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/")
    page.get_by_role("link", name="Statements", exact=True).click()
    watched.assert_accessible()
    watched.assert_fits()
    page.get_by_role("button", name="Use: What there is").click()
    text = page.get_by_label("Statement", exact=True)
    expect(text).to_have_value("SHOW CHANGEFEEDS;")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_test_id("statement-done")).to_be_visible()

    wrong = (
        f"CREATE CHANGEFEED said FOR TABLE oders\nFROM SOURCE 'postgresql://{address}'\n"
        f"INTO 'files:{tmp_path}/changes';"
    )
    text.fill(wrong)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_test_id("statement-error")).to_contain_text("Did you mean public.orders?")
    watched.assert_accessible()
    assert text.evaluate("e => e.selectionStart") == wrong.index("oders")
    text.fill(wrong.replace("oders", "orders"))
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_test_id("statement-done")).to_contain_text("said is made with 1 table")
    page.get_by_role("link", name="Open said").click()
    page.get_by_role("link", name="Configuration", exact=True).click()
    card = page.get_by_test_id("statement-card")
    expect(card).to_contain_text("CREATE CHANGEFEED said")
    expect(card.get_by_role("button", name="Copy")).to_be_visible()
    card.get_by_role("button", name="Copy").click()
    expect(page.locator("#toasts")).to_contain_text("Copied.")
