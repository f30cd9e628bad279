"""A person's journey in Chromium against a real PostgreSQL: make a replicator, watch it, act on it,
delete it."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e import building
from tests.e2e.building import begin, build, fill_source, fill_target, go_on
from tests.e2e.conftest import LOOKS, Web
from tests.servers import Database

pytestmark = [pytest.mark.e2e, pytest.mark.integration]


def test_a_replicator_is_made_watched_and_deleted(
    open_page: Any, web: Web, database: Database, tmp_path: Path
) -> None:
    database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, note text)")
    database.execute("CREATE TABLE customers (id bigint PRIMARY KEY)")
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    watched.assert_accessible()
    _nobody_works(page, web)
    page.get_by_test_id("empty").get_by_role("link", name="New replicator").click()

    build(page, database, tmp_path, "by hand", "public.orders")
    building.deploy(page)

    page.get_by_role("link", name="Tables", exact=True).click()
    row = page.locator('[data-table="public.orders"]')
    expect(row.locator("[data-state]")).to_have_attribute("data-state", "waiting")
    _watch_states(page, web)
    watched.assert_accessible()
    _action(page, web)
    _add_table(watched)

    page.get_by_role("link", name="Logs", exact=True).click()
    _follow_log(page, web)
    watched.assert_accessible()
    page.get_by_role("link", name="Tables", exact=True).click()
    page.locator("#act-more").click()
    page.get_by_role("link", name="Delete…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("the replication slot replicator_")
    watched.assert_accessible()
    dialog.get_by_role("button", name="Delete replicator").click()
    expect(page.locator('[data-state="deleting"]')).to_be_visible()
    _source_stays_away(page, web)
    watched.assert_accessible()
    watched.assert_fits()


def _nobody_works(page: Page, web: Web) -> None:
    """The banner says which part to start, and is gone when all of them answer."""
    banner = page.get_by_test_id("banner")
    expect(banner).to_contain_text("The broker at 127.0.0.1:9 doesn't answer")
    expect(banner).to_contain_text("make dev")
    web.execute("INSERT INTO runners_sign (name, at) VALUES ('reconcile', datetime('now'))")
    page.reload()
    expect(page.get_by_test_id("empty")).to_be_visible()
    expect(banner).to_have_count(0)


def _source_stays_away(page: Page, web: Web) -> None:
    """A delete whose source can't be reached ends with the statements to run there, on the page
    that waits for it."""
    web.execute(
        "UPDATE replicators_replicator SET source_params = json_set(source_params, '$.port', 9)"
    )
    [[pk]] = web.execute(_ALL)
    web.shell(_TRY_ONCE.format(pk=pk))
    expect(page.get_by_text("The source could not be reached (1 try of 5)")).to_be_visible()
    web.shell(_TRY_ON.format(pk=pk))
    statements = page.get_by_test_id("statements")
    expect(statements).to_contain_text(f"pg_drop_replication_slot('replicator_{pk}")
    expect(statements).to_contain_text(f'DROP PUBLICATION IF EXISTS "replicator_{pk}_full"')
    expect(page.get_by_role("alert")).to_contain_text("Run this at the source")


_TRY_ONCE = """
from django.utils import timezone
from runners.supervision.removal import drop_replicator
drop_replicator("{pk}", timezone.now())
"""
_TRY_ON = """
from datetime import timedelta
from django.utils import timezone
from runners.supervision.removal import drop_replicator
for day in range(1, 9):
    drop_replicator("{pk}", timezone.now() + timedelta(days=day))
"""


def _watch_states(page: Page, web: Web) -> None:
    """What a run writes shows by itself, without loading the page."""
    badge = page.locator('[data-table="public.orders"] [data-state]')
    web.shell(_RUNS)
    web.execute(_COPIED.format(seconds=20, rows=22))
    web.execute(
        "UPDATE runners_table SET state='snapshotting', rows_snapshotted=42, rows_total=100"
    )
    expect(badge).to_have_attribute("data-state", "snapshotting")
    expect(page.locator("progress")).to_have_attribute("value", "42")
    copying = page.locator('[data-table="public.orders"]')
    reported = re.compile(r"42 of about 100 rows · 42 % · [\d.]+\s+rows/s · about .+ left")
    expect(copying).to_contain_text(reported)
    web.execute("DELETE FROM runners_run")
    web.execute(
        "UPDATE runners_table SET state='failing', error_code='target:table-replaced', "
        "error_since='2026-01-01 00:00:00'"
    )
    expect(badge).to_have_attribute("data-state", "failing")
    expect(page.get_by_test_id("problem")).to_contain_text("What to do")


_RUNS = """
from replicators.models import Replicator
from tests.app.pages import make_live
make_live(Replicator.objects.get())
"""
_COPIED = """
INSERT INTO runners_tablemetric
    (table_id, at, resolution_seconds, rows_snapshotted, inserts, updates, deletes, backlog_bytes)
SELECT id, datetime('now', '-{seconds} seconds'), 10, {rows}, 0, 0, 0, 0 FROM runners_table
"""


def _action(page: Page, web: Web) -> None:
    # An action that takes longer than the next refresh: its answer still reaches the page.
    held: list[Any] = []
    page.route("**/retry/", lambda route: held.append(route))
    with page.expect_response(lambda r: "version=" in r.url and r.status == 200):
        page.get_by_role("button", name="Retry now").click()
        web.execute("UPDATE runners_table SET inserts = inserts + 1")
    held[0].continue_()
    expect(page.get_by_test_id("toast").last).to_contain_text("is tried again now")
    page.unroute("**/retry/")
    # A refresh that was asked before an action and is answered after it does nothing any more.
    late: list[Any] = []
    refresh = re.compile(r"/tables/\?.*version=")
    page.route(refresh, lambda route: route.continue_() if late else late.append(route))
    with page.expect_request(refresh):
        web.execute("UPDATE runners_table SET inserts = inserts + 1")
    panel = page.locator("#replicator-body").element_handle()
    page.get_by_role("button", name="Retry now").click()
    page.wait_for_function("panel => !panel.isConnected", arg=panel)
    with page.expect_response(lambda r: r.request == late[0].request):
        late[0].continue_()
    page.unroute(refresh)
    web.execute("UPDATE runners_table SET state='replicating', error_code=''")
    badge = page.locator('[data-table="public.orders"] [data-state]')
    expect(badge).to_have_attribute("data-state", "waiting")  # its replicator has no run
    page.get_by_label("Actions on public.orders").click()
    page.get_by_role("link", name="Re-sync table…").click()
    page.get_by_role("button", name="Re-sync table").click()
    expect(page.get_by_text("re-sync requested")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_test_id("head").locator('[data-state="paused"]')).to_be_visible()


def _add_table(watched: Any) -> None:
    page: Page = watched.page
    page.get_by_role("link", name="Add tables").click()
    expect(page.get_by_label("Add public.customers")).to_be_visible()
    expect(page.get_by_label("Schema").locator("option")).to_have_text(
        ["All schemas", "public (1)"]
    )
    page.get_by_label("Add public.customers").check()
    page.get_by_label("Search tables").fill("nothing like it")
    expect(page.locator("[data-table]")).to_have_count(0)
    expect(page.get_by_test_id("tables-chosen")).to_contain_text("1 of 1 tables chosen")
    watched.assert_accessible()
    page.get_by_role("button", name="Add tables").click()
    expect(page.locator('[data-table="public.customers"]')).to_be_visible()
    expect(page.get_by_test_id("toast")).to_contain_text("will be copied, then followed")


def _follow_log(page: Page, web: Web) -> None:
    def write(text: str) -> None:
        web.execute(
            'INSERT INTO runners_logline (replicator_id, at, level, "table", text) '
            "SELECT id, '2026-01-01 00:00:00', 'INFO', '', ? FROM replicators_replicator",
            text,
        )

    expect(page.get_by_test_id("empty")).to_be_visible()
    write("first line")
    expect(page.get_by_text("first line")).to_be_visible()
    write("second line")
    expect(page.get_by_text("second line")).to_be_visible()


_ALL = "SELECT id FROM replicators_replicator"
PAGES = ("/", "/drafts/", "/activity/", "/api/", "/account/", "/replicators/new/", "/styleguide/")


@pytest.mark.parametrize("looks", LOOKS)
def test_every_page_is_accessible_and_fits(
    open_page: Any, web: Web, looks: tuple[tuple[int, str], ...]
) -> None:
    made = [f"/replicators/{uuid.UUID(pk)}/" for (pk,) in web.execute(_ALL)]
    inner = [
        f"{one}{part}"
        for one in made
        for part in ("", "tables/", "logs/", "activity/", "configuration/")
    ]
    for width, scheme in looks:
        watched = open_page(width, color_scheme=scheme)
        watched.sign_in()
        for path in (*PAGES, *inner):
            watched.page.goto(watched.base + path)
            watched.assert_accessible()
            watched.assert_fits()


def test_the_form_works_without_javascript(
    open_page: Any, database: Database, tmp_path: Path
) -> None:
    database.execute("CREATE TABLE orders (id bigint PRIMARY KEY)")
    database.execute("CREATE TABLE customers (id bigint PRIMARY KEY, name text)")
    watched = open_page(400, java_script_enabled=False)
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, "without scripts")
    fill_source(page, database)
    building.test_connection(page)
    expect(page.get_by_test_id("test-ok")).to_be_visible()
    go_on(page, "target")
    fill_target(page, tmp_path)
    go_on(page, "tables")
    page.get_by_role("button", name="List the tables").click()
    page.get_by_label("Copy public.orders").check()
    page.get_by_label("Search tables").fill("custom")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("[data-table]")).to_have_count(1)
    page.get_by_role("link", name="Columns of public.customers").click()
    page.get_by_label("Only those ticked below").check()
    page.get_by_label("name", exact=True).uncheck()
    page.get_by_role("button", name="Save choice").click()
    expect(page.get_by_test_id("tables-chosen")).to_contain_text("2 of 2")
    go_on(page, "advanced")
    page.get_by_label("Keep changes for").fill("x")
    page.get_by_role("button", name="Next", exact=True).click()
    expect(page.locator("#help-options\\.keep_hours")).to_contain_text("must be a number")
    page.get_by_label("Keep changes for").fill("48")
    go_on(page, "assessment")
    page.get_by_role("button", name="Run assessment").click()
    expect(page.get_by_test_id("verdict")).to_contain_text("Ready to deploy")
    go_on(page, "summary")
    building.deploy(page)


def test_the_pages_work_by_keyboard(open_page: Any) -> None:
    watched = open_page()
    page: Page = watched.page
    page.goto(f"{watched.base}/sign-in/")
    page.keyboard.type("viewer")
    page.keyboard.press("Tab")
    page.keyboard.type("correct-horse-battery")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Replicators")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()
