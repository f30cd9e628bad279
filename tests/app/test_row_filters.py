"""Row filters on the pages and over REST: typed, checked, kept, shown, and changed on a running
replicator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from assessments.modes import mode_problems
from assessments.services import assess
from drafts.models import Draft
from replicators.config import InvalidConfig, ReplicatorConfig, parse_tables, tables_to_json
from replicators.connectors import registry
from replicators.connectors.model.schema import Column, TableId, TableSchema, TableSelection
from replicators.connectors.model.types import Int
from replicators.models import Replicator
from runners.engine.store.protocol import TableRow
from runners.models import Table
from tests.app.factories import config_fields, make_replicator
from tests.app.wizarding import HTMX, address, make_draft, press

pytestmark = pytest.mark.django_db
NAME = TableId("shop", "orders")


@pytest.fixture
def draft(browser: Client, editor: Any) -> Draft:
    """A draft without tables whose source was listed."""
    made = make_draft(editor, tables=[])
    press(browser, made, "tables", "list")
    return made


def form(text: str, version: int, **more: Any) -> dict[str, Any]:
    return {
        "schema": "shop",
        "table": "orders",
        "version": version,
        "which": "all",
        "filter": text,
        **more,
    }


def test_a_filter_is_typed_beside_the_columns_and_shown_where_the_table_is(
    browser: Client, draft: Draft
) -> None:
    """Guards the way from the drawer to the draft: without it a filter could be set over REST
    only."""
    url = address(draft, "tables") + "columns/"
    saved = browser.post(url, form(" id >= 10 ", 1), headers=HTMX)
    assert "columnsSaved" in saved["HX-Trigger-After-Settle"]
    draft.refresh_from_db()
    assert (draft.tables[0]["filter"], draft.tables[0]["columns"]) == ("id >= 10", [])
    page = browser.get(url, {"schema": "shop", "table": "orders"}).content.decode()
    assert ">id &gt;= 10</textarea>" in page
    assert ">filtered</span>" in browser.get(address(draft, "tables")).content.decode()


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("id >=", "ends where a number or a text"),
        ("id = %1", "is not understood"),
        ("gone = 1", "`gone` is not there"),
        ("made_at IS NULL", "is not there, or is not copied"),
    ],
)
def test_a_faulty_filter_is_reported_and_nothing_typed_is_lost(
    browser: Client, draft: Draft, text: str, reported: str
) -> None:
    """Guards the check before saving: a draft would carry a filter that no deploy can use."""
    url = address(draft, "tables") + "columns/"
    answer = browser.post(url, form(text, 1, which="some", columns=["id"]), headers=HTMX)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert reported in page and "</textarea>" in page and text.split()[0] in page
    draft.refresh_from_db()
    assert draft.version == 1


def test_a_filter_survives_its_json_and_one_that_can_not_be_read_is_refused() -> None:
    """Guards `parse_tables` and `tables_to_json`: a filter that is lost on the way copies every
    row, also those that were not to leave the source."""
    (table,) = parse_tables([{"schema": "s", "name": "t", "filter": " id = 1 "}])
    assert table.filter == "id = 1"
    assert parse_tables(tables_to_json([table])) == (table,)
    for wrong in ("id = ", 5):
        with pytest.raises(InvalidConfig):
            parse_tables([{"schema": "s", "name": "t", "filter": wrong}])


def codes(text: str, mode: str = "", **changes: Any) -> set[str]:
    table = {"schema": "shop", "name": "orders", "filter": text, "mode": mode}
    config = ReplicatorConfig.parse(config_fields(tables=[table], **changes))
    return {p.code for p in assess(config).errors}


def test_the_assessment_says_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards the check against the table: REST takes any filter that can be read."""
    assert codes("id >= 10") == set()
    assert codes("id >= 'a'") == {"source:filter-invalid"}
    assert codes("gone = 1") == {"source:filter-invalid"}
    plugin = registry.sources()["memory"]
    without = replace(plugin, capabilities=replace(plugin.capabilities, has_row_filters=False))
    monkeypatch.setattr(registry, "sources", lambda: {"memory": without})
    assert codes("id >= 10") == {"source:filter-unsupported"}


def test_updates_alone_of_a_table_that_is_counted_can_not_be_left_out() -> None:
    """Guards against a row that is not found when it goes: its update was left out."""
    schema = TableSchema(NAME, (Column("n", Int(64), "bigint"),), full_before=True)

    def found(*excluded: str) -> list[str]:
        table = {"schema": "shop", "name": "orders", "excluded": list(excluded)}
        config = ReplicatorConfig.parse(config_fields(tables=[table]))
        return [p.code for p in mode_problems(config, [schema]) if p.code != "target:mode-missing"]

    assert found("updates") == ["target:mode-updates"]
    assert found("deletes") == found("updates", "deletes") == found() == []


def test_another_filter_than_the_copy_was_made_with_asks_for_a_fresh_copy() -> None:
    """Guards `TableRow.is_outdated`: rows that were left out before can't be had from the log."""
    schema = TableSchema(NAME, (Column("id", Int(64), "bigint"),), ("id",), filter="id = 1")
    row = TableRow(NAME, schema=schema, is_snapshot_done=True, filter="id = 1")
    assert not row.is_outdated
    assert row.selection == TableSelection(NAME, filter="id = 1")
    assert TableRow(NAME, schema=schema, is_snapshot_done=True).is_outdated


def test_a_filter_is_changed_on_a_replicator_that_runs_and_the_table_is_copied_afresh(
    browser: Client, editor: Any
) -> None:
    """Guards the re-sync: the rows that the old filter left out are not in the log."""
    made = make_replicator()
    row = Table.objects.get(replicator=made, name="orders")
    Table.objects.filter(pk=row.pk).update(state="replicating", is_snapshot_done=True)
    url = f"/api/v1/replicators/{made.pk}/tables/"
    body = {"schema": "shop", "table": "orders"}

    def put(**more: Any) -> Any:
        return browser.put(url, {**body, **more}, "application/json")

    refused = put(filter="gone = 1")
    assert (refused.status_code, refused.json()["code"]) == (409, "table-refused")
    assert put(filter="id =").status_code == 400
    assert put(filter="id > 5").status_code == 202
    row.refresh_from_db()
    made.refresh_from_db()
    assert row.is_resync_asked
    chosen = {t["name"]: t for t in made.tables}
    assert (chosen["orders"]["filter"], chosen["customers"]["filter"]) == ("id > 5", "")
    Table.objects.filter(pk=row.pk).update(is_resync_asked=False)
    assert put(filter="id > 5", excluded=["deletes"]).status_code == 202
    row.refresh_from_db()
    assert not row.is_resync_asked
    assert put(table="places").status_code == 404
    page = browser.get(f"/replicators/{made.pk}/configuration/").content.decode()
    assert "<code>id &gt; 5</code>" in page


def test_a_filter_is_seen_and_changed_on_the_page_of_a_deployed_table(
    browser: Client, replicator: Replicator
) -> None:
    """Guards the page's field: a filter was neither shown there nor to be changed but over REST."""
    url = f"/replicators/{replicator.pk}/tables/columns/"
    sent = {"schema": "shop", "table": "orders", "which": "all"}

    def stored() -> str:
        replicator.refresh_from_db()
        return next(t.filter for t in parse_tables(replicator.tables) if t.id.name == "orders")

    assert browser.post(url, {**sent, "filter": "id > 5\r\nAND id < 9"}).status_code == 302
    assert " ".join(stored().split()) == "id > 5 AND id < 9"
    row = Table.objects.get(name="orders")
    assert row.is_resync_asked
    assert (
        "AND id &lt; 9</textarea>"
        in browser.get(f"{url}?schema=shop&table=orders").content.decode()
    )
    for wrong in ("id =", "gone = 1"):
        faulty = browser.post(url, {**sent, "filter": wrong})
        assert faulty.status_code == 422 and 'role="alert"' in faulty.content.decode()
        assert f">{wrong}</textarea>" in faulty.content.decode()
    refused = browser.post(url, {**sent, "filter": "id > 7", "mode": "soft_delete"})
    assert refused.status_code == 409 and ">id &gt; 7</textarea>" in refused.content.decode()
    assert " ".join(stored().split()) == "id > 5 AND id < 9"
    assert browser.post(url, {**sent, "filter": " "}).status_code == 302
    assert stored() == ""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_page_that_is_saved_as_it_is_asks_for_no_fresh_copy(
    end: str, browser: Client, replicator: Replicator
) -> None:
    """Guards the ends of lines, which browsers write in their own way."""
    text = f"id > 5{end}AND id < 9"
    tables = [{**t, "filter": text if t["name"] == "orders" else ""} for t in replicator.tables]
    Replicator.objects.filter(pk=replicator.pk).update(tables=tables)
    form = {"schema": "shop", "table": "orders", "which": "all", "filter": "id > 5\r\nAND id < 9"}
    assert browser.post(f"/replicators/{replicator.pk}/tables/columns/", form).status_code == 302
    replicator.refresh_from_db()
    assert replicator.tables == tables and not Table.objects.get(name="orders").is_resync_asked


@pytest.mark.parametrize(("target", "is_offered"), [("memory", True), ("files", False)])
def test_a_filter_is_offered_only_where_the_target_follows_one(
    browser: Client, draft: Draft, target: str, is_offered: bool
) -> None:
    """Guards `config.can_filter`: the form took a filter that the assessment then refused. One that
    is there already can be removed."""
    Draft.objects.filter(pk=draft.pk).update(target_kind=target)
    url = f"{address(draft, 'tables')}columns/"
    asked = {"schema": NAME.schema, "table": NAME.name}
    assert ('name="filter"' in browser.get(url, asked).content.decode()) is is_offered
    filtered = [{"schema": NAME.schema, "name": NAME.name, "filter": "id > 5"}]
    Draft.objects.filter(pk=draft.pk).update(tables=filtered)
    assert 'name="filter"' in browser.get(url, asked).content.decode()
