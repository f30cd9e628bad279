"""The page of tables: searched and paged on the server, chosen in the draft, right also where the
source changed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from drafts import choice
from drafts.digests import source_digest
from drafts.listing import PAGE_ROWS
from drafts.models import Draft, Listing
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.sources.memory import catalog
from tests.app.wizarding import HTMX, address, connector, make_draft, packed, press, ticked

pytestmark = pytest.mark.django_db
MANY = 2000


@pytest.fixture
def large_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source of two thousand tables in two schemas."""
    column = catalog.TABLES[TableId("shop", "customers")].columns[:1]
    ids = [TableId("old" if n % 2 else "shop", f"t{n:04}") for n in range(MANY)]
    tables = {i: TableSchema(i, column, ("id",), ("id",)) for i in ids}
    monkeypatch.setattr(catalog, "TABLES", tables)


@pytest.fixture
def draft(browser: Client, editor: Any) -> Draft:
    """A draft without tables whose source was listed."""
    made = make_draft(editor, tables=[])
    press(browser, made, "tables", "list")
    return made


def names(draft: Draft) -> list[str]:
    draft.refresh_from_db()
    return [t["name"] for t in draft.tables]


def test_the_filter_by_schema_is_filled_with_the_list(browser: Client, editor: Any) -> None:
    """Guards the select in the answer to the first question to the source: it stands outside of the
    panel, and stayed empty until the page was loaded again."""
    draft = make_draft(editor, tables=[])
    first = browser.get(address(draft, "tables")).content.decode()
    assert 'id="tables-schema"' in first and "hx-swap-oob" not in first
    html = press(browser, draft, "tables", "list", htmx=True).content.decode()
    select = html.partition('<select class="form-select" id="tables-schema"')[2].partition(
        "</select>"
    )[0]
    assert 'hx-swap-oob="true"' in select and "shop (4)" in select


def test_the_source_is_asked_once_and_again_only_when_told(
    browser: Client, draft: Draft, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "TABLES", {})
    html = browser.get(address(draft, "tables")).content.decode()
    assert "page_views" in html and "Listed" in html
    press(browser, draft, "tables", "refresh")
    assert "page_views" not in browser.get(address(draft, "tables")).content.decode()


def test_another_source_is_listed_anew(browser: Client, draft: Draft) -> None:
    press(browser, draft, "source", "autosave", **connector("source", host="elsewhere"))
    html = browser.get(address(draft, "tables")).content.decode()
    assert "Asking the source for its tables" in html
    assert "page_views" not in html


def test_a_source_that_fails_is_reported_and_the_old_list_stays(
    browser: Client, draft: Draft, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(self: Any) -> Any:
        raise RuntimeError("driver text")

    monkeypatch.setattr(catalog.MemoryCatalog, "list_tables", crash)
    html = press(browser, draft, "tables", "refresh", htmx=True).content.decode()
    assert 'data-code="internal:unexpected"' in html and "driver text" not in html
    assert "page_views" in html


def test_without_a_whole_source_the_page_leads_there(browser: Client, editor: Any) -> None:
    draft = make_draft(editor, source_params={}, tables=[])
    assert "Fill in the source first" in browser.get(address(draft, "tables")).content.decode()


def test_ticks_and_kinds_of_changes_are_stored(browser: Client, draft: Draft) -> None:
    form = ticked("orders", "page_views", deletes=("orders",))
    html = press(browser, draft, "tables", "autosave", htmx=True, **form).content.decode()
    assert 'id="draft-version" value="2"' in html
    assert "<strong>2</strong> of 4 tables chosen" in html
    draft.refresh_from_db()
    assert [(t["name"], t["excluded"]) for t in draft.tables] == [
        ("orders", ["deletes"]),
        ("page_views", []),
    ]


def test_a_choice_survives_search_paging_and_bulk(
    browser: Client, editor: Any, large_source: None
) -> None:
    draft = make_draft(editor, tables=[{"schema": "shop", "name": "t0000", "columns": ["id"]}])
    press(browser, draft, "tables", "list")
    shown = ("t0000", "t0002")
    page = press(browser, draft, "tables", "page:3", **ticked("t0000", "t0002", shown=shown))
    assert page["Location"].endswith("?page=3")
    html = browser.get(page["Location"]).content.decode()
    assert f"{2 * PAGE_ROWS + 1}–{3 * PAGE_ROWS} of {MANY}" in html
    assert html.count('name="shown"') == PAGE_ROWS
    searched = press(browser, draft, "tables", "choose-all", search="T000", schema="shop")
    assert "search=T000" in searched["Location"]
    assert names(draft) == [f"t{n:04}" for n in range(0, 10, 2)]
    assert draft.tables[0]["columns"] == ["id"]
    press(browser, draft, "tables", "choose-all")
    assert len(names(draft)) == MANY
    press(browser, draft, "tables", "clear-all", schema="old")
    assert len(names(draft)) == MANY // 2
    html = browser.get(address(draft, "tables") + "?search=t0001").content.decode()
    assert "old" in html and 'aria-label="Copy old.t0001"' in html
    only = browser.get(address(draft, "tables") + "?show=chosen&schema=old").content.decode()
    assert "No table matches" in only


def test_tables_that_vanished_are_shown_and_can_be_dropped(browser: Client, draft: Draft) -> None:
    draft.tables = choice.added([], [("shop", "orders"), ("shop", "gone")])
    draft.save()
    html = browser.get(address(draft, "tables")).content.decode()
    assert 'data-testid="missing"' in html and "shop.gone" in html
    assert "not in the source" in html
    press(browser, draft, "tables", "drop-missing", **ticked("orders"))
    assert names(draft) == ["orders"]


def test_a_stale_tab_keeps_its_ticks(browser: Client, draft: Draft) -> None:
    press(browser, draft, "tables", "autosave", **ticked("orders"))
    stale = press(browser, draft, "tables", "search", version=1, **ticked("customers"))
    html = stale.content.decode()
    assert stale.status_code == 409 and 'data-testid="conflict"' in html
    assert html.count('checked aria-label="Copy') == 1
    assert 'checked aria-label="Copy shop.customers"' in html
    press(browser, draft, "tables", "save", version=1, keep="2", **ticked("customers"))
    assert names(draft) == ["customers"]


def test_columns_are_shown_with_types_and_keys_and_chosen(browser: Client, draft: Draft) -> None:
    url = address(draft, "tables") + "columns/"
    page = browser.get(url, {"schema": "shop", "table": "orders"}).content.decode()
    for text in ("timestamptz", "timestamp", "jsonb", "it becomes text", "<html"):
        assert text in page
    form = {
        "schema": "shop",
        "table": "orders",
        "version": 1,
        "which": "some",
        "columns": "made_at",
    }
    saved = browser.post(url, form, headers=HTMX)
    assert "columnsSaved" in saved["HX-Trigger-After-Settle"]
    draft.refresh_from_db()
    assert draft.tables[0]["columns"] == ["id", "made_at"]
    assert "2 of 3" in browser.get(address(draft, "tables")).content.decode()
    assert browser.post(url, form).status_code == 409
    browser.post(url, {**form, "which": "all", "version": 2})
    draft.refresh_from_db()
    assert draft.tables[0]["columns"] == []
    gone = browser.get(url, {"schema": "shop", "table": "gone"}).content.decode()
    assert 'data-code="source:table-missing"' in gone
    assert browser.get(url).status_code == 404


def test_what_is_no_table_is_skipped(browser: Client, draft: Draft) -> None:
    form = {"shown": ["[1, 2]", "{", '"x"', *packed("orders")], "tables": packed("orders")}
    press(browser, draft, "tables", "autosave", **form)
    assert names(draft) == ["orders"]


@pytest.mark.parametrize("act", ["autosave", "page:2"])
def test_a_click_asks_the_database_little_with_two_thousand_tables(
    act: str,
    browser: Client,
    editor: Any,
    large_source: None,
    django_assert_max_num_queries: Any,
) -> None:
    draft = make_draft(editor, tables=[])
    press(browser, draft, "tables", "list")
    assert len(Listing.objects.get().tables) == MANY
    form = ticked("t0000", shown=("t0000",))
    with django_assert_max_num_queries(14):
        assert press(browser, draft, "tables", act, htmx=True, **form).status_code == 200


def test_a_choice_of_columns_is_a_list_that_knows_all() -> None:
    key = ("s", "t")
    tables = choice.added([], [key])
    less = choice.without_columns(tables, key, {"b"}, ["a", "b", "c"])
    assert less[0]["columns"] == ["a", "c"]
    again = choice.with_column_again(less, key, "b", ["a", "b", "c"], is_explicit=False)
    assert again[0]["columns"] == []
    kept = choice.with_column_again(less, key, "b", ["a", "b", "c"], is_explicit=True)
    assert kept[0]["columns"] == ["a", "b", "c"]
    assert choice.without_columns(tables, key, {"a", "b"}, ["a", "b"]) == tables


def test_a_table_gets_a_mode_of_its_own_in_the_drawer(browser: Client, draft: Draft) -> None:
    """Guards the drawer's choice of mode: kept with the table, shown in the list, and taken
    back."""
    url = address(draft, "tables") + "columns/"
    page = browser.get(url, {"schema": "shop", "table": "orders"}).content.decode()
    assert "As the replicator: Mirror" in page and "Soft delete" in page
    form = {"schema": "shop", "table": "orders", "version": 1, "which": "all", "mode": "history"}
    browser.post(url, form, headers=HTMX)
    draft.refresh_from_db()
    assert [(t["name"], t["mode"]) for t in draft.tables] == [("orders", "history")]
    assert (
        '<span class="badge-plain">History</span>'
        in browser.get(address(draft, "tables")).content.decode()
    )
    browser.post(url, {**form, "version": 2, "mode": "sideways"}, headers=HTMX)
    draft.refresh_from_db()
    assert draft.tables[0]["mode"] == ""


@pytest.mark.parametrize(
    ("kind", "reported"), [("mysql", "All changes"), ("memory", "Inserts only")]
)
def test_a_table_without_a_key_says_what_follows_from_this_source(
    kind: str, reported: str, browser: Client, editor: Any
) -> None:
    """Guards the source's own word: of MySQL and MariaDB updates and deletes are followed without a
    key too."""
    params = {"host": "h", **({"user": "u"} if kind == "mysql" else {})}
    draft = make_draft(editor, source_kind=kind, source_params=params, tables=[])
    Listing.objects.create(
        draft=draft,
        digest=source_digest(draft),
        tables=[["shop", "page_views", 10, 1000, False, 1]],
        listed_at=timezone.now(),
    )
    html = browser.get(address(draft, "tables")).content.decode()
    found = re.findall(r'<span class="ops-shown meta">([^<]*)<', html)
    assert found == [reported]
    assert ("as often as the source does" in html) == (kind == "mysql")
