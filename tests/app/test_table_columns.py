"""The columns of a table are changed after the deploy, on a page."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from replicators.config import parse_tables
from replicators.connectors.capabilities import ColumnKnowledge
from replicators.connectors.model.schema import Column, TableId, TableSchema, TableSelection
from replicators.connectors.model.types import Int, String
from replicators.connectors.schema.policy import SchemaPolicy
from replicators.models import Replicator
from runners.engine.schema.selection import followed
from runners.models import Table

pytestmark = pytest.mark.django_db

ORDERS = TableId("shop", "orders")
QUERY = "?schema=shop&table=orders"


@pytest.fixture
def browser(client: Client, editor: Any) -> Client:
    client.force_login(editor)
    return client


def columns(replicator: Replicator) -> tuple[str, ...]:
    replicator.refresh_from_db()
    return next(t for t in parse_tables(replicator.tables) if t.id == ORDERS).columns


def test_the_page_shows_and_saves_the_columns(browser: Client, replicator: Replicator) -> None:
    """Without the fresh copy that is asked for, old rows would read NULL in a column that was added
    to the choice."""
    url = f"/replicators/{replicator.pk}/tables/columns/"
    Table.objects.update(state="replicating")
    configuration = browser.get(f"/replicators/{replicator.pk}/configuration/").content.decode()
    assert f"{url}?schema=shop&amp;table=orders" in configuration
    page = browser.get(f"{url}{QUERY}").content.decode()
    assert "copies the table again" in page and page.count('name="columns"') == 3
    form = {"schema": "shop", "table": "orders", "which": "some", "columns": ["made_at"]}
    assert browser.post(url, form).status_code == 302
    assert columns(replicator) == ("id", "made_at")
    assert Table.objects.get(name="orders").is_resync_asked
    page = browser.get(f"{url}{QUERY}").content.decode()
    assert page.count(" checked") == 6, "the choice of some, the key and the column; three kinds"
    assert browser.post(url, {**form, "which": "all"}).status_code == 302
    assert columns(replicator) == ()
    assert browser.get(f"{url}?schema=shop&table=none").status_code == 404


def test_a_copy_that_keeps_the_past_says_that_it_goes(
    browser: Client, replicator: Replicator
) -> None:
    Table.objects.update(state="replicating", mode="history")
    page = browser.get(f"/replicators/{replicator.pk}/tables/columns/{QUERY}").content.decode()
    assert "the past goes" in page and "history mode" in page


def test_a_chosen_column_is_known_under_its_new_name() -> None:
    """The choice has the name of when it was made; by names alone the page would show the column as
    left out."""
    old = Column("note", String(), "text", ordinal=2)
    known = TableSchema(ORDERS, (Column("id", Int(64), "bigint", ordinal=1), old), ("id",))
    columns = (known.columns[0], Column("text", String(), "text", ordinal=2),
               Column("more", String(), "text", ordinal=3))  # fmt: skip
    found = TableSchema(ORDERS, columns, ("id",))
    schema = followed(
        found,
        TableSelection(ORDERS, ("note",)),
        known,
        SchemaPolicy.EVOLVE,
        ColumnKnowledge.BY_CATALOG,
    )
    assert [c.name for c in schema.columns] == ["id", "text"]
