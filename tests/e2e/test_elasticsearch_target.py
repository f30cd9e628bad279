"""MariaDB into a search index: built in the wizard. The run is killed and goes on. A document that
the cluster refuses is shown on the page, and is sent again from there."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.building import begin, choose, deploy, fill_elasticsearch, fill_source, go_on
from tests.e2e.building import test_connection as press_test
from tests.e2e.conftest import Web
from tests.e2e.local_run import running
from tests.harness import until
from tests.mysql_servers import SqlDatabase
from tests.search_server import SearchServer

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.long]
MENDED = {"properties": {"doc": {"properties": {"size": {
    "type": "long", "ignore_malformed": True}}}}}  # fmt: skip


def test_mariadb_into_an_index_from_the_wizard_to_equal_rows(
    open_page: Any,
    web: Web,
    mariadb_database: SqlDatabase,
    search_server: SearchServer,
    tmp_path: Path,
) -> None:
    """Guards the target from its form to equal rows, over a SIGKILL and a refused document."""
    run = mariadb_database.execute
    run(
        "CREATE TABLE vehicles (id bigint PRIMARY KEY, type text, doc json)",
        "INSERT INTO vehicles SELECT seq, concat('Vehicle ', seq), '{\"size\": 5}'"
        " FROM seq_1_to_500",
    )
    table = f"{mariadb_database.name}.vehicles"
    index = f"e{uuid.uuid4().hex[:8]}"
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, "to search")
    fill_source(page, mariadb_database, "mysql")
    go_on(page, "target")
    fill_elasticsearch(page, search_server.url, index)
    page.locator('[name="target.json"]').select_option("objects")
    press_test(page)
    expect(page.get_by_test_id("test-ok")).to_be_visible()
    watched.assert_accessible()
    watched.assert_fits()
    go_on(page, "tables")
    choose(page, table)
    go_on(page, "advanced")
    go_on(page, "assessment")
    expect(page.get_by_text("Ready to deploy")).to_be_visible()
    go_on(page, "summary")
    expect(page.get_by_test_id("statement-card")).to_contain_text("elasticsearch:")
    deploy(page)

    def documents() -> dict[int, str]:
        if "error" in search_server.ask("POST", f"/{index}/_refresh", must=False):
            return {}
        hits = search_server.ask("POST", f"/{index}/_search", {"size": 10_000})["hits"]["hits"]
        return {h["_source"]["id"]: h["_source"]["type"] for h in hits}

    def source(where: str = "true") -> dict[int, str]:
        return dict(run(f"SELECT id, type FROM vehicles WHERE {where}"))

    with running(web, tmp_path, "to search"):
        until(lambda: len(documents()) == 500, "the first copy is delivered")
        run("UPDATE vehicles SET type = 'changed' WHERE id <= 100")
        until(lambda: documents() == source(), "the index has the rows")
        run("UPDATE vehicles SET id = id + 1000 WHERE id > 400")
    run("DELETE FROM vehicles WHERE id = 1")
    run('UPDATE vehicles SET doc = \'{"size": "large"}\' WHERE id = 7')
    with running(web, tmp_path, "to search"):
        until(
            lambda: documents() == source("id <> 7"), "the index has the rows but the refused one"
        )
        page.get_by_role("link", name="Tables", exact=True).click()
        badge = page.locator(f'[data-table="{table}"] [data-state]')
        expect(badge).to_have_attribute("data-state", "replicating")
        page.get_by_role("link", name="1 row quarantined").click(timeout=60_000)
        expect(page.get_by_test_id("quarantined-rows")).to_contain_text("_id = 7")
        watched.assert_accessible()
        search_server.ask("PUT", f"/{index}/_mapping", MENDED)
        page.get_by_role("button", name="Send again").click()
        until(lambda: documents() == source(), "the index has the mended row too")
