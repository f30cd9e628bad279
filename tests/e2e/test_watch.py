"""What a person sees of replicators that run, in Chromium, with everything real: web, workers,
PostgreSQL, Spark.

One demo for all tests of the module; they go on from each other in the order they stand here.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect

from replicators.sources.mysql.setup import setup
from tests import mysql_shop
from tests.demos import Demo, closed_demo, pids, until
from tests.e2e import building
from tests.e2e.another_tool import run_sql
from tests.e2e.conftest import LOOKS, Watched
from tests.model.reading import iceberg_rows
from tests.model.reading_mysql import MysqlTable
from tests.model.verify import table_differences
from tests.mysql_servers import SqlDatabase, SqlServer, fresh_sql_database

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.timeout(400)]
SLOW_MS = 120_000
NAME = "shop to lakehouse"


@dataclass(frozen=True)
class Live:
    """The running demo, and the failpoint that holds its copies."""

    demo: Demo
    reported: dict[str, Any]
    held: Path

    @property
    def url(self) -> str:
        return str(self.reported["url"])

    @property
    def one(self) -> str:
        return f"{self.url}/replicators/{self.reported['replicator_id']}/"

    def source(self, sql: str) -> list[Any]:
        with psycopg.connect(self.reported["source"]["dsn"], autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def drop_target(self, table: str) -> None:
        """What a careless person does to the target."""
        from pyiceberg.catalog.sql import SqlCatalog

        target = self.reported["target"]
        catalog = SqlCatalog(
            target["catalog_name"], uri=target["catalog_uri"], warehouse=target["warehouse"]
        )
        catalog.drop_table((target["namespace"], table))


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("live")
    held = folder / "held"
    held.touch()
    points = {"REPLICATOR_FAILPOINTS": f"snapshot_begun=hold:{held}"}
    with closed_demo(folder / "run", **points) as demo:
        yield Live(demo, demo.start(), held)


@pytest.fixture
def watch(live: Live, chromium: Browser) -> Iterator[Any]:
    """Opens watched pages of the demo, signed in; none may have had an error at the end."""
    opened: list[Watched] = []

    def open_one(width: int = 1280, **options: Any) -> Watched:
        context = chromium.new_context(viewport={"width": width, "height": 860}, **options)
        context.set_default_timeout(30_000)
        watched = Watched(context.new_page(), live.url)
        watched.watch()
        opened.append(watched)
        watched.page.goto(f"{live.url}/sign-in/")
        watched.page.get_by_label("User").fill(live.reported["user"])
        watched.page.get_by_label("Password").fill(live.reported["password"])
        watched.page.get_by_role("button", name="Sign in").click()
        return watched

    yield open_one
    for watched in opened:
        watched.page.context.close()
        assert not watched.faults


def _badge(page: Page, table: str) -> Any:
    return page.locator(f'[data-table="shop.{table}"] [data-state]')


def test_a_copy_is_seen_going_on_and_then_following(watch: Any, live: Live) -> None:
    watched = watch()
    page: Page = watched.page
    page.get_by_role("link", name=NAME).click()
    page.get_by_role("link", name="Tables", exact=True).click()
    copying = page.locator("tr", has=page.locator('[data-state="snapshotting"]'))
    expect(copying).to_have_count(1, timeout=SLOW_MS)
    expect(copying).to_contain_text("begins, about 30 rows", timeout=SLOW_MS)
    expect(page.locator('[data-state="waiting"]').first).to_be_visible()
    watched.assert_accessible()
    live.held.unlink()
    for table in ("orders", "customers"):
        expect(_badge(page, table)).to_have_attribute("data-state", "replicating", timeout=SLOW_MS)
    expect(page.locator('[data-state="waiting"], [data-state="snapshotting"]')).to_have_count(
        0, timeout=SLOW_MS
    )
    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_text("Active", exact=True)).to_be_visible(timeout=SLOW_MS)
    expect(page.get_by_test_id("lag")).to_contain_text(" s", timeout=SLOW_MS)
    expect(page.locator(".chart canvas").first).to_be_visible(timeout=SLOW_MS)
    page.locator("#charts summary").click()
    expect(page.get_by_role("region", name="Metrics of the charts")).to_be_visible()
    watched.assert_accessible()


def test_logs_are_followed_searched_held_and_downloaded(watch: Any, live: Live) -> None:
    page: Page = watch().page
    page.goto(f"{live.one}logs/")
    expect(page.locator(".log li").first).to_be_visible()
    page.get_by_label("Follow").uncheck()
    last = page.locator(".log li:not([hidden])").last.get_attribute("id")
    page.get_by_label("Follow").check()
    page.get_by_label("Search").fill("started")
    expect(page).to_have_url(re.compile("search=started"))
    expect(page.locator(".log li:not([hidden])").first).to_contain_text(re.compile("started", re.I))
    assert last
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    text = Path(download.value.path()).read_text()
    assert all("started" in line.lower() for line in text.splitlines() if "INFO" in line)


@pytest.mark.long
def test_a_failing_table_says_what_to_do_and_a_resync_heals_it(watch: Any, live: Live) -> None:
    watched = watch()
    page: Page = watched.page
    page.goto(f"{live.one}tables/")
    live.drop_target("page_views")
    expect(_badge(page, "page_views")).to_have_attribute("data-state", "failing", timeout=SLOW_MS)
    expect(page.locator("[data-table]").first).to_have_attribute("data-table", "shop.page_views")
    problem = page.get_by_test_id("problem")
    expect(problem).to_contain_text("What to do")
    watched.assert_accessible()
    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_role("heading", name="Failing tables")).to_be_visible()
    page.get_by_role("link", name="Replicators", exact=True).first.click()
    expect(page.get_by_text("Running, 1 table failing")).to_be_visible()
    page.goto(f"{live.one}tables/?state=failing")
    page.get_by_role("link", name="Re-sync…", exact=True).click()
    page.get_by_role("button", name="Re-sync table").click()
    expect(page.get_by_test_id("toast").last).to_contain_text("copied afresh")
    expect(page.get_by_text("No table matches")).to_be_visible(timeout=SLOW_MS)
    page.get_by_role("link", name=re.compile("^All")).click()
    expect(_badge(page, "page_views")).to_have_attribute(
        "data-state", "replicating", timeout=SLOW_MS
    )


def test_the_list_and_actions_work_by_keyboard(watch: Any, live: Live) -> None:
    page: Page = watch().page
    page.goto(live.url)
    menu = page.get_by_label(f"Actions on {NAME}")
    menu.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Pause")).to_be_focused()
    page.keyboard.press("Escape")
    expect(menu).to_be_focused()
    page.get_by_label("Search replicators").focus()
    page.keyboard.type("no such")
    expect(page.get_by_text("No replicator matches")).to_be_visible()
    expect(page.get_by_label("Search replicators")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("shop")
    expect(page.get_by_role("link", name=NAME)).to_be_visible()
    page.get_by_role("link", name="Name", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("sort=name"))
    expect(page.locator("th[aria-sort=ascending]")).to_have_text("Name")
    page.go_back()
    expect(page).not_to_have_url(re.compile("sort=name"))


def test_pause_and_resume(watch: Any, live: Live) -> None:
    watched = watch()
    page: Page = watched.page
    page.goto(f"{live.one}tables/")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_test_id("toast").last).to_contain_text("pauses")
    head = page.get_by_test_id("head")
    expect(head.locator('[data-state="paused"]')).to_be_visible(timeout=SLOW_MS)
    expect(_badge(page, "orders")).to_have_attribute("data-state", "paused")
    watched.assert_accessible()
    page.get_by_role("button", name="Resume").click()
    expect(head.locator('[data-state="running"]')).to_be_visible(timeout=SLOW_MS)
    page.get_by_role("link", name="Activity", exact=True).nth(1).click()
    expect(page.get_by_test_id("runs").locator('[data-state="stopped"]')).to_be_visible()
    expect(page.get_by_test_id("events")).to_contain_text(f"by {live.reported['user']}")


LINES = """
INSERT INTO shop.orders (id, customer_id) VALUES (-1, 1);
INSERT INTO shop.order_lines VALUES (-1, 1, 1, 1, 9.99), (-1, 2, 1, 1, 9.99), (-1, 3, 1, 1, 9.99)
"""


def _lines(live: Live) -> dict[int, int]:
    """Line and quantity of the order that only this test knows, in the target."""
    target = live.reported["target"]
    place = (target["catalog_uri"], target["warehouse"], target["catalog_name"])
    _, rows = iceberg_rows(*place, (target["namespace"], "order_lines"))
    return {r["line"]: r["quantity"] for r in rows if r["order_id"] == -1}


def _verified(page: Page, live: Live, outcome: str) -> None:
    """Verify `order_lines` from its menu, and wait for the outcome."""
    page.goto(f"{live.one}tables/")
    page.get_by_label("Actions on shop.order_lines").click()
    page.get_by_role("link", name="Verify table…").locator("visible=true").click()
    page.get_by_role("button", name="Verify", exact=True).click()
    expect(page).to_have_url(re.compile("verify/$"))
    expect(page.get_by_test_id("verifying")).to_be_visible()
    expect(page.get_by_test_id("verifying")).to_have_count(0, timeout=SLOW_MS)
    expect(page.get_by_test_id("verified")).to_contain_text(outcome)


@contextmanager
def _no_traffic(live: Live) -> Iterator[None]:
    """The demo's traffic waits: the run would commit all the time, and other writers collide."""
    found = pids(live.demo, "traffic")
    assert found
    for pid in found:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in found:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.long  # `make test` has it in integration/test_verify_path.py and crash/test_repair.py
def test_rows_that_another_tool_damaged_are_named_and_repaired(watch: Any, live: Live) -> None:
    """Guards the whole way of a verification and a repair, while traffic goes on: of a table with
    three damaged rows exactly these are named and mended, and one that is well is equal."""
    page: Page = watch().page
    with _no_traffic(live):
        live.source(LINES)
        until(lambda: len(_lines(live)) == 3, "the lines are in the target", 60)
        run_sql(
            live.reported["target"],
            "DELETE FROM {}.order_lines WHERE order_id = -1 AND line = 1",
            "UPDATE {}.order_lines SET quantity = 77 WHERE order_id = -1 AND line = 2",
            "INSERT INTO {}.order_lines SELECT order_id, 4, product_id, quantity, price "
            "FROM {}.order_lines WHERE order_id = -1 AND line = 3",
        )
    assert _lines(live) == {2: 77, 3: 1, 4: 1}
    _verified(page, live, "3 rows differ")
    page.get_by_role("link", name="Rows of shop.order_lines that differ").click()
    named = page.get_by_test_id("verify-rows").locator("article")
    expect(named).to_have_count(3)
    for kind, line in (("missing", 1), ("different", 2), ("extra", 4)):
        row = page.locator(f'[data-kind="{kind}"]')
        expect(row).to_contain_text(f"order_id = -1, line = {line}")
    values = page.locator('[data-kind="different"] .is-different td')
    expect(values).to_have_text(["1", "77"])
    page.get_by_role("link", name="Repair all 3 rows…").click()
    page.get_by_role("button", name="Repair 3 rows").click()
    expect(page.get_by_test_id("toast")).to_contain_text("requested")
    page.goto(f"{live.one}verify/")
    repair = page.get_by_test_id("repairs").locator("tbody tr").first
    expect(repair.locator("[data-state]")).to_have_attribute("data-state", "done", timeout=SLOW_MS)
    expect(repair).to_contain_text("2 written, 1 deleted")
    assert _lines(live) == {1: 1, 2: 1, 3: 1}
    page.goto(live.one)
    expect(page.get_by_test_id("verified")).to_contain_text(re.compile("Verified .*: 3 rows"))
    _verified(page, live, "Equal")


TABS = ("", "tables/", "verify/", "activity/", "logs/", "configuration/", "edit/", "delete/")


@pytest.mark.parametrize("looks", LOOKS)
def test_every_page_is_accessible_and_fits(
    watch: Any, live: Live, looks: tuple[tuple[int, str], ...]
) -> None:
    for width, scheme in looks:
        watched = watch(width, color_scheme=scheme)
        for address in (f"{live.url}/", f"{live.url}/activity/", *(live.one + t for t in TABS)):
            watched.page.goto(address)
            watched.assert_accessible()
            watched.assert_fits()


@pytest.mark.long
def test_without_javascript_everything_but_the_refresh_works(watch: Any, live: Live) -> None:
    page: Page = watch(400, java_script_enabled=False).page
    page.get_by_label("Search replicators").fill("shop")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name=NAME).click()
    expect(page.locator("svg.lines").first).to_be_visible()
    page.get_by_role("link", name="24 hours").click()
    expect(page).to_have_url(re.compile("range=24h"))
    page.get_by_role("link", name="Tables", exact=True).click()
    page.get_by_label("Search tables").fill("orders")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("[data-table]").first).to_have_attribute("data-table", "shop.orders")
    page.get_by_label("Actions on shop.orders").click()
    page.get_by_role("link", name="Re-sync table…").first.click()
    page.get_by_role("button", name="Re-sync table").click()
    expect(page).to_have_url(re.compile("tables/$"))
    expect(page.get_by_test_id("toast")).to_contain_text("copied afresh")
    page.get_by_role("link", name="Logs").click()
    page.get_by_label("Level").select_option("INFO")
    page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile("level=INFO"))


def test_an_act_that_the_server_can_not_do_says_so_in_a_toast_and_in_place(
    watch: Any, live: Live
) -> None:
    watched = watch()
    page: Page = watched.page
    page.goto(live.one)
    page.route("**/pause/", lambda route: route.fulfill(status=500, body="no"))
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_test_id("toast").last).to_contain_text("could not do this (500)")
    expect(page.locator("[data-errors] [role=alert]").first).to_contain_text(
        "could not do this (500)"
    )
    page.unroute("**/pause/")
    watched.faults[:] = [f for f in watched.faults if "500" not in f]


def test_a_session_that_ended_leads_to_the_sign_in(watch: Any, live: Live) -> None:
    page: Page = watch().page
    page.goto(live.one)
    page.context.clear_cookies()
    expect(page).to_have_url(re.compile("/sign-in/"), timeout=30_000)


def test_a_delete_names_what_goes_and_takes_it_away(watch: Any, live: Live) -> None:
    page: Page = watch().page
    page.goto(live.one)
    slots = "SELECT slot_name FROM pg_replication_slots WHERE NOT temporary"
    publications = "SELECT pubname FROM pg_publication"
    names = {n for sql in (slots, publications) for (n,) in live.source(sql)}
    assert len(names) == 3
    page.locator("#act-more").click()
    page.get_by_role("link", name="Delete…").click()
    dialog = page.get_by_role("dialog")
    for name in names:
        expect(dialog.get_by_text(name, exact=True)).to_be_visible()
    dialog.get_by_role("button", name="Delete replicator").click()
    expect(page.get_by_role("heading", name="Being deleted")).to_be_visible()
    expect(page.get_by_role("heading", name="No replicator yet")).to_be_visible(timeout=SLOW_MS)
    expect(page.get_by_test_id("toast")).to_contain_text("is deleted")
    assert live.source(slots) == live.source(publications) == []


def _same(live: Live, database: SqlDatabase, namespace: str) -> bool:
    target = live.reported["target"]
    for table in mysql_shop.TABLES:
        driver = {k: v for k, v in database.params.items() if k != "database"}
        source = MysqlTable(driver, database.name, table)
        place = (target["catalog_uri"], target["warehouse"], target["catalog_name"])
        _, rows = iceberg_rows(*place, (namespace, table))
        # A copy without a key has two columns more.
        _, _, reported = table_differences(source, source.columns, rows)
        if reported:
            return False
    return True


def _build(page: Page, live: Live, database: SqlDatabase) -> None:
    """The seven pages, with the user that the page's own SQL makes."""
    flavour = database.server.flavour
    reader = {
        "user": f"reader_{database.name}",
        "password": "choose one",
        "database": database.name,
    }
    for step in setup({"user": reader["user"], "database": database.name}):
        database.execute(*(s.rstrip(";") for s in step.statements))
    database.execute(f"GRANT LOCK TABLES ON {database.name}.* TO '{reader['user']}'@'%'")
    page.goto(f"{live.url}/replicators/new/")
    building.begin(page, f"from {flavour}")
    building.fill_source(page, database, "mysql", **reader)
    expect(page.locator("#setup-1")).to_contain_text("binlog_row_metadata")
    building.test_connection(page)
    expect(page.get_by_test_id("test-ok")).to_be_visible()
    building.go_on(page, "target")
    for name in ("catalog_name", "catalog_uri", "warehouse"):
        page.locator(f'[name="target.{name}"]').fill(live.reported["target"][name])
    page.locator('[name="target.namespace"]').fill(f"from_{flavour}")
    building.go_on(page, "tables")
    building.choose(page, *(f"{database.name}.{t}" for t in mysql_shop.TABLES))
    building.go_on(page, "advanced")
    building.go_on(page, "assessment")
    expect(page.get_by_test_id("verdict")).to_contain_text("Ready to deploy")
    building.go_on(page, "summary")
    building.deploy(page)


@pytest.mark.long
@pytest.mark.parametrize("flavours", [("mariadb", "mysql")], ids=["both"])
def test_replicators_from_mysql_and_mariadb_are_built_and_replicate_the_shop(
    request: pytest.FixtureRequest, watch: Any, live: Live, flavours: tuple[str, ...]
) -> None:
    """Guards the whole way of a person with these sources: form, SQL beside it, test, report, copy,
    changes, equal rows. MariaDB into PostgreSQL: `test_postgresql_target.py`."""
    page: Page = watch().page
    live.held.touch()
    with ExitStack() as stack:
        servers: list[SqlServer] = [request.getfixturevalue(f) for f in flavours]
        databases = [stack.enter_context(fresh_sql_database(s)) for s in servers]
        made: list[tuple[SqlDatabase, str]] = []
        for database in databases:
            mysql_shop.make_shop(database)
            _build(page, live, database)
            made.append((database, page.url))
        for _, address in made:
            page.goto(f"{address}tables/")
            busy = page.locator('[data-state="snapshotting"]').first
            expect(busy).to_be_visible(timeout=SLOW_MS)
        live.held.unlink()
        for database, address in made:
            page.goto(f"{address}tables/")
            for table in mysql_shop.TABLES:
                badge = page.locator(f'[data-table="{database.name}.{table}"] [data-state]')
                expect(badge).to_have_attribute("data-state", "replicating", timeout=SLOW_MS)
            for number in range(1, 6):
                mysql_shop.change(database, number)
        for database, _ in made:
            namespace = f"from_{database.server.flavour}"
            until(lambda d=database, n=namespace: _same(live, d, n), f"{namespace} is equal", 240)
