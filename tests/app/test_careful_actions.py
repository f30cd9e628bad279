"""Actions that would do something else than the person saw: stale pages, missing fields, names that
are almost the same."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from drafts.models import Draft
from drafts.reports import report_of
from drafts.services import draft_assess, draft_update
from replicators import throttle
from replicators.config import parse_tables
from replicators.connectors.model.schema import TableId, TableSelection
from replicators.models import Replicator
from runners.models import NewTable, Table
from runners.tables.changes import table_change
from tests.app.factories import PASSWORD, config_fields, make_user
from tests.app.pages import page
from tests.app.wizarding import address, make_draft, press

pytestmark = pytest.mark.django_db

ORDERS = TableId("shop", "orders")


def test_a_delete_that_does_not_say_what_becomes_of_the_data_keeps_it(
    browser: Client, replicator: Replicator
) -> None:
    """Guards `runners.pages.actions.delete`: a form without the field would drop the target's
    tables where only `true` kept them."""
    browser.post(f"/replicators/{replicator.pk}/delete/", {})
    replicator.refresh_from_db()
    assert replicator.deleting_since is not None
    assert replicator.keep_target is True


def test_a_summary_that_is_old_deploys_nothing(browser: Client, editor: Any) -> None:
    """Guards the version in `drafts.report_pages._deploy`: without it *Deploy* makes what somebody
    else chose after the summary was shown."""
    draft = make_draft(editor)
    press(browser, draft, "assessment", "run")
    press(browser, draft, "assessment", "accept-all")
    seen = Draft.objects.get().version
    draft_update(draft=draft, version=seen, target_params={"namespace": "elsewhere"})
    refused = press(browser, draft, "summary", "deploy", version=seen)
    assert refused.status_code == 409
    assert "Changed in another tab" in refused.content.decode()
    assert not Replicator.objects.exists()
    assert press(browser, draft, "summary", "deploy").status_code == 302
    assert Replicator.objects.get().target_params["namespace"] == "elsewhere"


def test_two_who_choose_columns_at_once_do_not_overwrite_each_other(
    browser: Client, replicator: Replicator
) -> None:
    """Guards the version of `drafts.table_columns`: the second form would bring back the columns
    that the first one left out, and copy them."""
    url = f"/replicators/{replicator.pk}/tables/columns/"
    opened = browser.get(f"{url}?schema=shop&table=orders")
    old = {"schema": "shop", "table": "orders", "version": opened.context["version"]}
    assert f'name="version" value="{old["version"]}"' in opened.content.decode()
    narrow = TableSelection(ORDERS, ("id",))
    table_change(replicator=replicator, selection=narrow, actor=None)
    refused = browser.post(url, {**old, "which": "all"})
    assert refused.status_code == 409
    assert "Somebody changed" in refused.content.decode()
    replicator.refresh_from_db()
    assert narrow in parse_tables(replicator.tables)
    again = {**old, "version": refused.context["version"], "which": "all"}
    assert browser.post(url, again).status_code == 302


def test_a_new_table_is_added_under_the_very_name_that_was_shown(
    browser: Client, replicator: Replicator
) -> None:
    """Guards `runners.pages.actions.table_add`: stripped of its blank the name is that of another
    table, which would be copied."""
    NewTable.objects.create(replicator=replicator, schema_name="shop", name="page_views ")
    url = f"/replicators/{replicator.pk}/tables/add/"
    assert browser.post(url, {"schema": "shop", "table": "page_views "}).status_code == 409
    replicator.refresh_from_db()
    assert {t["name"] for t in replicator.tables} == {"orders", "customers"}
    assert browser.post(url, {"schema": " shop ", "table": "page_views  "}).status_code == 302
    assert Table.objects.filter(name="page_views").exists(), "what a person typed is stripped"


def test_a_failing_table_says_what_a_resync_would_take_away(
    browser: Client, replicator: Replicator
) -> None:
    """Guards the sentence beside *Re-sync*, which is one click away from the end of what a history
    holds."""
    text, url = "kept of the past goes", f"/replicators/{replicator.pk}/"
    Table.objects.update(state="failing", error_code="target:unreachable")
    assert text not in page(browser, url)
    Table.objects.filter(name="orders").update(mode="history")
    assert page(browser, url).count(text) == 1


def test_without_javascript_a_removed_table_leads_to_a_page_that_is_there(
    browser: Client, replicator: Replicator
) -> None:
    """Guards `runners.pages.actions._back`: the page that asked is gone together with its table."""
    url = f"/replicators/{replicator.pk}/tables/remove/"
    asked = f"http://testserver{url}?schema=shop&table=orders"
    form = {"schema": "shop", "table": "orders", "drop_target": "false"}
    done = browser.post(url, form, headers={"Referer": asked}, follow=True)
    assert done.status_code == 200
    assert "shop.orders is followed no longer" in done.content.decode()


@pytest.mark.parametrize(
    "changed",
    [{"filter": "id > 1"}, {"excluded": ["inserts"]}, {"unsupported": "quarantine"}],
    ids=["filter", "kinds", "values"],
)
def test_a_report_is_old_when_anything_that_it_looked_at_changed(
    editor: Any, changed: dict[str, Any]
) -> None:
    """Guards `drafts.digests.assessed_digest`: what is missing there is called assessed although
    nobody looked at it."""
    draft = make_draft(editor)
    draft_assess(draft=draft)
    tables = [{**draft.tables[0], **changed}, *draft.tables[1:]]
    now = draft_update(draft=draft, version=draft.version, tables=tables)
    report = report_of(now)
    assert report is not None and report.is_stale


def test_the_administrations_own_form_is_no_way_around_the_throttle(client: Client) -> None:
    """Guards `replicators.views.admin_login`: the administration's own form lets anybody guess as
    often as he likes."""
    make_user("root", is_superuser=True, is_staff=True)
    form = {"username": "root", "password": PASSWORD}
    led = client.post("/admin/login/?next=/admin/auth/user/", form)
    assert led["Location"] == "/sign-in/?next=/admin/auth/user/"
    assert client.get("/admin/", follow=True).redirect_chain[-1][0].startswith("/sign-in/")
    assert client.post(led["Location"], form)["Location"] == "/admin/auth/user/"
    assert client.get("/admin/").status_code == 200
    client.force_login(make_user("stranger"))
    assert client.get("/admin/", follow=True).status_code == 403, "and not a circle of redirects"


def test_behind_a_proxy_guesses_count_for_whoever_makes_them(client: Client, settings: Any) -> None:
    """Guards `throttle.address_of`: with the proxy's address one guesser keeps everybody from
    signing in. What the browser itself puts into the header counts for nothing."""
    settings.BEHIND_PROXY = True
    for number in range(throttle.PER_ADDRESS):
        throttle.failed(f"name {number}", "192.0.2.1")

    def tried(forwarded: str) -> int:
        form = {"username": "nobody", "password": "y"}
        headers = {"X-Forwarded-For": forwarded}
        return client.post("/sign-in/", form, headers=headers).status_code

    assert tried("192.0.2.1") == 429
    assert tried("198.51.100.9, 192.0.2.1") == 429
    assert tried("192.0.2.1, 198.51.100.9") == 422
    settings.BEHIND_PROXY = False
    assert tried("192.0.2.1") == 422


def test_a_form_with_numbers_and_names_of_any_size_is_answered(
    browser: Client, editor: Any
) -> None:
    """Guards the parsing of hidden fields: a draft with half a character in a name can't be shown
    any more."""
    draft = make_draft(editor)
    assert press(browser, draft, "name", "save", version="9" * 5000).status_code == 409
    for hostile in ("[" * 100_000, r'["\ud800", "x"]'):
        press(browser, draft, "tables", "save", tables=hostile, shown=hostile)
        assert browser.get(address(draft, "summary")).status_code == 200
    assert len(Draft.objects.get(pk=draft.pk).tables) == len(config_fields()["tables"])
