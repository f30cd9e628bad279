"""Tables are added to a deployed replicator from the source's list, several at once; a wrong name
can't be typed."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from assessments import services as assessments
from drafts import listing
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.problem import Problem, Severity
from replicators.models import Replicator
from replicators.services import replicator_update
from replicators.sources.memory.checks import MemoryChecks
from runners.tables import changes
from tests.app.pages import page
from tests.app.wizarding import HTMX, packed

pytestmark = pytest.mark.django_db


def address(replicator: Replicator) -> str:
    return f"/replicators/{replicator.pk}/tables/pick/"


def press(
    browser: Client, replicator: Replicator, act: str, htmx: bool = False, **form: Any
) -> Any:
    return browser.post(address(replicator), {"act": act, **form}, headers=HTMX if htmx else {})


def names(replicator: Replicator) -> set[str]:
    replicator.refresh_from_db()
    return {t["name"] for t in replicator.tables}


def test_the_list_holds_what_is_not_copied_yet_and_the_source_is_asked_once(
    browser: Client, replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `find_addable` and the kept list: each search would ask the source again."""
    assert 'href="' + address(replicator) in page(browser, f"/replicators/{replicator.pk}/tables/")
    assert "Asking the source" in page(browser, address(replicator))
    html = press(browser, replicator, "list", htmx=True).content.decode()
    assert 'data-table="shop.page_views"' in html and 'data-table="shop.places"' in html
    assert 'data-table="shop.orders"' not in html
    select = html.partition('id="tables-schema"')[2].partition("</select>")[0]
    assert "hx-swap-oob" in select and "shop (2)" in select
    monkeypatch.setattr(listing, "list_tables", None)
    assert 'data-table="shop.places"' in page(browser, address(replicator))
    found = press(browser, replicator, "search", search="plac").content.decode()
    assert 'data-table="shop.places"' in found and "page_views" not in found


def test_what_is_picked_stays_over_a_search_and_is_added_after_one_assessment(
    browser: Client, replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `picked` in `_posted`: without JavaScript a search would forget the ticks of the page
    before."""
    press(browser, replicator, "list")
    asked: list[int] = []
    assess = assessments.assess
    monkeypatch.setattr(changes, "assess", lambda c: asked.append(len(c.tables)) or assess(c))
    both = packed("page_views", "places")
    html = press(
        browser, replicator, "search", search="places", shown=both, tables=packed("page_views")
    ).content.decode()
    assert 'name="picked" value="[&quot;shop&quot;, &quot;page_views&quot;]"' in html
    form = {"picked": packed("page_views"), "shown": packed("places"), "tables": packed("places")}
    done = press(browser, replicator, "add", **form)
    assert done["Location"] == f"/replicators/{replicator.pk}/tables/"
    assert "2 tables will be copied" in page(browser, done["Location"])
    assert names(replicator) == {"orders", "customers", "page_views", "places"}
    assert asked == [4]


def test_all_that_match_are_picked_and_cleared(browser: Client, replicator: Replicator) -> None:
    press(browser, replicator, "list")
    html = press(browser, replicator, "choose-all", search="page").content.decode()
    assert html.count("checked aria-label") == 1
    html = press(browser, replicator, "clear-all", picked=packed("page_views", "places"))
    assert "checked aria-label" not in html.content.decode()


@pytest.mark.parametrize("picked", [(), ("gone",), ("orders",)])
def test_what_the_list_does_not_have_is_not_added(
    picked: tuple[str, ...], browser: Client, replicator: Replicator
) -> None:
    """Guards `_add`: only what the source said can be picked, and nothing twice."""
    press(browser, replicator, "list")
    refused = press(browser, replicator, "add", tables=packed(*picked))
    assert refused.status_code == 422
    assert "Choose at least one table." in refused.content.decode()
    assert names(replicator) == {"orders", "customers"}


def test_an_error_of_one_adds_none_and_keeps_the_ticks(
    browser: Client, replicator: Replicator
) -> None:
    """Guards `replicator_tables_add`: half of what was picked would be added, and a person could
    not tell which."""
    Replicator.objects.update(target_params={"namespace": "shop", "fault": "taken"})
    press(browser, replicator, "list")
    refused = press(browser, replicator, "add", htmx=True, tables=packed("page_views", "places"))
    html = refused.content.decode()
    assert refused.status_code == 409
    assert html.count('data-code="target:table-taken"') == 2
    assert html.count("checked aria-label") == 2
    assert names(replicator) == {"orders", "customers"}


def test_a_table_is_added_without_the_columns_that_can_not_be_copied(
    browser: Client, replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `_selection`: a table with one such column could not be added on any page."""
    place = TableId("shop", "places")
    error = Severity.ERROR
    code = "source:column-unsupported"
    unsupported = Problem.of(code, severity=error, table=place, column="shape", native="x")
    reported = MemoryChecks.tables

    def tables(checks: MemoryChecks, found: Any) -> list[Problem]:
        is_whole = any(t.id == place and not t.columns for t in found)
        return [unsupported] if is_whole else reported(checks, found)

    monkeypatch.setattr(MemoryChecks, "tables", tables)
    press(browser, replicator, "list")
    refused = press(browser, replicator, "add", tables=packed("places")).content.decode()
    assert "Add without this column" in refused and "Nothing was added" in refused
    form = {"tables": packed("places"), "left_out": ['["shop", "places", "shape"]', "[1]"]}
    assert press(browser, replicator, "add-without", **form).status_code == 302
    replicator.refresh_from_db()
    assert next(t for t in replicator.tables if t["name"] == "places")["columns"] == ["id"]


def test_a_source_that_can_not_be_asked_is_reported(
    browser: Client, replicator: Replicator
) -> None:
    replicator_update(replicator=replicator, actor=None, source_params={"fault": "unreachable"})
    html = press(browser, replicator, "list", htmx=True).content.decode()
    assert 'data-code="source:unreachable"' in html and 'value="refresh"' in html
