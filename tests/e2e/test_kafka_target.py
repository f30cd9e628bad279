"""The Kafka target is built in the wizard, in Avro with a schema registry. It runs, is killed and
goes on; a consumer reads the rows by the registry's schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.building import begin, choose, deploy, fill_kafka, fill_source, go_on
from tests.e2e.building import test_connection as press_test
from tests.e2e.conftest import Web
from tests.e2e.local_run import running
from tests.harness import until
from tests.kafka_servers import KafkaBroker, SchemaRegistry, fresh_prefix
from tests.kafka_world import Told, consumed, faults
from tests.servers import Database

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.long]


def test_topics_are_chosen_in_the_wizard_and_hold_the_rows_of_the_source(
    open_page: Any,
    web: Web,
    database: Database,
    kafka: KafkaBroker,
    schema_registry: SchemaRegistry,
    tmp_path: Path,
) -> None:
    """Guards the target from the first page to a consumer's rows, over a SIGKILL."""
    database.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, note text);"
        "INSERT INTO orders SELECT i, 'row ' || i FROM generate_series(1, 500) i"
    )
    prefix = fresh_prefix()
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, "to kafka")
    fill_source(page, database)
    go_on(page, "target")
    fill_kafka(page, kafka.address, prefix, schema_registry.url)
    press_test(page)
    expect(page.get_by_test_id("test-ok")).to_be_visible()
    watched.assert_accessible()
    watched.assert_fits()
    go_on(page, "tables")
    choose(page, "public.orders")
    go_on(page, "advanced")
    go_on(page, "assessment")
    expect(page.get_by_text("Ready to deploy")).to_be_visible()
    go_on(page, "summary")
    expect(page.locator("main")).to_contain_text(kafka.address)
    deploy(page)

    def messages() -> list[Told]:
        return consumed(kafka.address, f"{prefix}public.orders")

    def rows() -> dict[int, str]:
        found: dict[int, str] = {}
        for told in sorted(
            messages(), key=lambda m: (m.headers.get("sequence", "").zfill(20), m.op)
        ):
            if told.op == "resolved":
                continue
            key = schema_registry.decoded(told.key or b"")["id"]
            if told.value is None:
                found.pop(key, None)
            else:
                found[key] = schema_registry.decoded(told.value)["note"]
        return found

    def source() -> dict[int, str]:
        return dict(database.execute("SELECT id, note FROM orders"))

    with running(web, tmp_path, "to kafka"):
        until(lambda: len(rows()) == 500, "the first copy is delivered")
        database.execute("UPDATE orders SET note = 'changed' WHERE id <= 100")
        until(lambda: rows() == source(), "messages lead to the rows")
        database.execute("UPDATE orders SET id = id + 1000 WHERE id > 400")
    database.execute("DELETE FROM orders WHERE id = 1")
    with running(web, tmp_path, "to kafka"):
        until(lambda: rows() == source(), "messages lead to the rows after the kill")
        page.get_by_role("link", name="Tables", exact=True).click()
        badge = page.locator('[data-table="public.orders"] [data-state]')
        expect(badge).to_have_attribute("data-state", "replicating")
    assert faults(messages(), may_repeat=True) == []
