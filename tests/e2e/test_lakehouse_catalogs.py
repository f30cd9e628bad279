"""A lakehouse whose tables a catalog of another kind lists, through the form: AWS Glue, a REST
catalog that asks for signed requests, and a Hive metastore."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.building import (
    arrived,
    begin,
    choose,
    deploy,
    fill_lakehouse,
    fill_source,
    go_on,
)
from tests.e2e.building import test_connection as press_test
from tests.e2e.conftest import Watched, Web
from tests.e2e.local_run import PRODUCT, running
from tests.harness import until
from tests.hive_metastore import HiveMetastore
from tests.iceberg_rest import WAREHOUSE, Gate, RestCatalogServer
from tests.integration.test_lakehouse_on_glue import OF_GLUE
from tests.integration.test_lakehouse_on_rest import SIGNER
from tests.servers import Database
from tests.stores import RIGHTS, object_store

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(600)]


def to_the_target(watched: Watched, database: Database, name: str) -> Page:
    """A table to copy, and the wizard's pages before the target's."""
    database.execute(
        "CREATE SCHEMA shop;"
        "CREATE TABLE shop.orders (id bigint PRIMARY KEY, note text);"
        "INSERT INTO shop.orders SELECT i, 'row ' || i FROM generate_series(1, 200) i"
    )
    page = watched.page
    watched.sign_in()
    page.goto(f"{watched.base}/replicators/new/")
    begin(page, name)
    fill_source(page, database)
    go_on(page, "target")
    return page


def is_green(watched: Watched) -> None:
    """The test of the connection says that all is well."""
    press_test(watched.page)
    expect(watched.page.get_by_test_id("test-ok")).to_be_visible()
    watched.assert_accessible()
    watched.assert_fits()


def to_the_report(page: Page) -> None:
    """The pages up to the assessment, which finds nothing."""
    arrived(page, "target")
    go_on(page, "tables")
    choose(page, "shop.orders")
    go_on(page, "advanced")
    page.locator('[name="options.merge_seconds"]').fill("1")
    go_on(page, "assessment")
    expect(page.get_by_text("Ready to deploy")).to_be_visible()
    go_on(page, "summary")


def test_glue_is_chosen_in_the_form(open_page: Any, database: Database) -> None:
    """Guards the fields of Glue, and that no page shows the secret key."""
    with object_store() as store:
        keys = store.user(*RIGHTS, *OF_GLUE)
        store.require_keys()
        watched = open_page()
        page = to_the_target(watched, database, "into Glue")
        fields = {
            "warehouse": f"s3://{store.bucket}/lake",
            "catalog": "glue",
            "catalog_uri": store.endpoint,
            "name_case": "lower",
            "s3_endpoint": store.endpoint,
            "s3_region": "us-east-1",
            "s3_access_key": keys.access,
            "s3_secret_key": keys.secret,
        }
        fill_lakehouse(page, fields)
        is_green(watched)
        to_the_report(page)
        assert keys.secret not in page.content()


def test_signed_requests_are_chosen_in_the_form(
    open_page: Any, database: Database, tmp_path: Path
) -> None:
    """Guards the fields of signed requests: a wrong secret key is told by the test of the
    connection."""
    with RestCatalogServer() as server, Gate(server.port, signer=SIGNER) as gate:
        watched = open_page()
        page = to_the_target(watched, database, "signed")
        fields = {
            "warehouse": str(tmp_path / "warehouse"),
            "catalog": "rest",
            "catalog_uri": gate.url,
            "catalog_warehouse": WAREHOUSE,
            "catalog_signing": SIGNER.service,
            "catalog_region": SIGNER.region,
            "catalog_user": SIGNER.keys.access,
            "catalog_password": SIGNER.keys.secret,
        }
        fill_lakehouse(page, {**fields, "catalog_password": "another"}, current_views=True)
        press_test(page)
        said = page.get_by_test_id("test-result")
        expect(said).to_contain_text("Catalog refuses the credentials")
        fill_lakehouse(page, fields, current_views=True)
        is_green(watched)
        to_the_report(page)
        assert SIGNER.keys.secret not in page.content()


def test_a_hive_metastore_is_chosen_in_the_form_and_has_the_rows(
    open_page: Any, web: Web, database: Database, tmp_path: Path
) -> None:
    """Guards the fields of Hive from the form to the rows that pyiceberg reads."""
    from pyiceberg.catalog.hive import HiveCatalog
    from pyiceberg.exceptions import NoSuchTableError

    name = "into Hive"
    with HiveMetastore() as metastore:
        watched = open_page()
        page = to_the_target(watched, database, name)
        fields = {
            "warehouse": str(tmp_path / "warehouse"),
            "catalog": "hive",
            "catalog_uri": metastore.uri,
        }
        fill_lakehouse(page, fields, catalog_locks=False)
        is_green(watched)
        to_the_report(page)
        deploy(page)

        def rows() -> list[tuple[Any, ...]]:
            try:
                table = HiveCatalog("reader", uri=metastore.uri).load_table(("shop", "orders"))
            except NoSuchTableError:
                return []
            return sorted(tuple(r.values()) for r in table.scan().to_arrow().to_pylist())

        def are_equal() -> bool:
            return rows() == [tuple(r) for r in database.execute("TABLE shop.orders ORDER BY 1")]

        with running(web, tmp_path, name, PRODUCT):
            until(are_equal, "the copy")
            database.execute("UPDATE shop.orders SET note = 'changed' WHERE id < 20")
            until(are_equal, "changes")
