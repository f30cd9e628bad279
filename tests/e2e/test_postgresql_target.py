"""MariaDB into PostgreSQL: built in the wizard, where a missing right is told with its statement.
The run is killed and goes on; a table that is dropped by hand says so and is re-synced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.building import begin, choose, deploy, fill_postgresql, fill_source, go_on
from tests.e2e.building import test_connection as press_test
from tests.e2e.conftest import Web
from tests.e2e.local_run import running
from tests.harness import until
from tests.mysql_servers import SqlServer, fresh_sql_database
from tests.postgres_target import ROLE, writer_params
from tests.servers import Database

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.long]


def test_mariadb_into_postgresql_from_the_wizard_to_equal_rows(
    open_page: Any, web: Web, database: Database, mariadb: SqlServer, tmp_path: Path
) -> None:
    """Guards the target from its form to equal rows: the right that is missing, the SIGKILL in the
    middle, the copy that somebody dropped."""
    writer_params(database)
    database.execute(f"REVOKE CREATE ON DATABASE {database.name} FROM {ROLE}")
    with fresh_sql_database(mariadb) as shop:
        shop.execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY, note text, price decimal(10,2))",
            "INSERT INTO orders SELECT seq, concat('row ', seq), seq / 4 FROM seq_1_to_500",
        )
        watched = open_page()
        page: Page = watched.page
        watched.sign_in()
        page.goto(f"{watched.base}/replicators/new/")
        begin(page, "to postgres")
        fill_source(page, shop, "mysql")
        go_on(page, "target")
        fill_postgresql(page, database, user=ROLE)
        press_test(page)
        expect(page.get_by_test_id("test-ok")).to_be_visible()
        watched.assert_accessible()
        go_on(page, "tables")
        choose(page, f"{shop.name}.orders")
        go_on(page, "advanced")
        go_on(page, "assessment")
        statement = f'GRANT CREATE ON DATABASE "{database.name}" TO "{ROLE}";'
        expect(page.locator("main")).to_contain_text(statement)
        watched.assert_accessible()
        database.execute(statement)
        page.get_by_role("button", name="Run again").click()
        expect(page.get_by_text("Ready to deploy")).to_be_visible()
        go_on(page, "summary")
        expect(page.locator("main")).to_contain_text(database.name)
        deploy(page)

        copy = f'"{shop.name}".orders'

        def is_equal() -> bool:
            found = database.execute("SELECT to_regclass(%s) IS NOT NULL", [copy])
            return bool(found[0][0]) and database.execute(
                f"SELECT id, note, price FROM {copy} ORDER BY id"
            ) == list(shop.execute("SELECT id, note, price FROM orders ORDER BY id"))

        with running(web, tmp_path, "to postgres"):
            until(is_equal, "the first copy is there")
            shop.execute("UPDATE orders SET note = 'changed' WHERE id <= 100")
            until(is_equal, "the changes are there")
            shop.execute("UPDATE orders SET id = id + 1000 WHERE id > 400")
        shop.execute("DELETE FROM orders WHERE id = 1")
        with running(web, tmp_path, "to postgres"):
            until(is_equal, "the copy equals the source after the kill")
            database.execute(f"DROP TABLE {copy}")
            shop.execute("DELETE FROM orders WHERE id = 2")
            page.get_by_role("link", name="Tables", exact=True).click()
            expect(page.locator("tr.detail")).to_contain_text("Target table gone")
            watched.assert_accessible()
            page.get_by_label(f"Actions on {shop.name}.orders").click()
            page.get_by_role("link", name="Re-sync table…").first.click()
            page.get_by_role("button", name="Re-sync table").click()
            until(is_equal, "the copy is there again")
