"""PostgreSQL into MariaDB: built in the wizard, where a missing right is told with its statement.
The run is killed and goes on; a table that is dropped by hand says so and is re-synced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.building import begin, choose, deploy, fill_mysql, fill_source, go_on
from tests.e2e.building import test_connection as press_test
from tests.e2e.conftest import Web
from tests.e2e.local_run import running
from tests.harness import until
from tests.mysql_servers import SqlServer, fresh_sql_database
from tests.mysql_target import USER, durable_server, plain_writer
from tests.servers import Database

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.long]


def test_postgresql_into_mariadb_from_the_wizard_to_equal_rows(
    open_page: Any, web: Web, database: Database, mariadb: SqlServer, tmp_path: Path
) -> None:
    """Guards the target from its form to equal rows: the right that is missing, the SIGKILL in the
    middle, the copy that somebody dropped."""
    database.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.orders (id bigint PRIMARY KEY, note text,"
        " price numeric(10,2)); INSERT INTO shop.orders"
        " SELECT i, 'row ' || i, i / 4.0 FROM generate_series(1, 500) i"
    )
    with durable_server(mariadb), fresh_sql_database(mariadb) as copies:
        given = plain_writer(copies)
        copies.execute(f"REVOKE INDEX ON {copies.name}.* FROM {USER}@'%'")
        watched = open_page()
        page: Page = watched.page
        watched.sign_in()
        page.goto(f"{watched.base}/replicators/new/")
        begin(page, "to mariadb")
        fill_source(page, database)
        go_on(page, "target")
        fill_mysql(page, given, database=copies.name)
        press_test(page)
        statement = f"GRANT INDEX ON {copies.name}.* TO '{USER}'@'%';"
        expect(page.get_by_test_id("test-result")).to_contain_text(statement)
        copies.execute(statement)
        press_test(page)
        expect(page.get_by_test_id("test-ok")).to_be_visible()
        watched.assert_accessible()
        go_on(page, "tables")
        choose(page, "shop.orders")
        go_on(page, "advanced")
        go_on(page, "assessment")
        expect(page.get_by_text("Ready to deploy")).to_be_visible()
        go_on(page, "summary")
        deploy(page)

        def is_equal() -> bool:
            found = copies.execute("SHOW TABLES LIKE 'orders'")
            text = "SELECT id, note, price FROM {}orders ORDER BY id"
            return bool(found) and list(copies.execute(text.format(""))) == database.execute(
                text.format("shop.")
            )

        with running(web, tmp_path, "to mariadb"):
            until(is_equal, "the first copy is there")
            database.execute("UPDATE shop.orders SET note = 'changed' WHERE id <= 100")
            until(is_equal, "the changes are there")
            database.execute("UPDATE shop.orders SET id = id + 1000 WHERE id > 400")
        database.execute("DELETE FROM shop.orders WHERE id = 1")
        with running(web, tmp_path, "to mariadb"):
            until(is_equal, "the copy equals the source after the kill")
            copies.execute("DROP TABLE orders")
            database.execute("DELETE FROM shop.orders WHERE id = 2")
            page.get_by_role("link", name="Tables", exact=True).click()
            expect(page.locator("tr.detail")).to_contain_text("Target table gone")
            watched.assert_accessible()
            page.get_by_label("Actions on shop.orders").click()
            page.get_by_role("link", name="Re-sync table…").first.click()
            page.get_by_role("button", name="Re-sync table").click()
            until(is_equal, "the copy is there again")
