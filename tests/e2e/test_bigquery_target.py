"""PostgreSQL into BigQuery is built in the wizard, runs against the emulator, is killed and goes
on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import GoogleAPICallError
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from playwright.sync_api import Page, expect

from demo.bigquery import EmbeddedBigQuery
from tests.e2e.building import begin, choose, deploy, fill_bigquery, fill_source, go_on
from tests.e2e.building import test_connection as press_test
from tests.e2e.conftest import Web
from tests.e2e.local_run import running
from tests.harness import until
from tests.servers import Database

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.long]
PROJECT = "shop-copies"
ROWS = "SELECT id, amount, note, placed_at FROM {} ORDER BY id"


@pytest.fixture
def emulator() -> Iterator[EmbeddedBigQuery]:
    with EmbeddedBigQuery() as made:
        yield made


@pytest.fixture
def reader(emulator: EmbeddedBigQuery) -> Iterator[bigquery.Client]:
    """A client, as a person would have it."""
    made = bigquery.Client(
        project=PROJECT,
        credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
        client_options={"api_endpoint": emulator.url},
    )
    yield made
    made.close()


def test_bigquery_is_chosen_in_the_wizard_and_holds_the_rows_of_the_source(
    open_page: Any,
    web: Web,
    database: Database,
    tmp_path: Path,
    emulator: EmbeddedBigQuery,
    reader: bigquery.Client,
) -> None:
    """Guards the target from the first page to a reader's rows, over a SIGKILL. And its interval:
    the wizard says BigQuery's own."""
    database.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, amount numeric(12, 2), note text,"
        " placed_at timestamptz NOT NULL DEFAULT now());"
        "INSERT INTO orders (id, amount, note)"
        " SELECT i, i / 3.0, 'row ' || i FROM generate_series(1, 500) i"
    )
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, "to BigQuery")
    fill_source(page, database)
    go_on(page, "target")
    fill_bigquery(page, PROJECT, emulator.url)
    press_test(page)
    expect(page.get_by_test_id("test-ok")).to_be_visible()
    watched.assert_accessible()
    watched.assert_fits()
    go_on(page, "tables")
    choose(page, "public.orders")
    go_on(page, "advanced")
    seconds = page.locator('[name="options.merge_seconds"]')
    expect(seconds).to_have_value("90")
    seconds.fill("1")
    go_on(page, "assessment")
    expect(page.get_by_text("Ready to deploy")).to_be_visible()
    go_on(page, "summary")
    deploy(page)

    def rows() -> list[tuple[Any, ...]]:
        try:
            found = reader.query(ROWS.format("public.orders")).result()
        except GoogleAPICallError:  # not published yet
            return []
        return [tuple(row.values()) for row in found]

    def source() -> list[tuple[Any, ...]]:
        return [tuple(row) for row in database.execute(ROWS.format("orders"))]

    with running(web, tmp_path, "to BigQuery"):
        until(lambda: rows() == source(), "the first copy is published")
        database.execute("UPDATE orders SET note = 'changed' WHERE id <= 100")
        until(lambda: rows() == source(), "the changes are merged")
        database.execute("UPDATE orders SET id = id + 1000 WHERE id > 400")
    database.execute("DELETE FROM orders WHERE id = 1")
    with running(web, tmp_path, "to BigQuery"):
        until(lambda: rows() == source(), "the rows are equal after the kill")
        page.get_by_role("link", name="Tables", exact=True).click()
        badge = page.locator('[data-table="public.orders"] [data-state]')
        expect(badge).to_have_attribute("data-state", "replicating")
        page.get_by_role("link", name="Overview", exact=True).click()
        expect(page.get_by_test_id("spending")).to_contain_text("of 100 k")
