"""A lakehouse in a bucket whose tables a REST catalog lists, built in the wizard from MySQL; its
rows are read by pyiceberg."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from replicators.sources.mysql.setup import setup
from tests.e2e.building import begin, choose, deploy, fill_lakehouse, fill_source, go_on
from tests.e2e.building import test_connection as press_test
from tests.e2e.conftest import Web
from tests.e2e.local_run import PRODUCT, running
from tests.harness import until
from tests.iceberg_rest import FOREVER, SECRET, WAREHOUSE, Gate, RestCatalogServer, hadoop_on
from tests.mysql_servers import SqlServer, fresh_sql_database
from tests.stores import RIGHTS, Keys, ObjectStore, object_store

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(900)]
NAME = "into a catalog"
SECONDS = 5.0


@pytest.fixture
def store() -> Iterator[ObjectStore]:
    with object_store() as made:
        yield made


@pytest.fixture
def keys(store: ObjectStore) -> Keys:
    made = store.user(*RIGHTS)
    store.require_keys()
    return made


@pytest.fixture
def gate(store: ObjectStore, keys: Keys) -> Iterator[Gate]:
    server = RestCatalogServer(hadoop=hadoop_on(store, keys))
    with server, Gate(server.port, SECONDS) as made:
        yield made


def test_mysql_goes_into_a_bucket_that_a_rest_catalog_lists(
    open_page: Any, web: Web, mysql: SqlServer, store: ObjectStore, keys: Keys, gate: Gate,
    tmp_path: Path,
) -> None:  # fmt: skip
    """Guards the whole way of a person: the form, what the catalog refuses, the report, the copy,
    changes over two SIGKILLs, and that no page shows a secret."""
    from pyiceberg.catalog.rest import RestCatalog
    from pyiceberg.exceptions import NoSuchTableError

    with fresh_sql_database(mysql) as database:
        database.execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY, note varchar(40), total decimal(12,2))",
            "INSERT INTO orders WITH RECURSIVE g AS (SELECT 1 i UNION ALL SELECT i + 1 FROM g"
            " WHERE i < 500) SELECT i, concat('row ', i), i / 7 FROM g",
        )
        reader = {"user": f"reader_{database.name}", "password": "choose one"}
        for step in setup({**reader, "database": database.name}):
            database.execute(*(s.rstrip(";") for s in step.statements))
        watched = open_page()
        page: Page = watched.page
        watched.sign_in()
        page.goto(f"{watched.base}/replicators/new/")
        begin(page, NAME)
        fill_source(page, database, "mysql", database=database.name, **reader)
        go_on(page, "target")
        fields = {
            **gate.fields(warehouse=f"s3://{store.bucket}/lake", namespace="shop"),
            "s3_endpoint": store.endpoint,
            "s3_region": "us-east-1",
            "s3_access_key": keys.access,
            "s3_secret_key": keys.secret,
        }

        def fill(**values: str) -> None:
            fill_lakehouse(page, {**fields, **values})
            press_test(page)

        said = page.get_by_test_id("test-result")
        fill(catalog_password="another")  # noqa: S106 - a wrong one
        expect(said).to_contain_text("Catalog refuses the credentials")
        fill(catalog_warehouse="another")
        expect(said).to_contain_text("Warehouse not known to the catalog")
        fill()
        expect(page.get_by_test_id("test-ok")).to_be_visible()
        watched.assert_accessible()
        watched.assert_fits()
        go_on(page, "tables")
        choose(page, f"{database.name}.orders")
        go_on(page, "advanced")
        gate.forbidden = ["POST .*/namespaces$"]
        go_on(page, "assessment")
        missing = page.get_by_text("does not let this user create a namespace.").first
        expect(missing).to_be_visible()
        gate.forbidden = []
        page.get_by_role("button", name="Run again").click()
        expect(page.get_by_text("Ready to deploy")).to_be_visible()
        go_on(page, "summary")
        assert SECRET not in page.content()
        deploy(page)
        assert SECRET not in page.content()

        properties = {
            "uri": gate.url,
            "token": FOREVER,
            "warehouse": WAREHOUSE,
            "s3.endpoint": store.endpoint,
            "s3.region": "us-east-1",
            "s3.access-key-id": keys.access,
            "s3.secret-access-key": keys.secret,
        }

        def rows() -> list[tuple[Any, ...]]:
            try:
                table = RestCatalog("reader", **properties).load_table(("shop", "orders"))
            except NoSuchTableError:
                return []
            return sorted(tuple(r.values()) for r in table.scan().to_arrow().to_pylist())

        def are_equal() -> bool:
            found = database.execute("SELECT id, note, total FROM orders")
            return rows() == sorted(map(tuple, found))

        for number in range(3):
            with running(web, tmp_path, NAME, PRODUCT):
                until(are_equal, "equal before the kill")
                low = 100 * number
                database.execute(
                    f"UPDATE orders SET note = 'changed' WHERE id BETWEEN {low} AND {low + 50}",
                    f"DELETE FROM orders WHERE id BETWEEN {low + 60} AND {low + 70}",
                    f"INSERT INTO orders VALUES ({1000 + number}, 'new', {number})",
                )
        with running(web, tmp_path, NAME, PRODUCT):
            until(are_equal, "equal after the kills")
        assert SECRET not in "".join(p.read_text() for p in tmp_path.glob("*.log"))
