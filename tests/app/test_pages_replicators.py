"""The list, the live panel, the acts and the log, as a browser and as HTMX asks for them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from replicators.models import Replicator
from runners.models import LogLine, Table
from runners.states import TableState

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def browser(client: Client, editor: Any) -> Client:
    """Signed in as an editor."""
    client.force_login(editor)
    return client


def _page(browser: Client, url: str, **more: Any) -> str:
    response = browser.get(url, **more)
    assert response.status_code == 200
    return str(response.content.decode())


def test_an_empty_list_leads_to_the_first_replicator(browser: Client) -> None:
    html = _page(browser, "/")
    assert 'data-testid="empty"' in html
    assert 'href="/replicators/new/"' in html


def test_the_page_is_complete_without_htmx_and_a_panel_with_it(
    browser: Client, replicator: Replicator
) -> None:
    url = replicator.get_absolute_url()
    page, panel = _page(browser, url), _page(browser, url, headers=HTMX)
    for html in (page, panel):
        assert 'data-table="shop.orders"' in html
        assert 'data-state="waiting"' in html
    assert "<html" in page
    assert "<html" not in panel
    assert browser.get(url)["Vary"].count("HX-Request") == 1


def test_a_panel_that_did_not_change_answers_204(browser: Client, replicator: Replicator) -> None:
    url = replicator.get_absolute_url()
    version = re.search(r"version=(\w+)", _page(browser, url))
    assert version
    again = f"{url}?version={version[1]}"
    assert browser.get(again, headers=HTMX).status_code == 204
    Table.objects.filter(name="orders").update(inserts=7)
    assert browser.get(again, headers=HTMX).status_code == 200
    assert browser.get(again).status_code == 200


def test_a_panel_of_a_deleted_replicator_leads_to_the_list(
    browser: Client, replicator: Replicator
) -> None:
    url = replicator.get_absolute_url()
    replicator.delete()
    assert browser.get(url, headers=HTMX)["HX-Redirect"] == "/"
    assert browser.get(url).status_code == 404


def test_start_pause_and_resume_are_offered_when_they_fit(
    browser: Client, replicator: Replicator
) -> None:
    from tests.app.factories import make_run

    url = replicator.get_absolute_url()
    assert 'id="act-start"' in _page(browser, url)
    assert browser.post(f"{url}start/")["Location"] == url
    assert 'id="act-pause"' in _page(browser, url)
    run = make_run(replicator)
    panel = browser.post(f"{url}pause/", headers=HTMX)
    assert "toast" in panel["HX-Trigger"]
    run.delete()
    make_run(replicator, state="stopped")
    assert 'id="act-resume"' in _page(browser, url)


def test_an_act_that_does_not_fit_is_a_409_with_a_message(
    browser: Client, replicator: Replicator
) -> None:
    url = replicator.get_absolute_url()
    table = {"schema": "shop", "table": "orders"}
    for headers in ({}, HTMX):
        refused = browser.post(f"{url}tables/retry/", table, headers=headers)
        assert refused.status_code == 409
        assert 'role="alert"' in refused.content.decode()
    missing = browser.post(f"{url}tables/resync/", {"schema": "shop", "table": "gone"})
    assert missing.status_code == 404


def test_a_failing_table_says_why_and_what_to_do(browser: Client, replicator: Replicator) -> None:
    Table.objects.filter(name="orders").update(
        state=TableState.FAILING, error_code="target:table-replaced", error_since=timezone.now()
    )
    url = replicator.get_absolute_url()
    html = _page(browser, url)
    assert 'data-code="target:table-replaced"' in html
    assert "What to do:" in html
    assert "Retry now" in html
    browser.post(f"{url}tables/resync/", {"schema": "shop", "table": "orders"})
    assert Table.objects.get(name="orders").is_resync_asked


def test_a_viewer_sees_no_acts(client: Client, viewer: Any, replicator: Replicator) -> None:
    client.force_login(viewer)
    html = _page(client, replicator.get_absolute_url())
    assert 'id="act-' not in html
    assert "Re-sync" not in html


def test_delete_names_what_goes_and_asks_about_the_target(
    browser: Client, replicator: Replicator
) -> None:
    url = f"{replicator.get_absolute_url()}delete/"
    assert replicator.slot_name in _page(browser, url)
    assert "<html" not in _page(browser, url, headers=HTMX)
    assert browser.post(url, {})["Location"] == "/"
    replicator.refresh_from_db()
    assert replicator.deleting_since is not None
    assert replicator.keep_target is False
    assert 'data-state="deleting"' in _page(browser, "/")


def test_the_log_is_filtered_and_followed_by_cursor(
    browser: Client, replicator: Replicator
) -> None:
    for text, level in (("first <b>", "INFO"), ("second", "ERROR")):
        LogLine.objects.create(replicator=replicator, at=timezone.now(), level=level, text=text)
    url = f"{replicator.get_absolute_url()}log/"
    html = _page(browser, url)
    assert "first &lt;b&gt;" in html
    assert "first &lt;b" not in _page(browser, f"{url}?level=ERROR")
    assert "No line matches" in _page(browser, f"{url}?search=nothing")
    after = LogLine.objects.latest("pk").pk
    assert f"after={after}" in html
    assert browser.get(f"{url}?after={after}", headers=HTMX).status_code == 204
    LogLine.objects.create(replicator=replicator, at=timezone.now(), level="INFO", text="third")
    more = _page(browser, f"{url}?after={after}", headers=HTMX)
    assert "third" in more
    assert "second" not in more


def test_an_export_is_a_file_without_secrets(browser: Client, replicator: Replicator) -> None:
    response = browser.get(f"{replicator.get_absolute_url()}configuration/?download")
    assert "attachment" in response["Content-Disposition"]
    assert "password" not in response.json()["source_params"]
