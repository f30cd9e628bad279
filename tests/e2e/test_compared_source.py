"""Files that arrive are built in the wizard, copied into Iceberg, and compared with a second
delivery."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.compared_world import Inbox, line
from tests.e2e.building import begin, choose, choose_kind, deploy, fill_target, go_on
from tests.e2e.building import test_connection as press_test
from tests.e2e.conftest import Web
from tests.e2e.local_run import PRODUCT, running
from tests.harness import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600), pytest.mark.long]
NAME = "people from files"


def _rows(folder: Path) -> set[tuple[int, str]]:
    """The target's rows, read by Iceberg's own Python reader."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.exceptions import NoSuchTableError

    catalog = SqlCatalog(
        "lakehouse", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "warehouse")
    )
    try:
        rows = catalog.load_table(("delivered", "people")).scan().to_arrow()
    except (NoSuchTableError, FileNotFoundError):
        return set()
    return set(zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True))


def test_two_deliveries_of_a_csv_file_reach_iceberg(
    open_page: Any, web: Web, tmp_path: Path
) -> None:
    """Guards the source from the first page to the rows of the target, over a SIGKILL; the page
    shows both deliveries and a refused one."""
    inbox = Inbox(tmp_path)
    inbox.deliver("2026-01-01", [line(n) for n in range(1, 6)])
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, NAME)
    choose_kind(page, "compared")
    page.locator('[name="source.files"]').fill(f"{inbox.folder}/{{delivery}}/{{table}}.csv")
    page.locator('[name="source.state"]').fill(str(inbox.state))
    page.locator('[name="source.keys"]').fill("id")
    page.locator('[name="source.settle_seconds"]').fill("0")
    press_test(page)
    expect(page.get_by_test_id("test-ok")).to_be_visible()
    watched.assert_accessible()
    watched.assert_fits()
    go_on(page, "target")
    fill_target(page, tmp_path)
    go_on(page, "tables")
    choose(page, "delivered.people")
    go_on(page, "advanced")
    go_on(page, "assessment")
    expect(page.get_by_text("Ready to deploy")).to_be_visible()
    go_on(page, "summary")
    deploy(page)
    with running(web, tmp_path, NAME, PRODUCT):
        until(lambda: len(_rows(tmp_path)) == 5, "the first delivery is copied")
    inbox.deliver("2026-01-02", [line(1), line(2, "changed"), line(3), line(4), line(9)])
    inbox.deliver("2026-01-03", [line(1)])
    expected = {(1, "as it was"), (2, "changed"), (3, "as it was"), (4, "as it was")}
    with running(web, tmp_path, NAME, PRODUCT):
        until(lambda: _rows(tmp_path) == {*expected, (9, "as it was")}, "the second is merged")
        until(lambda: page.locator("[data-delivery]").count() == 3, "the page lists all three")
        deliveries = page.get_by_test_id("deliveries")
        expect(deliveries).to_contain_text("would delete 4 of 5 rows (80 %)")
        second = page.locator('[data-delivery="2026-01-02"]')
        expect(second.locator('[data-label="Inserted"]')).to_have_text("1")
        expect(second.locator('[data-label="Updated"]')).to_have_text("1")
        expect(second.locator('[data-label="Deleted"]')).to_have_text("1")
        expect(second.locator('[data-label="Unchanged"]')).to_have_text("3")
        expect(page.get_by_test_id("next-delivery")).to_have_text("on arrival")
        watched.assert_accessible()
        watched.assert_fits()
