"""PostgreSQL into Redshift is built in the wizard, runs against a server that plays it, is killed
and goes on."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from replicators.targets.redshift.connection import connect
from replicators.targets.redshift.params import RedshiftParams
from tests.e2e.building import begin, choose, deploy, fill_kind, fill_source, go_on
from tests.e2e.building import test_connection as press_test
from tests.e2e.conftest import Web
from tests.e2e.local_run import running
from tests.harness import until
from tests.redshift_server import LOADER, RedshiftServer, fresh_redshift_database
from tests.redshift_target import params_of
from tests.servers import Database

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.long]
ROWS = "SELECT id, note, price FROM shop.orders ORDER BY id"


def test_postgresql_into_redshift_from_the_wizard_to_equal_rows(
    open_page: Any, web: Web, database: Database, redshift: RedshiftServer, tmp_path: Path
) -> None:
    """Guards the target from its form to a reader's rows: a login that is refused, the SIGKILL."""
    database.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.orders (id bigint PRIMARY KEY, note text,"
        " price numeric(10,2)); INSERT INTO shop.orders"
        " SELECT i, 'row ' || i, i / 4.0 FROM generate_series(1, 500) i"
    )
    with fresh_redshift_database(redshift) as copies:
        given = params_of(redshift, copies, LOADER)
        params = RedshiftParams(**given)
        watched = open_page()
        page: Page = watched.page
        watched.sign_in()
        page.goto(f"{watched.base}/replicators/new/")
        begin(page, "to Redshift")
        fill_source(page, database)
        go_on(page, "target")
        texts = {n: str(v) for n, v in given.items() if n != "sslmode"}
        fill_kind(page, "redshift", {**texts, "password": "wrong"})
        page.locator('[name="target.sslmode"]').select_option(given["sslmode"])
        expect(page.get_by_text("never seen on the real service").first).to_be_visible()
        press_test(page)
        expect(page.get_by_test_id("test-result")).to_contain_text("Login refused")
        page.locator('[name="target.password"]').fill(given["password"])
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
            if not copies.execute("SELECT to_regclass('shop.orders') IS NOT NULL")[0][0]:
                return False
            with closing(connect(params)) as reader:
                found = reader.execute(ROWS.encode()).fetchall()
            return [tuple(row) for row in found] == database.execute(ROWS)

        with running(web, tmp_path, "to Redshift"):
            until(is_equal, "the first copy is there")
            database.execute("UPDATE shop.orders SET note = 'changed' WHERE id <= 100")
            until(is_equal, "the changes are there")
            database.execute("UPDATE shop.orders SET id = id + 1000 WHERE id > 400")
        database.execute("DELETE FROM shop.orders WHERE id = 1")
        with running(web, tmp_path, "to Redshift"):
            until(is_equal, "the copy equals the source after the kill")
