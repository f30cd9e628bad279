"""Which kinds of changes a table takes, inserts among them: chosen on the pages and over REST,
checked, kept, shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from assessments.modes import mode_problems
from drafts.models import Draft
from replicators.config import ReplicatorConfig, parse_tables
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.models import Replicator
from runners.models import Event, Table
from runners.store.mapping import selections, table_row
from tests.app.factories import config_fields, make_replicator
from tests.app.wizarding import HTMX, address, make_draft, press, ticked

pytestmark = pytest.mark.django_db
NAME = TableId("shop", "orders")


@pytest.fixture
def draft(browser: Client, editor: Any) -> Draft:
    """A draft without tables whose source was listed."""
    made = make_draft(editor, tables=[])
    press(browser, made, "tables", "list")
    return made


def left(draft: Draft) -> dict[str, list[str]]:
    draft.refresh_from_db()
    return {t["name"]: t["excluded"] for t in draft.tables}


def test_inserts_are_left_out_by_a_box_beside_the_others(browser: Client, draft: Draft) -> None:
    """Guards the box: inserts were shown as always copied."""
    form = ticked("orders", "customers", inserts=("orders",), deletes=("orders",))
    page = press(browser, draft, "tables", "autosave", htmx=True, **form)
    assert page.status_code == 200
    assert left(draft) == {"orders": ["inserts", "deletes"], "customers": []}
    shown = browser.get(address(draft, "tables")).content.decode()
    assert 'aria-label="Inserts of shop.orders"' in shown
    assert 'checked aria-label="Inserts of shop.orders"' not in shown
    assert 'checked aria-label="Inserts of shop.customers"' in shown
    assert "without inserts and deletes" in browser.get(address(draft, "summary")).content.decode()


def test_a_kind_is_left_out_of_all_chosen_tables_that_are_found(
    browser: Client, draft: Draft
) -> None:
    """Guards the bulk act: those that are not chosen, not found or without a key stay as they
    are."""
    names = ("customers", "orders", "page_views")
    form = ticked(*names)
    press(browser, draft, "tables", "kinds", kind="inserts:leave", **form)
    assert left(draft) == {"customers": ["inserts"], "orders": ["inserts"], "page_views": []}
    press(browser, draft, "tables", "kinds", kind="inserts:copy", search="orders")
    assert left(draft) == {"customers": ["inserts"], "orders": [], "page_views": []}
    press(browser, draft, "tables", "kinds", kind="sideways", search="orders")
    assert left(draft)["orders"] == []


def test_the_drawer_takes_kinds_and_says_where_inserts_can_not_be_left_out(
    browser: Client, draft: Draft
) -> None:
    """Guards the check at the field: history would keep versions of rows that are left out."""
    url = address(draft, "tables") + "columns/"
    form = {
        "schema": "shop",
        "table": "orders",
        "version": 1,
        "which": "all",
        "has_kinds": "yes",
        "kinds": ["updates", "deletes"],
    }
    refused = browser.post(url, {**form, "mode": "history"}, headers=HTMX)
    assert refused.status_code == 422 and "keeps versions" in refused.content.decode()
    filtered = browser.post(url, {**form, "filter": "id > 3"}, headers=HTMX)
    assert filtered.status_code == 422 and "row filter" in filtered.content.decode()
    assert left(draft) == {}
    assert browser.post(url, {**form, "mode": "append"}, headers=HTMX).status_code == 200
    assert left(draft) == {"orders": ["inserts"]}


def test_the_assessment_says_why() -> None:
    """Guards what REST could send: without a key the copy would hold rows that nobody asked for."""
    keyed = TableSchema(NAME, (Column("id", Int(64), "bigint"),), ("id",), ("id",))

    def found(schema: TableSchema, *excluded: str, **more: str) -> list[str]:
        table = {"schema": "shop", "name": "orders", "excluded": list(excluded), **more}
        config = ReplicatorConfig.parse(config_fields(tables=[table]))
        return [p.code for p in mode_problems(config, [schema]) if "inserts" in p.code]

    wrong = ["target:mode-inserts"]
    assert found(keyed, "inserts") == found(keyed, "inserts", "updates") == []
    assert found(keyed, "inserts", mode="history") == wrong
    assert found(keyed, "inserts", filter="id = 1") == wrong
    assert found(keyed, "inserts", mode="append") == []
    for keyless in (replace(keyed, key=()), replace(keyed, key=(), full_before=True)):
        assert found(keyless, "inserts") == wrong
        assert found(keyless, "inserts", "updates", "deletes") == []


def test_rest_leaves_inserts_out_and_takes_them_again_by_a_fresh_copy(browser: Client) -> None:
    """Guards the re-sync: rows that were inserted meanwhile are not in the log any more."""
    made = make_replicator()
    row = Table.objects.get(replicator=made, name="orders")
    Table.objects.filter(pk=row.pk).update(state="replicating", is_snapshot_done=True)
    body = {"schema": "shop", "table": "orders"}
    for excluded in (["inserts"], []):
        Table.objects.update(is_resync_asked=False)
        answer = browser.put(
            f"/api/v1/replicators/{made.pk}/tables/",
            {**body, "excluded": excluded},
            "application/json",
        )
        assert answer.status_code == 202, answer.content
        made.refresh_from_db()
        row.refresh_from_db()
        assert next(t for t in parse_tables(made.tables) if t.id == NAME).excluded == tuple(
            excluded
        )
        assert row.is_resync_asked
    reported = table_row(row, selections(made))
    assert not reported.leaves_inserts_out and not reported.needs_exact


def test_what_is_exported_can_be_made_a_draft_again(browser: Client) -> None:
    tables = [{"schema": "shop", "name": "orders", "excluded": ["inserts", "updates"]}]
    made = make_replicator(tables=tables)
    shown = browser.get(f"/replicators/{made.pk}/configuration/")
    assert "without inserts and updates" in shown.content.decode()
    exported = browser.get(f"/replicators/{made.pk}/configuration/?download").json()
    answer = browser.post(
        "/api/v1/drafts/", {"tables": exported["tables"], "name": "again"}, "application/json"
    )
    assert answer.status_code == 201, answer.content
    assert answer.json()["tables"][0]["excluded"] == ["inserts", "updates"]


def choice(browser: Client, made: Replicator, **more: Any) -> Any:
    form = {"schema": "shop", "table": "orders", "which": "all", "has_kinds": "yes"}
    kinds = ["inserts", "updates", "deletes"]
    url = f"/replicators/{made.pk}/tables/columns/"
    return browser.post(url, {**form, "kinds": kinds, **more}, follow=True)


@pytest.mark.usefixtures("converging")
def test_the_mode_of_a_table_that_runs_is_changed_on_its_page(browser: Client) -> None:
    """Guards the page's way to the mode: it could be changed over REST only. The run sees a copy of
    another mode and makes a fresh one; what is refused over REST is refused here."""
    made = make_replicator()
    row = Table.objects.get(replicator=made, name="orders")
    Table.objects.filter(pk=row.pk).update(state="replicating", is_snapshot_done=True)
    page = browser.get(f"/replicators/{made.pk}/tables/columns/?schema=shop&table=orders")
    assert "As the replicator: Mirror" in page.content.decode()
    saved = choice(browser, made, mode="soft_delete")
    assert "shop.orders is copied afresh." in saved.content.decode()
    assert Event.objects.get(kind="table_mode_asked").facts == {"mode": "soft_delete"}
    made.refresh_from_db()
    assert selections(made)[NAME].mode == "soft_delete"
    refused = choice(browser, made, mode="history")
    assert refused.status_code == 409 and "converges" in refused.content.decode()
    saved = choice(browser, made, mode="soft_delete", kinds=["inserts", "updates"])
    assert "What is copied of shop.orders is saved." in saved.content.decode()
    made.refresh_from_db()
    found = next(t for t in parse_tables(made.tables) if t.id == NAME)
    assert (found.mode, found.excluded) == ("soft_delete", ("deletes",))
