"""One replicator's head and overview, and the actions, as a browser and as HTMX ask for them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from drafts.models import Draft
from replicators.models import Replicator
from replicators.services import params_of
from runners.models import Event, Progress, ReplicatorMetric, Table
from runners.services import table_resync
from runners.states import TableState
from runners.supervision.removal import TRIES
from tests.app.factories import SECRET, make_replicator, make_run
from tests.app.pages import htmx, make_live, make_metrics, make_tables, page, panel

pytestmark = pytest.mark.django_db


def test_the_page_is_whole_without_htmx_and_a_panel_with_the_head_beside_it(
    browser: Client, replicator: Replicator
) -> None:
    url = replicator.get_absolute_url()
    whole, part = page(browser, url), panel(browser, url, url)
    for html in (whole, part):
        assert 'id="replicator-body"' in html
        assert 'id="replicator-head"' in html
    assert "<html" in whole
    assert "hx-swap-oob" not in whole
    assert "<html" not in part
    assert part.count("hx-swap-oob") == 1
    assert browser.get(url)["Vary"].count("HX-Request") == 1


@pytest.mark.parametrize("tab", ["", "tables/"])
def test_a_panel_that_did_not_change_answers_204(
    browser: Client, replicator: Replicator, tab: str
) -> None:
    url = replicator.get_absolute_url() + tab
    version = re.search(r"version=(\w+)", page(browser, url))
    assert version
    again = f"{url}?version={version[1]}"
    assert browser.get(again, headers=htmx(url)).status_code == 204
    Table.objects.filter(name="orders").update(inserts=7)
    assert browser.get(again, headers=htmx(url)).status_code == 200
    assert browser.get(again).status_code == 200


def test_a_panel_of_a_replicator_that_is_gone_leads_to_the_list(
    browser: Client, replicator: Replicator
) -> None:
    url = replicator.get_absolute_url()
    replicator.delete()
    tabs = ("", "tables/", "head/", "charts/", "activity/", "logs/?after=1")
    for part in (url + tab for tab in tabs):
        assert browser.get(part, headers=htmx(url))["HX-Redirect"] == "/"
        assert browser.get(part).status_code == 404


def test_what_is_left_at_an_unreachable_source_is_shown_after_the_delete(browser: Client) -> None:
    from runners.services import replicator_delete
    from runners.supervision.removal import drop_replicator

    gone = make_replicator(source_params={"host": "h", "fault": "unreachable"})
    url = gone.get_absolute_url()
    replicator_delete(replicator=gone, actor=None, keep_target=True)
    now = timezone.now()
    drop_replicator(gone.pk, now)
    assert f"1 try of {TRIES}" in page(browser, url)
    for step in range(1, TRIES):
        drop_replicator(gone.pk, now + timedelta(hours=step))
    assert browser.get(url, headers=htmx(url))["HX-Redirect"] == url
    for where in (url, "/activity/"):
        assert f"DROP SLOT {gone.slot_name};" in page(browser, where)


@pytest.mark.parametrize("part", ["", "charts/", "head/", "tables/"])
def test_a_clean_delete_leads_its_open_page_to_the_list_with_a_message(
    browser: Client, part: str
) -> None:
    """Guards that it does not matter which part of an open page asks first: the chart's refresh led
    to another page than the metrics'."""
    from runners.services import replicator_delete
    from runners.supervision.removal import drop_replicator

    gone = make_replicator()
    replicator_delete(replicator=gone, actor=None, keep_target=True)
    assert drop_replicator(gone.pk)
    url = gone.get_absolute_url()
    assert browser.get(url + part, headers=htmx(url))["HX-Redirect"] == "/"
    assert "shop to lakehouse is deleted." in page(browser, "/")


def test_start_pause_and_resume_are_offered_when_they_fit(
    browser: Client, replicator: Replicator
) -> None:
    url = replicator.get_absolute_url()
    assert 'data-act="start"' in page(browser, url)
    assert browser.post(f"{url}start/")["Location"] == url
    assert 'data-act="pause"' in page(browser, url)
    run = make_run(replicator)
    assert "toast" in browser.post(f"{url}pause/", headers=htmx(url))["HX-Trigger"]
    assert "Pausing" in page(browser, url)
    run.delete()
    make_run(replicator, state="stopped")
    assert 'data-act="resume"' in page(browser, url)


@pytest.mark.parametrize(
    ("tab", "ids"),
    [
        ("", {"replicator-head", "replicator-body"}),
        ("tables/?search=ord", {"replicator-head", "replicator-body"}),
        ("logs/", {"replicator-head"}),
        (None, {"replicators"}),
    ],
)
def test_an_act_refreshes_every_live_panel_of_the_page_it_came_from(
    browser: Client, replicator: Replicator, tab: str | None, ids: set[str]
) -> None:
    url = replicator.get_absolute_url()
    at = "/?state=busy" if tab is None else url + tab
    html = browser.post(f"{url}start/", headers=htmx(at)).content.decode()
    assert set(re.findall(r'id="(replicator[a-z-]*)"[^>]*hx-swap-oob', html)) == ids
    if tab and "search" in tab:
        assert 'data-table="shop.orders"' in html
        assert 'data-table="shop.customers"' not in html


def test_without_htmx_an_act_leads_back_to_the_page_it_came_from(
    browser: Client, replicator: Replicator
) -> None:
    url = f"{replicator.get_absolute_url()}start/"
    ours, theirs = "http://testserver/?state=paused", "http://elsewhere.example/"
    assert browser.post(url, headers={"Referer": ours})["Location"] == ours
    back = browser.post(url, headers={"Referer": theirs})["Location"]
    assert back == replicator.get_absolute_url()


def test_an_act_that_does_not_fit_is_a_409_with_a_message_in_place_and_a_toast(
    browser: Client, replicator: Replicator
) -> None:
    url = replicator.get_absolute_url()
    table = {"schema": "shop", "table": "orders"}
    for headers in ({}, htmx(f"{url}tables/"), htmx("/")):
        refused = browser.post(f"{url}tables/retry/", table, headers=headers)
        assert refused.status_code == 409
        assert 'role="alert"' in refused.content.decode()
        assert refused.content.decode().count('id="act-errors"') == 1
        assert "error" in refused["HX-Trigger"]
    missing = browser.post(f"{url}tables/resync/", {"schema": "shop", "table": "gone"})
    assert missing.status_code == 404


def test_a_viewer_sees_no_actions(client: Client, viewer: Any, replicator: Replicator) -> None:
    client.force_login(viewer)
    url = replicator.get_absolute_url()
    for address in ("/", url, f"{url}tables/"):
        html = page(client, address)
        assert "data-act=" not in html
        assert "Duplicate" not in html


def test_delete_names_what_goes_and_asks_about_the_target(
    browser: Client, replicator: Replicator
) -> None:
    url = f"{replicator.get_absolute_url()}delete/"
    assert 'name="keep_target" value="false"' in page(browser, url)
    assert "<html" not in panel(browser, url)
    done = browser.post(url, {"keep_target": "false"})
    assert done["Location"] == replicator.get_absolute_url()
    replicator.refresh_from_db()
    assert replicator.deleting_since is not None
    assert replicator.keep_target is False
    assert 'data-state="deleting"' in page(browser, "/")
    assert "target&#x27;s tables go too" in page(browser, replicator.get_absolute_url()).replace(
        "'", "&#x27;"
    )


def test_a_postgresql_source_names_its_slot_and_both_publications() -> None:
    from replicators.sources.postgresql import PLUGIN

    assert PLUGIN.objects("replicator_1") == [
        ("replication slot", "replicator_1"),
        ("publication", "replicator_1_full"),
        ("publication", "replicator_1_ins"),
    ]


def test_a_duplicate_is_a_draft_with_a_free_name_and_the_secrets(
    browser: Client, replicator: Replicator
) -> None:
    for name in ("shop to lakehouse (copy)", "shop to lakehouse (copy 2)"):
        answer = browser.post(f"{replicator.get_absolute_url()}duplicate/")
        draft = Draft.objects.get(name=name)
        assert str(draft.pk) in answer["Location"]
    assert answer["Location"].endswith("/target/?copied=yes")
    assert draft.tables == replicator.tables
    assert params_of(draft, "source")["password"] == SECRET
    assert draft.target_params["namespace"] == "shop_copy2"
    assert "shop_copy2</code>" in page(browser, answer["Location"])
    assert "drafts-beside" in page(browser, "/")


# --- overview ----------------------------------------------------------------------------------------------------  # noqa: E501
def test_the_overview_says_lag_rate_percentiles_and_the_worst_table(
    browser: Client, replicator: Replicator
) -> None:
    make_live(replicator)
    make_metrics(replicator, count=30, growth=500)
    done = {"state": TableState.REPLICATING, "is_snapshot_done": True}
    Table.objects.update(**done, lag_seconds=0.0)
    Table.objects.filter(name="customers").update(lag_seconds=75.0)
    html = page(browser, replicator.get_absolute_url())
    lag = re.search(r'data-testid="lag"[^>]*>([^<]+)<', html)
    assert lag
    assert lag[1].startswith("7") and lag[1].endswith(" s")
    assert "shop.<wbr>customers</span></dd>" in html
    assert re.search(r">50<span class=\"unit\">", html), "500 changes in 10 s"
    assert '1.5 s <span class="metric-part">p50' in html


def test_metrics_that_nobody_renews_are_called_old(browser: Client, replicator: Replicator) -> None:
    make_live(replicator)
    url = replicator.get_absolute_url()
    assert "These metrics are old" not in page(browser, url)
    Progress.objects.update(facts_at=timezone.now() - timedelta(seconds=40))
    html = page(browser, url)
    assert "These metrics are old" in html
    assert re.search(r"4\d s ago", html)


def test_the_sources_log_is_shown_in_the_sources_words(browser: Client) -> None:
    made = make_replicator("pg")
    said = timezone.now().timestamp()
    make_live(made, is_slot_active=True, retained_bytes=12_400_000, hours_left=5.2,
              source_at=said, log_bytes=3_000, segments_waiting=2, is_log_limited=True,
              source_bytes_per_second=2_500_000.0)  # fmt: skip
    Replicator.objects.filter(pk=made.pk).update(source_kind="postgresql")
    html = page(browser, made.get_absolute_url())
    for text in (
        "Replication slot",
        "WAL retained",
        "12.4 MB",
        "5 h <span",
        "at 2.5 MB/s (mean of 10 minutes), if nothing more is read",
        "3.0 kB",
        "2 segments",
    ):
        assert text in html
    assert "Active" in html
    facts = {"source_at": said, "is_log_limited": True, "hours_left": None}
    Progress.objects.update(facts=facts)
    assert "known after a minute" in page(browser, made.get_absolute_url())
    Progress.objects.update(facts=facts | {"is_log_limited": False})
    assert "no limit set" in page(browser, made.get_absolute_url())


def test_before_a_source_answered_nothing_is_said_of_its_log(
    browser: Client, replicator: Replicator
) -> None:
    make_live(replicator, retained_bytes=0, is_slot_active=False, source_at=None)
    html = page(browser, replicator.get_absolute_url())
    assert "no limit set" not in html
    assert "not asked yet" in html


def test_the_overview_shows_the_first_failing_tables_and_how_many_more(
    browser: Client, replicator: Replicator
) -> None:
    make_live(replicator)
    make_tables(replicator, 8)
    Table.objects.filter(schema_name="many").update(
        state=TableState.FAILING, error_code="target:table-replaced", error_since=timezone.now(),
        retry_at=timezone.now() + timedelta(seconds=40), failures=3,
    )  # fmt: skip
    html = page(browser, replicator.get_absolute_url())
    assert html.count('data-code="target:table-replaced"') == 5
    assert ">3 more<" in html
    assert "Retrying <time" in html
    assert "3 tries so far" in html


def test_charts_have_their_metrics_behind_them_and_say_when_there_are_none(
    browser: Client, replicator: Replicator
) -> None:
    url = f"{replicator.get_absolute_url()}charts/"
    assert "No metrics in this range" in panel(browser, url)
    make_metrics(replicator, count=12)
    html = panel(browser, f"{url}?range=1h")
    assert 'id="charts-data"' in html
    assert html.count("<tr><td>") == 12
    assert 'id="range-7d"' in html
    assert "No metrics" in panel(browser, f"{url}?range=24h"), "minutes are samples of their own"


def test_a_head_alone_is_for_pages_whose_body_stands_still(
    browser: Client, replicator: Replicator
) -> None:
    url = replicator.get_absolute_url()
    html = panel(browser, f"{url}head/?tab=logs", f"{url}logs/")
    assert "data-poll" in html
    assert re.search(r'logs/" aria-current="page"', html)


@pytest.mark.parametrize(
    ("tab", "most"),
    [("", 24), ("tables/", 16), ("activity/", 15), ("logs/", 14), ("configuration/", 11)],
)
def test_a_page_asks_the_database_the_same_however_many_tables(
    browser: Client, replicator: Replicator, django_assert_max_num_queries: Any, tab: str, most: int
) -> None:
    make_live(replicator)
    make_tables(replicator, 120)
    make_metrics(replicator, count=20)
    for _ in range(30):
        Event.objects.create(replicator=replicator, kind="table_failed", code="target:permission")
    with django_assert_max_num_queries(most):
        page(browser, replicator.get_absolute_url() + tab)


def test_a_copy_is_one_sum_of_all_tables(browser: Client, replicator: Replicator) -> None:
    """Guards `copy_progress`: bars stood beside "0 of about 300 rows", were empty beside copied
    rows, and full where nothing was known; what waited for its turn was not counted."""
    make_live(replicator)
    url = replicator.get_absolute_url()
    Table.objects.update(state=TableState.SNAPSHOTTING, rows_snapshotted=50, rows_total=None)
    html = page(browser, url)
    assert "0 of 2 tables copied · 100 rows" in html and "of about" not in html
    assert "<progress" not in html
    Table.objects.update(rows_total=250)
    html = page(browser, url)
    assert "20 % · 100 of about 500 rows" in html
    assert '<progress max="100" value="20"' in html
    Table.objects.filter(name="orders").update(
        state=TableState.REPLICATING, is_snapshot_done=True, rows_snapshotted=300, rows_total=300
    )
    customers = Table.objects.filter(name="customers")
    customers.update(state=TableState.WAITING, rows_snapshotted=0, rows_total=900)
    assert "1 of 2 tables copied · 25 % · 300 of about 1.2 k rows" in _bare(page(browser, url))
    customers.update(rows_snapshotted=0, state=TableState.SNAPSHOTTING)
    html = page(browser, f"{url}tables/")
    assert "begins, about 900 rows" in html and "<progress" not in html
    customers.update(rows_snapshotted=1000)
    html = page(browser, f"{url}tables/")
    assert "1 k rows" in _bare(html) and "of about" not in html
    status = browser.get(f"/api/v1/replicators/{replicator.pk}/status/").json()
    assert status["copy"] == {
        "tables": 2, "tables_done": 1, "rows": 1300, "rows_expected": 1300, "percent": 99,
        "rows_per_second": None, "seconds_left": None,
    }  # fmt: skip


def test_a_copy_tells_rate_and_time_left(browser: Client, replicator: Replicator) -> None:
    make_live(replicator)
    Table.objects.update(state=TableState.SNAPSHOTTING, rows_snapshotted=2500, rows_total=5000)
    end = timezone.now()
    for number in range(6):
        ReplicatorMetric.objects.create(
            replicator=replicator, at=end - timedelta(seconds=10 * (5 - number)),
            resolution_seconds=10, rows_snapshotted=number * 1000,
        )  # fmt: skip
    html = page(browser, replicator.get_absolute_url())
    assert "50 % · 5 k of about 10 k rows" in _bare(html)
    assert "about 50 s left" in html


def test_a_later_copy_counts_what_was_asked_for_then(
    browser: Client, replicator: Replicator
) -> None:
    """Guards `copying._done`: a table that is added to large ones would begin at 99 %."""
    make_live(replicator)
    Table.objects.update(state=TableState.REPLICATING, is_snapshot_done=True, rows_snapshotted=900)
    table_resync(replicator=replicator, schema="shop", name="orders", actor=None)
    Table.objects.filter(name="orders").update(
        state=TableState.SNAPSHOTTING, is_snapshot_done=False, rows_snapshotted=10, rows_total=100
    )
    html = page(browser, replicator.get_absolute_url())
    assert "0 of 1 table copied · 10 % · 10 of about 100 rows" in html


def _bare(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html).replace("&nbsp;", " ")
