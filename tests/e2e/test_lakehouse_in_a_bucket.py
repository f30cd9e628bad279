"""A lakehouse in a bucket of S3, as a person fills in its form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.building import begin, choose, deploy, fill_source, go_on
from tests.e2e.building import test_connection as press_test
from tests.servers import Database
from tests.stores import RIGHTS, Keys, ObjectStore, object_store

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.long]


@pytest.fixture
def store() -> Iterator[ObjectStore]:
    with object_store() as made:
        yield made


def test_the_form_of_a_bucket_says_what_is_wrong_and_hides_its_secret_key(
    open_page: Any, store: ObjectStore, database: Database, tmp_path: Path
) -> None:
    """Guards the fields from the form to the preflight: a wrong key and a missing right are told
    before anything runs, and the secret key is on no page."""
    database.execute("CREATE SCHEMA shop; CREATE TABLE shop.orders (id bigint PRIMARY KEY)")
    user = store.user(*RIGHTS)
    reader = store.user(*(r for r in RIGHTS if r != "s3:PutObject"))
    store.require_keys()
    watched = open_page()
    page: Page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, "in a bucket")
    fill_source(page, database)
    go_on(page, "target")

    def fill(keys: Keys, **values: str) -> None:
        given = {
            "warehouse": f"s3://{store.bucket}/lake",
            "s3_endpoint": store.endpoint,
            "s3_region": "us-east-1",
            "s3_access_key": keys.access,
            "s3_secret_key": keys.secret,
            "catalog_uri": f"sqlite:///{tmp_path}/catalog.db",
            **values,
        }
        for name, value in given.items():
            page.locator(f'[name="target.{name}"]').fill(value)
        press_test(page)

    said = page.get_by_test_id("test-result")
    fill(Keys(user.access, "wrong"))
    expect(said).to_contain_text("Keys not accepted")
    fill(user, warehouse="s3://nowhere/lake")
    expect(said).to_contain_text("no bucket nowhere.")
    fill(reader)
    expect(page.get_by_test_id("test-ok")).to_be_visible()
    watched.assert_accessible()
    watched.assert_fits()
    target = page.url
    go_on(page, "tables")
    choose(page, "shop.orders")
    go_on(page, "advanced")
    go_on(page, "assessment")
    missing = page.get_by_text(f"may not write to the bucket {store.bucket}.").first
    expect(missing).to_be_visible()
    page.goto(target)
    fill(user)
    for step in ("tables", "advanced", "assessment"):
        go_on(page, step)
    expect(page.get_by_text("Ready to deploy")).to_be_visible()
    go_on(page, "summary")
    assert user.secret not in page.content()
    deploy(page)
    page.get_by_role("link", name="Configuration").click()
    expect(page.get_by_text(f"s3://{store.bucket}/lake").first).to_be_visible()
    assert user.secret not in page.content()
