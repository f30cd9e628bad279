"""The tables of a replicator, live: states in words, what fails and what to do, order, filters, two
thousand of them."""

from __future__ import annotations

import re
import time
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from replicators.models import Replicator
from runners.models import Table, TableMetric
from runners.states import TableState
from tests.app.pages import htmx, make_live, make_tables, page, panel

pytestmark = pytest.mark.django_db


@pytest.fixture
def url(replicator: Replicator) -> str:
    return f"{replicator.get_absolute_url()}tables/"


def names(html: str) -> list[str]:
    return re.findall(r'data-table="([\w.]+)"', html)


def test_a_copy_shows_rows_total_rate_and_the_time_left(
    browser: Client, replicator: Replicator, url: str
) -> None:
    make_live(replicator)
    table = Table.objects.get(name="orders")
    Table.objects.filter(pk=table.pk).update(
        state=TableState.SNAPSHOTTING, rows_snapshotted=42_000, rows_total=100_000
    )
    TableMetric.objects.create(
        table=table, at=timezone.now() - timedelta(seconds=60), resolution_seconds=10,
        rows_snapshotted=12_000,
    )  # fmt: skip
    html = page(browser, url)
    assert '<progress max="100" value="42"' in html
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html)).replace("&nbsp;", " ")
    assert re.search(
        r"42 k of about 100 k rows · 42 % · (4\d\d|500) rows/s · about (2 min|11\d s) left", text
    )


def test_a_table_with_another_name_at_the_source_says_it(
    browser: Client, replicator: Replicator, url: str
) -> None:
    """Guards the name that is read beside the row; the schema itself, which is large, is not read
    for the page."""
    make_live(replicator)
    Table.objects.filter(name="orders").update(schema={"called": ["shop", "sales"]})
    assert 'now <span class="mono">shop.sales</span> at the source' in page(browser, url)
    Table.objects.filter(name="orders").update(schema={"called": ["shop", "orders"]})
    assert "at the source</span>" not in page(browser, url)


def test_a_failing_table_says_why_what_to_do_and_when_it_is_tried_again(
    browser: Client, replicator: Replicator, url: str
) -> None:
    run = make_live(replicator)
    Table.objects.filter(name="orders").update(
        state=TableState.FAILING, error_code="target:table-replaced", error_since=timezone.now(),
        retry_at=timezone.now() + timedelta(seconds=40), failures=1,
    )  # fmt: skip
    html = page(browser, url)
    assert 'data-code="target:table-replaced"' in html
    assert "What to do:" in html
    assert re.search(r"Retrying <time[^>]*>in (39|40) s</time>; 1 try so far", html)
    Table.objects.update(retry_at=None)
    html = page(browser, url)
    assert "Fix the cause, then retry or re-sync." in html and "Retry now" in html
    orders = Table.objects.filter(name="orders")
    orders.update(error_code="log:table-over-limit")
    html = page(browser, url)
    assert "Fix the cause, then re-sync." in html and "Retry now" not in html
    orders.update(error_code="target:table-replaced")
    run.delete()
    Replicator.objects.update(desired_state="paused")
    assert "tried again after Resume" in page(browser, url)
    body = {"schema": "shop", "table": "orders"}
    answer = browser.post(f"{url}resync/", body, headers=htmx(url))
    assert "Will be copied afresh" in answer.content.decode()
    assert Table.objects.get(name="orders").is_resync_asked


def test_a_paused_replicators_tables_are_paused(
    browser: Client, replicator: Replicator, url: str
) -> None:
    """Guards `status.tables_held` on the page of tables, and that its filters know the state that
    is shown."""
    Table.objects.update(state=TableState.REPLICATING, is_snapshot_done=True)
    Table.objects.filter(name="orders").update(state=TableState.FAILING)
    html = page(browser, url)
    assert 'data-state="replicating"' not in html
    assert names(page(browser, f"{url}?state=paused")) == ["shop.customers"]
    assert names(page(browser, f"{url}?state=failing")) == ["shop.orders"]
    assert "No table matches" in page(browser, f"{url}?state=replicating")


def test_failing_tables_come_first_and_filters_are_in_the_address(
    browser: Client, replicator: Replicator, url: str
) -> None:
    make_tables(replicator, 3)
    Table.objects.filter(name="t0002").update(state=TableState.FAILING)
    assert names(page(browser, url))[0] == "many.t0002"
    assert names(page(browser, f"{url}?state=failing")) == ["many.t0002"]
    assert names(page(browser, f"{url}?search=p.ord")) == ["shop.orders"]
    assert names(page(browser, f"{url}?sort=-changes"))[0] == "many.t0002"
    assert names(page(browser, f"{url}?sort=-lag"))[0] == "many.t0002"
    assert names(page(browser, f"{url}?sort=-name"))[0] == "shop.orders"
    assert "No table matches" in page(browser, f"{url}?search=nothing")
    Table.objects.filter(name="t0001").update(is_chosen=False)
    assert "many.t0001" not in names(page(browser, url))


def test_a_table_is_removed_after_a_question_that_names_it(
    browser: Client, replicator: Replicator, url: str
) -> None:
    asked = f"{url}remove/?schema=shop&table=orders"
    assert "shop.orders" in page(browser, asked)
    assert "<html" not in panel(browser, asked, url)
    body = {"schema": "shop", "table": "orders", "drop_target": "true"}
    assert browser.post(f"{url}remove/", body, headers=htmx(url)).status_code == 200
    assert "shop.orders" not in names(page(browser, url))
    assert browser.get(asked).status_code == 404


def test_adding_a_table_that_can_not_be_copied_is_refused_in_place(
    browser: Client, url: str
) -> None:
    assert f'href="{url}pick/"' in page(browser, url)
    answer = browser.post(f"{url}add/", {"schema": "shop", "table": "gone"}, headers=htmx(url))
    assert answer.status_code == 409
    assert 'role="alert"' in answer.content.decode()
    assert "<p>Table <code>shop.gone</code> does not exist" in answer.content.decode()


def test_two_thousand_tables_are_paged_and_answer_at_once(
    browser: Client, replicator: Replicator, url: str
) -> None:
    make_live(replicator)
    make_tables(replicator, 2000)
    first = page(browser, f"{url}?sort=name")
    assert len(names(first)) == 50
    assert "1–50 of" in first
    assert len(names(page(browser, f"{url}?sort=name&page=41"))) == 2
    times = []
    for address in (
        url,
        f"{url}?search=t19&sort=-lag",
        f"{url}?page=20",
        replicator.get_absolute_url(),
    ):
        begun = time.perf_counter()
        assert len(panel(browser, address, url)) < 250_000  # 50 rows with their menus
        times.append(time.perf_counter() - begun)
    assert min(times) < 1.0, times
