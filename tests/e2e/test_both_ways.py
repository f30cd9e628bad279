"""Two PostgreSQL databases into each other, as docs/two-way.md says it: the first way copies, the
second takes the tables over. Both are built in the wizard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from demo.postgres import EmbeddedPostgres
from tests.e2e.building import begin, choose, deploy, fill_postgresql, fill_source, go_on
from tests.e2e.conftest import Watched, Web
from tests.e2e.local_run import running
from tests.harness import until
from tests.integration.test_postgresql_two_way import GRANTS
from tests.postgres_target import ROLE, writer_params
from tests.servers import Database, fresh_database

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.long]
ROWS = "SELECT id, note FROM shop.orders ORDER BY id"
THERE, BACK = "a to b", "b to a"


@pytest.fixture
def other(postgres: EmbeddedPostgres) -> Iterator[Database]:
    """The database B; the origins of both ways are dropped afterwards."""
    with fresh_database(postgres) as made:
        yield made
        made.execute(
            "SELECT pg_replication_origin_drop(roname) FROM pg_replication_origin"
            " WHERE roname IN ('from_a', 'from_b')"
        )


def build_way(
    watched: Watched, name: str, source: Database, target: Database, origin: str, first_copy: str
) -> None:
    """One way, up to its deploy."""
    page: Page = watched.page
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, name)
    fill_source(page, source, skip_origins="any")
    go_on(page, "target")
    fill_postgresql(page, target, user=ROLE, origin=origin)
    go_on(page, "tables")
    choose(page, "shop.orders")
    go_on(page, "advanced")
    page.locator('[name="options.merge_seconds"]').fill("1")
    page.locator(f'input[name="options.first_copy"][value="{first_copy}"]').check()
    watched.assert_accessible()
    go_on(page, "assessment")
    expect(page.get_by_text("Ready to deploy")).to_be_visible()
    go_on(page, "summary")
    deploy(page)


def test_two_databases_are_built_into_each_other_and_one_takes_over(
    open_page: Any, web: Web, database: Database, other: Database, tmp_path: Path
) -> None:
    """Guards both options in the forms, *Take over* without a copy, changes that go to the other
    side once, and the page of what lost."""
    database.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.orders (id int PRIMARY KEY, note text);"
        " INSERT INTO shop.orders SELECT i, 'first' FROM generate_series(1, 100) i"
    )
    for side in (database, other):
        writer_params(side)
        side.execute(GRANTS)
    watched = open_page()
    watched.sign_in()
    build_way(watched, THERE, database, other, "from_a", "copy")

    def is_equal() -> bool:
        found = other.execute("SELECT to_regclass('shop.orders') IS NOT NULL")
        return bool(found[0][0]) and other.execute(ROWS) == database.execute(ROWS)

    with running(web, tmp_path, THERE):
        until(is_equal, "the first copy is there")
        database.execute(
            f"ALTER SCHEMA shop OWNER TO {ROLE}; ALTER TABLE shop.orders OWNER TO {ROLE}"
        )
        copied = database.execute("SELECT ctid, xmin FROM shop.orders ORDER BY id")
        build_way(watched, BACK, other, database, "from_b", "take_over")
        with running(web, tmp_path, BACK):
            follows = (
                "SELECT count(*) FROM runners_table t JOIN replicators_replicator r"
                " ON r.id = t.replicator_id WHERE r.name = ? AND t.state = 'replicating'"
            )
            until(lambda: web.execute(follows, BACK) == [(1,)], "the way back follows")
            now = database.execute("SELECT ctid, xmin FROM shop.orders ORDER BY id")
            assert now == copied, "a table that is taken over is not written"
            database.execute("UPDATE shop.orders SET note = 'of a' WHERE id <= 10")
            other.execute("UPDATE shop.orders SET note = 'of b' WHERE id > 90")
            other.execute("INSERT INTO shop.orders VALUES (101, 'of b')")
            until(is_equal, "both sides have both sides' changes")
            assert {note for _, note in other.execute(ROWS)} == {"first", "of a", "of b"}
    database.execute("UPDATE shop.orders SET note = 'earlier' WHERE id = 1")
    other.execute("UPDATE shop.orders SET note = 'later' WHERE id = 1")
    with running(web, tmp_path, THERE), running(web, tmp_path, BACK):
        until(is_equal, "the later change won on both sides")
    assert database.execute(ROWS)[0] == (1, "later")
    page: Page = watched.page
    page.goto(f"{watched.base}/")
    page.get_by_role("link", name=THERE, exact=True).click()
    page.get_by_role("link", name="Conflicts").click()
    expect(page.locator("main")).to_contain_text("earlier")
    watched.assert_accessible()
