"""PostgreSQL into Snowflake is built in the wizard, runs against the emulator, is killed and goes
on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from replicators.targets.snowflake.naming import quoted
from replicators.targets.snowflake.params import SnowflakeParams
from tests.e2e.building import begin, choose, deploy, fill_kind, fill_source, go_on
from tests.e2e.building import test_connection as press_test
from tests.e2e.conftest import Web
from tests.e2e.local_run import running
from tests.harness import until
from tests.servers import Database
from tests.snowflake_server import SnowflakeServer
from tests.snowflake_target import asked, params_of

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.long]


def test_postgresql_into_snowflake_from_the_wizard_to_equal_rows(
    open_page: Any, web: Web, database: Database, snowflake: SnowflakeServer, tmp_path: Path
) -> None:
    """Guards the target from its form to a reader's rows: a login that is refused, the SIGKILL."""
    database.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.orders (id bigint PRIMARY KEY, note text,"
        " price numeric(10,2)); INSERT INTO shop.orders"
        " SELECT i, 'row ' || i, i / 4.0 FROM generate_series(1, 500) i"
    )
    given = params_of(snowflake, "WIZARD")
    params = SnowflakeParams(**given)
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, "to Snowflake")
    fill_source(page, database)
    go_on(page, "target")
    texts = {n: v for n, v in given.items() if isinstance(v, str)}
    fill_kind(page, "snowflake", {**texts, "password": "wrong"})
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
        schema = quoted(("WIZARD", "shop"))
        if not any(
            r["name"] == "orders" for r in asked(params, f"SHOW OBJECTS IN SCHEMA {schema}")
        ):
            return False
        found = asked(params, f'SELECT "id", "note", "price" FROM {schema}."orders" ORDER BY "id"')
        wanted = database.execute("SELECT id, note, price FROM shop.orders ORDER BY id")
        return [tuple(r.values()) for r in found] == wanted

    with running(web, tmp_path, "to Snowflake"):
        until(is_equal, "the first copy is there")
        database.execute("UPDATE shop.orders SET note = 'changed' WHERE id <= 100")
        until(is_equal, "the changes are there")
        database.execute("UPDATE shop.orders SET id = id + 1000 WHERE id > 400")
    database.execute("DELETE FROM shop.orders WHERE id = 1")
    with running(web, tmp_path, "to Snowflake"):
        until(is_equal, "the copy equals the source after the kill")
