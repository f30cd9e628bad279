"""The files target is built in the wizard, runs, is killed and goes on.

Its closed buckets lead to the rows of the source.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests import replayed
from tests.e2e.building import begin, choose, deploy, fill_files, fill_source, go_on
from tests.e2e.building import test_connection as press_test
from tests.e2e.conftest import Web
from tests.e2e.local_run import running
from tests.harness import until
from tests.servers import Database

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.long]


def test_files_are_chosen_in_the_wizard_and_hold_the_rows_of_the_source(
    open_page: Any, web: Web, database: Database, tmp_path: Path
) -> None:
    """Guards the target from the first page to a loader's rows, over a SIGKILL."""
    database.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, note text);"
        "INSERT INTO orders SELECT i, 'row ' || i FROM generate_series(1, 500) i"
    )
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, "to files")
    fill_source(page, database)
    go_on(page, "target")
    fill_files(page, tmp_path)
    press_test(page)
    expect(page.get_by_test_id("test-ok")).to_be_visible()
    watched.assert_accessible()
    go_on(page, "tables")
    choose(page, "public.orders")
    go_on(page, "advanced")
    go_on(page, "assessment")
    expect(page.get_by_text("Ready to deploy")).to_be_visible()
    go_on(page, "summary")
    expect(page.locator("main")).to_contain_text(str(tmp_path / "changes"))
    deploy(page)

    table = tmp_path / "changes" / "public.orders"

    def rows() -> set[tuple[Any, ...]]:
        found = replayed.generations(table)
        return {(r["id"], r["note"]) for r in replayed.rows(found[-1])} if found else set()

    def source() -> set[tuple[Any, ...]]:
        return set(database.execute("SELECT id, note FROM orders"))

    with running(web, tmp_path, "to files"):
        until(lambda: len(list(table.rglob("*.parquet"))) > 0, "the first copy is delivered")
        database.execute("UPDATE orders SET note = 'changed' WHERE id <= 100")
        until(lambda: rows() == source(), "closed buckets hold the rows")
        database.execute("UPDATE orders SET id = id + 1000 WHERE id > 400")
    database.execute("DELETE FROM orders WHERE id = 1")
    with running(web, tmp_path, "to files"):
        until(lambda: rows() == source(), "closed buckets hold the rows after the kill")
        page.get_by_role("link", name="Tables", exact=True).click()
        badge = page.locator('[data-table="public.orders"] [data-state]')
        expect(badge).to_have_attribute("data-state", "replicating")
