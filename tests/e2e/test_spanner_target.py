"""PostgreSQL into Spanner is built in the wizard, runs against the tests' server, is killed and
goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.building import begin, choose, deploy, fill_kind, fill_source, go_on
from tests.e2e.building import test_connection as press_test
from tests.e2e.conftest import Web
from tests.e2e.local_run import running
from tests.harness import until
from tests.servers import Database
from tests.spanner_server import SpannerServer
from tests.spanner_target import params_of

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.long]


def test_postgresql_into_spanner_from_the_wizard_to_equal_rows(
    open_page: Any, web: Web, database: Database, spanner: SpannerServer, tmp_path: Path
) -> None:
    """Guards the target from its form to a reader's rows: a database that is missing, the
    SIGKILL."""
    database.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.orders (id bigint PRIMARY KEY, note text);"
        " INSERT INTO shop.orders SELECT i, 'row ' || i FROM generate_series(1, 500) i"
    )
    given = params_of(spanner, "wizard")
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, "to Spanner")
    fill_source(page, database)
    go_on(page, "target")
    fill_kind(page, "spanner", {**given, "database": "nowhere"})
    expect(page.get_by_text("it was not tested on the real service").first).to_be_visible()
    press_test(page)
    expect(page.get_by_test_id("test-result")).to_contain_text("No such database")
    page.locator('[name="target.database"]').fill(given["database"])
    press_test(page)
    expect(page.get_by_test_id("test-ok")).to_be_visible()
    watched.assert_accessible()
    go_on(page, "tables")
    choose(page, "shop.orders")
    go_on(page, "advanced")
    page.locator('[name="options.merge_seconds"]').fill("1")
    go_on(page, "assessment")
    expect(page.get_by_text("Ready to deploy")).to_be_visible()
    go_on(page, "summary")
    deploy(page)

    def is_equal() -> bool:
        if "orders" not in spanner.database("wizard").tables:
            return False
        found = sorted((r["id"], r["note"]) for r in spanner.rows("wizard", "orders"))
        return found == database.execute("SELECT id, note FROM shop.orders ORDER BY id")

    with running(web, tmp_path, "to Spanner"):
        until(is_equal, "the first copy is there")
        database.execute("UPDATE shop.orders SET note = 'changed' WHERE id <= 100")
        until(is_equal, "the changes are there")
        database.execute("UPDATE shop.orders SET id = id + 1000 WHERE id > 400")
    database.execute("DELETE FROM shop.orders WHERE id = 1")
    with running(web, tmp_path, "to Spanner"):
        until(is_equal, "the copy equals the source after the kill")
