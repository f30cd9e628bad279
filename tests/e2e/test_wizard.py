"""The seven pages in Chromium against a real PostgreSQL and a lakehouse in a folder."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e import building
from tests.e2e.building import arrived, begin, choose, fill_source, fill_target, go_on, saved
from tests.e2e.conftest import LOOKS
from tests.servers import Database

pytestmark = [pytest.mark.e2e, pytest.mark.integration]


@pytest.fixture
def shop(database: Database) -> Database:
    """Two sound tables, one with a column that loses something, one without key."""
    database.execute(
        "CREATE TABLE customers (id bigint PRIMARY KEY, name text);"
        "CREATE TABLE orders (id bigint PRIMARY KEY, note text);"
        "CREATE TABLE prices (id bigint PRIMARY KEY, amount numeric);"
        "CREATE TABLE views (page text)"
    )
    return database


@pytest.mark.long
def test_while_a_connection_is_tested_nothing_can_be_typed_that_would_be_lost(
    open_page: Any,
) -> None:
    """Guards `wait` of wizard.js: the answer is the form as it was sent, so what was typed into it
    meanwhile was gone."""
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, "slow server")
    with socket.create_server(("127.0.0.1", 0)) as mute:
        page.locator('[name="source.host"]').fill("127.0.0.1")
        page.locator('[name="source.port"]').fill(str(mute.getsockname()[1]))
        page.locator('[name="source.database"]').fill("shop")
        page.locator('[name="source.user"]').fill("somebody")
        page.get_by_role("button", name="Test connection").click()
        fields = page.locator("#step-panel .card-pad").first
        expect(fields).to_have_js_property("inert", True)
        expect(page.get_by_role("button", name="Testing")).to_be_visible()
        expect(page.get_by_test_id("test-result").get_by_test_id("problem")).to_be_visible()
    expect(fields).to_have_js_property("inert", False)
    user = page.locator('[name="source.user"]')
    user.fill("somebody else")
    expect(user).to_have_value("somebody else")


@pytest.mark.long
def test_a_press_that_waits_for_a_save_is_not_lost(open_page: Any) -> None:
    """Guards `pressed` of wizard.js, and the focus that only an answer to a press may take: HTMX
    forgets a button that loses the focus, and what was pressed only saved the draft. Here the
    refused save of a half typed place answers after *Test connection* was pressed."""
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, "pressed early")
    with socket.create_server(("127.0.0.1", 0)) as mute:
        typed = {"host": "127.0.0.1", "port": str(mute.getsockname()[1]), "user": "u"}
        for name, value in {**typed, "database": "shop", "password": "one"}.items():
            page.locator(f'[name="source.{name}"]').fill(value)
        page.locator('[name="source.database"]').fill("")
        saved(page)
        held: list[Any] = []
        page.route("**/source/", lambda route: route.continue_() if held else held.append(route))
        page.locator('[name="source.user"]').fill("other")
        page.locator('[name="source.host"]').press("Tab")
        expect(page.get_by_text("Saving")).to_be_visible()
        page.locator('[name="source.password"]').fill("two")
        page.locator('[name="source.database"]').fill("shop")
        page.get_by_role("button", name="Test connection").click()
        page.locator('[name="source.host"]').focus()
        held[0].continue_()
        expect(page.get_by_test_id("test-result").get_by_test_id("problem")).to_be_visible()


@pytest.mark.long
def test_another_kind_is_there_at_once_with_what_was_typed_and_its_own_defaults(
    open_page: Any,
) -> None:
    """Guards `changeKind` of wizard.js: the form of another kind came with an answer, in place of
    what was typed meanwhile, and with the port of the kind before."""
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, "another kind")
    port, host = page.locator('[name="source.port"]'), page.locator('[name="source.host"]')
    expect(port).to_have_value("3306")
    page.locator('[name="source.user"]').fill("typed before")
    saved(page)
    held: list[Any] = []
    page.route("**/source/", lambda route: route.continue_() if held else held.append(route))
    page.locator('[name="source_kind"][value="postgresql"]').check()
    host.fill("typed at once")
    expect(port).to_have_value("5432")
    expect(page.locator('[name="source.user"]')).to_have_value("typed before")
    held[0].continue_()
    expect(page.locator("#step-help")).to_contain_text("wal_level")
    expect(host).to_have_value("typed at once")
    host.press("Tab")
    saved(page)
    page.reload()
    expect(host).to_have_value("typed at once")
    expect(port).to_have_value("5432")
    port.fill("6543")
    page.locator('[name="source_kind"][value="mysql"]').check()
    expect(port).to_have_value("6543")


def test_seven_pages_lead_to_a_replicator(open_page: Any, shop: Database, tmp_path: Path) -> None:
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    watched.assert_accessible()
    begin(page, "seven pages")

    fill_source(page, shop, password="wrong")
    building.test_connection(page)
    reported = page.get_by_test_id("test-result")
    expect(reported).to_contain_text("What to do")
    expect(reported.get_by_test_id("problem")).to_have_attribute(
        "data-code", "source:login-refused"
    )
    expect(page.locator("#setup-1")).to_contain_text("wal_level")
    expect(page.get_by_role("button", name="Copy: Turn on the logical log")).to_be_visible()
    watched.assert_accessible()
    fill_source(page, shop)
    building.test_connection(page)
    expect(page.get_by_test_id("test-ok")).to_be_visible()
    go_on(page, "target")

    _only_what_has_a_meaning(page)
    fill_target(page, tmp_path)
    building.test_connection(page)
    expect(page.get_by_test_id("test-ok")).to_be_in_viewport(ratio=1)
    go_on(page, "tables")

    expect(page.get_by_label("Schema").locator("option")).to_have_text(
        ["All schemas", "public (4)"]
    )
    page.get_by_label("Search tables").fill("cust")
    expect(page.locator("[data-table]")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"search=cust"))
    choose(page, "public.customers")
    page.get_by_label("Search tables").fill("")
    expect(page.locator("[data-table]")).to_have_count(4)
    expect(page.get_by_label("Copy public.customers")).to_be_checked()
    choose(page, "public.prices", "public.views")
    page.get_by_label("Deletes of public.customers").uncheck()
    expect(page.get_by_test_id("tables-chosen")).to_contain_text("3 of 4 tables chosen")
    watched.assert_accessible()
    page.get_by_role("link", name="Columns of public.customers").click()
    drawer = page.get_by_role("dialog", name="Columns")
    expect(drawer).to_contain_text("bigint")
    watched.assert_accessible()
    drawer.get_by_role("button", name="None").click()
    expect(drawer.get_by_text("1 of 2 ticked")).to_be_visible()
    drawer.get_by_role("button", name="All").click()
    drawer.get_by_label("Search columns").fill("nam")
    expect(drawer.get_by_label("id", exact=True)).to_be_hidden()
    drawer.get_by_label("name", exact=True).uncheck()
    expect(drawer.get_by_text("1 of 2 ticked")).to_be_visible()
    expect(drawer.get_by_label("Only those ticked below")).to_be_checked()
    drawer.get_by_role("button", name="Save choice").click()
    expect(drawer).to_be_hidden()
    expect(page.get_by_role("link", name="Columns of public.customers")).to_contain_text("1 of 2")
    expect(page.get_by_label("Deletes of public.customers")).not_to_be_checked()
    for name in page.locator("[data-table] .name").all():
        assert name.evaluate("item => item.getClientRects().length") == 1, "a name is broken"
    go_on(page, "advanced")

    page.get_by_label("Merge every").fill("soon")
    expect(page.get_by_text("must be a number from 0.1 to 3600")).to_be_visible()
    page.get_by_label("Merge every").fill("5")
    expect(page.get_by_text("must be a number from 0.1 to 3600")).to_have_count(0)
    saved(page)
    watched.assert_accessible()
    go_on(page, "assessment")
    expect(page.get_by_test_id("verdict")).to_contain_text("1 column to decide about")
    expect(page.locator('[data-column="amount"]')).to_contain_text("Partial")
    watched.assert_accessible()
    page.get_by_role("button", name="Accept amount").click()
    expect(page.get_by_test_id("verdict")).to_contain_text("Ready to deploy")
    go_on(page, "summary")
    form = page.get_by_test_id("step-summary")
    for text in ("seven pages", "public.customers", "1 column · without deletes", "5 seconds"):
        expect(form).to_contain_text(text)
    watched.assert_accessible()
    building.deploy(page)
    expect(page.get_by_role("heading", name="seven pages")).to_be_visible()
    _once_more(watched, shop)


def _only_what_has_a_meaning(page: Page) -> None:
    """Guards `sift` of wizard.js: a lakehouse has some forty fields, of which a folder on a disk
    needs ten. What somebody filled in stays in sight."""

    def field(name: str) -> Any:
        return page.locator(f'[name="target.{name}"]')

    heading = page.get_by_role("heading", name="Bucket of S3")
    for hidden in (heading, field("s3_region"), field("gcs_key"), field("catalog_token")):
        expect(hidden).to_be_hidden()
    field("warehouse").fill("s3://lake/warehouse")
    expect(heading).to_be_visible()
    field("s3_region").fill("eu-central-1")
    field("warehouse").fill("/lake")
    expect(field("s3_endpoint")).to_be_hidden()
    expect(field("s3_region")).to_be_visible()
    field("s3_region").fill("")
    expect(heading).to_be_hidden()
    field("catalog").select_option("rest")
    expect(field("catalog_token")).to_be_visible()
    field("catalog").select_option("jdbc")
    expect(field("catalog_token")).to_be_hidden()


def _once_more(watched: Any, shop: Database) -> None:
    """A second replicator over the same source needs no password typed."""
    page: Page = watched.page
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, "once more")
    page.get_by_role("button", name="Fill in").click()
    expect(page.locator(".take-over [role=alert]")).to_contain_text("Choose the replicator")
    label = f"seven pages ({shop.params['host']} / {shop.name})"
    page.get_by_label("Use the connection of").select_option(label=label)
    page.get_by_role("button", name="Fill in").click()
    expect(page.get_by_test_id("toast").last).to_contain_text("Filled in from seven pages")
    expect(page.locator('[name="source.database"]')).to_have_value(shop.name)
    expect(page.locator('[name="source.password"]')).to_have_value("********")
    watched.assert_accessible()
    building.test_connection(page)
    expect(page.get_by_test_id("test-ok")).to_be_visible()


@pytest.mark.long
def test_a_draft_is_left_and_taken_up_again_by_itself(
    open_page: Any, shop: Database, tmp_path: Path
) -> None:
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    page.get_by_label("Name", exact=True).fill("left alone")
    saved(page)
    page.reload()
    expect(page.get_by_label("Name", exact=True)).to_have_value("left alone")
    go_on(page, "source")
    fill_source(page, shop)
    page.locator('[name="source.user"]').press("Tab")
    saved(page)
    page.goto(f"{watched.base}/drafts/")
    page.get_by_role("link", name="left alone").click()
    arrived(page, "target")
    page.get_by_test_id("goto-source").click()
    arrived(page, "source")
    expect(page.locator('[name="source.database"]')).to_have_value(shop.name)
    expect(page.locator('[name="source.password"]')).to_have_value("********")
    building.test_connection(page)
    expect(page.get_by_test_id("test-ok")).to_be_visible()
    page.get_by_test_id("goto-target").click()
    fill_target(page, tmp_path)
    page.get_by_role("button", name="Save and close").click()
    expect(page.get_by_role("heading", name="Drafts")).to_be_visible()


@pytest.mark.long
def test_two_tabs_never_overwrite_each_other_unasked(open_page: Any, shop: Database) -> None:
    first = open_page()
    page: Page = first.page
    first.sign_in()
    page.goto(f"{first.base}/replicators/new/")
    begin(page, "two tabs")
    second = page.context.new_page()
    second.goto(page.url)
    page.locator('[name="source.host"]').fill("first.example")
    saved(page)
    second.locator('[name="source.host"]').fill("second.example")
    expect(second.get_by_test_id("conflict")).to_contain_text("Changed in another tab")
    expect(second.locator('[name="source.host"]')).to_have_value("second.example")
    expect(second.get_by_test_id("draft-status")).to_have_text("Not saved")
    second.get_by_role("button", name="Keep mine").click()
    saved(second)
    expect(second.get_by_test_id("conflict")).to_have_count(0)
    page.locator('[name="source.database"]').fill("shop")
    page.get_by_role("link", name="Reload the other version").click()
    expect(page.locator('[name="source.host"]')).to_have_value("second.example")


def test_a_problem_is_mended_from_the_report(
    open_page: Any, shop: Database, tmp_path: Path
) -> None:
    shop.execute("CREATE TYPE pair AS (a int, b int)")
    shop.execute("CREATE TABLE odd (id bigint PRIMARY KEY, both_of pair)")
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, "mended")
    fill_source(page, shop)
    go_on(page, "target")
    fill_target(page, tmp_path)
    go_on(page, "tables")
    choose(page, "public.odd", "public.orders")
    go_on(page, "advanced")
    shop.execute("DROP TABLE orders")
    go_on(page, "assessment")
    expect(page.get_by_test_id("verdict")).to_contain_text("Fix 2 errors before deploying")
    watched.assert_accessible()
    go_on(page, "summary")
    expect(page.get_by_role("button", name="Deploy")).to_be_disabled()
    open_points = page.get_by_test_id("open-points")
    expect(open_points).to_contain_text("Fix 2 errors and accept or exclude 1 column.")
    watched.assert_accessible()
    open_points.get_by_role("button", name="Go to Assessment").first.click()
    arrived(page, "assessment")
    page.get_by_role("button", name="Exclude both_of").click()
    expect(page.get_by_test_id("stale")).to_be_visible()
    page.get_by_role("button", name="Leave orders out").click()
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_test_id("verdict")).to_contain_text("Ready to deploy")
    go_on(page, "summary")
    building.deploy(page)


def test_the_wizard_works_by_keyboard_alone(open_page: Any, shop: Database, tmp_path: Path) -> None:
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type("by keyboard")
    page.keyboard.press("Enter")
    arrived(page, "source")
    _tab_to(page, '[name="source_kind"]:checked')
    page.keyboard.press("ArrowDown")
    expect(page.locator('[data-kind="postgresql"]')).to_be_visible()
    fields = ("host", "database", "user", "port", "password")
    for name in fields:
        _tab_to(page, f'[name="source.{name}"]')
        page.keyboard.press("Control+a")
        page.keyboard.type(str(shop.params[name]))
    page.keyboard.press("Enter")
    arrived(page, "target")
    _tab_to(page, '[name="target.warehouse"]')
    page.keyboard.type(str(tmp_path / "warehouse"))
    _tab_to(page, '[name="target.catalog_uri"]')
    page.keyboard.type(f"sqlite:///{tmp_path}/catalog.db")
    page.keyboard.press("Enter")
    arrived(page, "tables")
    expect(page.get_by_label("Copy public.orders")).to_be_visible()
    _tab_to(page, '[aria-label="Copy public.orders"]')
    page.keyboard.press("Space")
    saved(page)
    expect(page.get_by_label("Copy public.orders")).to_be_focused()
    for step in ("advanced", "assessment", "summary"):
        _tab_to(page, "#next")
        page.keyboard.press("Enter")
        arrived(page, step)
    _tab_to(page, "#deploy")
    page.keyboard.press("Enter")
    building.deployed(page)


def _tab_to(page: Page, selector: str) -> None:
    aim = page.locator(selector)
    for _ in range(80):
        if aim.evaluate("item => item === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} was not reached by Tab")


@pytest.mark.parametrize("looks", LOOKS)
def test_every_page_of_the_wizard_is_accessible_and_fits(
    open_page: Any, shop: Database, tmp_path: Path, looks: tuple[tuple[int, str], ...]
) -> None:
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    watched.assert_fits()
    building.build(page, shop, tmp_path, f"looked at {looks[0][1]}", "public.orders")
    base = page.url.removesuffix("summary/")
    for step in building.PAGES:
        page.goto(f"{base}{step}/")
        watched.assert_good(looks)
        expect(
            page.get_by_role("button", name="Deploy" if step == "summary" else "Next")
        ).to_be_in_viewport()


@pytest.mark.long
def test_two_thousand_tables_are_usable(open_page: Any, database: Database) -> None:
    database.execute(
        "DO $$ BEGIN FOR n IN 1..2000 LOOP EXECUTE format('CREATE TABLE t%s (id int PRIMARY KEY)',"
        " lpad(n::text, 4, '0')); END LOOP; END $$"
    )
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, "two thousand")
    fill_source(page, database)
    go_on(page, "target")
    page.get_by_test_id("goto-tables").click()
    arrived(page, "tables")
    choose(page, "public.t0007")
    page.get_by_role("button", name="Next page").click()
    expect(page.get_by_text("51–100 of 2000")).to_be_visible()
    choose(page, "public.t0060")
    page.get_by_label("Show").select_option("Chosen only")
    expect(page.locator("[data-table]")).to_have_count(2)
    page.get_by_label("Show").select_option("All tables")
    page.get_by_role("button", name="Choose all 2000").click()
    expect(page.get_by_test_id("tables-chosen")).to_contain_text("2 k of 2 k tables chosen")
