"""Log, activity and configuration: filtered, followed by cursor, downloaded, without secrets."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from replicators.models import Replicator
from runners.logs.read import LOG_LINES
from runners.models import Event, LogLine
from runners.services import replicator_pause, replicator_start, run_ask_stop
from runners.transitions import run_transition
from tests.app.factories import SECRET, make_replicator, make_run
from tests.app.pages import htmx, page, panel
from tests.app.wizarding import make_draft

pytestmark = pytest.mark.django_db


def write(replicator: Replicator, text: str, level: str = "INFO", table: str = "") -> LogLine:
    return LogLine.objects.create(
        replicator=replicator, at=timezone.now(), level=level, text=text, table=table
    )


def test_the_log_is_filtered_and_followed_by_cursor(
    browser: Client, replicator: Replicator
) -> None:
    url = f"{replicator.get_absolute_url()}logs/"
    assert "No lines yet" in page(browser, url)
    write(replicator, "first <b>")
    write(replicator, "second", "ERROR", "shop.orders")
    html = page(browser, url)
    assert "first &lt;b&gt;" in html
    assert "first &lt;b" not in page(browser, f"{url}?level=ERROR")
    assert "first &lt;b" not in page(browser, f"{url}?table=shop.orders")
    assert "<option>shop.orders</option>" in html
    assert "No line matches" in page(browser, f"{url}?search=nothing")
    after = LogLine.objects.latest("pk").pk
    assert f"after={after}" in html
    assert browser.get(f"{url}?after={after}", headers=htmx(url)).status_code == 204
    write(replicator, "third")
    more = panel(browser, f"{url}?after={after}", url)
    assert "third" in more
    assert "second" not in more


def test_earlier_lines_are_fetched_ahead_of_the_first(
    browser: Client, replicator: Replicator
) -> None:
    for number in range(LOG_LINES + 5):
        write(replicator, f"line {number:03}")
    url = f"{replicator.get_absolute_url()}logs/"
    html = page(browser, url)
    assert "line 005" in html
    assert "line 004" not in html
    first = LogLine.objects.get(text="line 005").pk
    assert f"before={first}" in html
    earlier = panel(browser, f"{url}?before={first}", url)
    assert "line 004" in earlier
    assert "log-next" not in earlier
    assert "log-earlier" not in earlier
    assert "line 004" in page(browser, f"{url}?before={first}"), "and without HTMX"


def test_a_log_is_downloaded_as_it_is_filtered(
    browser: Client, replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `loglines.log_pages` too, which goes on from page to page while it is sent."""
    monkeypatch.setattr("runners.logs.read._PAGE", 2)
    for number in range(4):
        write(replicator, f"line {number}", "ERROR")
    write(replicator, "kept", "ERROR", "shop.orders")
    write(replicator, "left out")
    url = f"{replicator.get_absolute_url()}logs/"
    response = browser.get(f"{url}?level=ERROR&download")
    assert response["Content-Disposition"].startswith("attachment")
    assert response.streaming
    text = response.getvalue().decode()
    assert [text.count(f" line {number}\n") for number in range(4)] == [1] * 4
    assert text.endswith("Z ERROR shop.orders kept\n")
    assert "left out" not in text


def test_activity_says_who_did_what_and_why_runs_ended(
    browser: Client, replicator: Replicator, editor: Any
) -> None:
    url = f"{replicator.get_absolute_url()}activity/"
    assert "Nothing has happened yet" in page(browser, url)
    replicator_start(replicator=replicator, actor=editor)
    replicator_pause(replicator=replicator, actor=editor)
    make_run(
        replicator, state="failed", error_code="source:login-refused",
        started_at=timezone.now() - timedelta(minutes=3), ended_at=timezone.now(),
    )  # fmt: skip
    Event.objects.create(
        replicator=replicator, kind="table_failed", schema_name="shop", table_name="orders",
        code="target:table-replaced",
    )  # fmt: skip
    for address in (url, "/activity/"):
        html = page(browser, address)
        assert "Paused" in html
        assert "by editor" in html
        assert "shop.orders" in html
        people = page(browser, f"{address}?by=people")
        assert "Table failed" not in people
        assert "Started" in people
    assert "Login refused" in page(browser, url)
    assert "3 min" in page(browser, url)


def test_activity_is_paged_by_cursor_and_answers_204_when_nothing_happened(
    browser: Client, replicator: Replicator
) -> None:
    for number in range(105):
        Event.objects.create(replicator=replicator, kind="run_created", actor=f"person{number:03}")
    html = page(browser, "/activity/")
    assert "person005" in html
    assert "person004" not in html
    before = Event.objects.get(actor="person005").pk
    assert f"before={before}" in html
    more = panel(browser, f"/activity/?before={before}")
    assert "person004" in more
    assert "<section" not in more
    version = html.split("version=")[1][:16]
    assert browser.get(f"/activity/?version={version}", headers=htmx()).status_code == 204


def test_the_configuration_is_readable_and_an_export_has_no_secrets(
    browser: Client, replicator: Replicator
) -> None:
    url = f"{replicator.get_absolute_url()}configuration/"
    html = page(browser, url)
    assert "shop.customers" in html
    assert "Merge every" in html
    assert "s3cret" not in html
    response = browser.get(f"{url}?download")
    assert "attachment" in response["Content-Disposition"]
    assert "password" not in response.json()["source_params"]


def test_a_log_says_which_table_it_is_filtered_by_also_where_it_has_no_line(
    browser: Client, replicator: Replicator
) -> None:
    """Guards the list of tables, which has those with lines only: *All* stood there over a filtered
    log."""
    html = page(browser, f"{replicator.get_absolute_url()}logs/?table=shop.orders")
    assert "<option selected>shop.orders</option>" in html and "No line matches" in html


@pytest.mark.parametrize(
    ("unsupported", "reported"), [("quarantine", "quarantines rows"), ("stop", "stops at values")]
)
def test_what_a_table_does_at_values_that_do_not_fit_is_read_on_the_pages(
    unsupported: str, reported: str, browser: Client, editor: Any
) -> None:
    """Guards a choice that REST stores for one table: no page but the JSON showed it."""
    tables = [{"schema": "shop", "name": "orders", "unsupported": unsupported}]
    made, draft = make_replicator(tables=tables), make_draft(editor, tables=tables)
    assert f"{reported} that do not fit" in page(
        browser, f"{made.get_absolute_url()}configuration/"
    )
    assert f"{reported} that do not fit" in page(browser, f"/drafts/{draft.pk}/summary/")


def test_the_guide_of_the_api_leads_from_an_export_to_a_replicator_that_runs(
    browser: Client, replicator: Replicator
) -> None:
    """Guards the guide's lines on building: each address is one that answers so."""
    guide = page(browser, "/api/")
    body = browser.get(f"/api/v1/replicators/{replicator.pk}/export/").json()
    body["name"] = "another"
    body["source_params"]["password"] = SECRET
    pk = ""
    for path, status in (("drafts/", 201), ("assess/", 200), ("deploy/", 201)):
        asked = path if path == "drafts/" else f"drafts/$DRAFT/{path}"
        assert f"http://testserver/api/v1/{asked}" in guide
        url = f"/api/v1/{asked.replace('$DRAFT', pk)}"
        answer = browser.post(url, body, content_type="application/json")
        assert answer.status_code == status, path
        pk = pk or answer.json()["id"]
    assert Replicator.objects.get(name="another").desired_state == "running"


def test_a_run_that_was_stopped_says_by_whom(
    browser: Client, replicator: Replicator, editor: Any
) -> None:
    """Guards `RunView.ended`: a restart for new settings was reported as "by itself", a pause as
    "as a person asked"."""
    url = f"{replicator.get_absolute_url()}activity/"
    for origin, actor, reported in (
        ("user", "demo", "Stopped by demo"),
        ("change", "demo", "Restarted by demo, with new settings"),
        ("shutdown", "", "Stopped with its worker"),
    ):
        run = make_run(replicator, state="running", started_at=timezone.now())
        run_ask_stop(run=run, origin=origin, actor=actor)
        run_transition(run=run, event="run_stopped")
        html = page(browser, url)
        assert reported in html
        assert "by itself" not in html


def test_a_file_is_named_by_the_replicator_and_the_time(
    browser: Client, replicator: Replicator
) -> None:
    """Guards the names of downloads, which were a UUID."""
    url = replicator.get_absolute_url()
    for path, kind in (("configuration/?download", "json"), ("logs/?download", "log")):
        reported = browser.get(f"{url}{path}")["Content-Disposition"]
        assert re.fullmatch(
            rf'attachment; filename="shop-to-lakehouse-\d{{8}}-\d{{6}}\.{kind}"', reported
        )


@pytest.mark.parametrize(
    ("facts", "is_left", "reported", "not_reported"),
    [
        ({"keep_target": True}, False, "stay in the target as they were", "replicator_progress"),
        ({"keep_target": False}, False, "<code>replicator_progress</code> stays there", "left in"),
        ({"keep_target": False}, True, "Something is left in the target", "are dropped"),
        ({}, False, "Nothing is left at the source", "in the target"),
    ],
)
def test_a_deleted_replicator_says_what_is_left(
    facts: dict[str, Any], is_left: bool, reported: str, not_reported: str, browser: Client
) -> None:
    """Guards `target_after`: "Everything is removed" was said while tables stayed."""
    pk = str(uuid.uuid4())
    facts = {"id": pk, "name": "gone", "statements": [], **facts}
    Event.objects.create(kind="replicator_deleted", facts=facts)
    if is_left:
        Event.objects.create(kind="target_left", facts={"id": pk, "replicator": "gone"})
    html = page(browser, f"/replicators/{pk}/")
    assert reported in html
    assert not_reported not in html
