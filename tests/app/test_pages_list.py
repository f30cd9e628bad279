"""The list of replicators: filters, search, order, pages, and the banner above everything."""

from __future__ import annotations

import re
import socket
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from replicators.models import Replicator
from runners.models import Run, Sign, Table
from runners.states import RunState, TableState
from tests.app.factories import make_replicator
from tests.app.pages import htmx, make_live, make_metrics, make_tables, page, panel

pytestmark = pytest.mark.django_db


@pytest.fixture
def three(db: None) -> dict[str, Replicator]:
    """One paused, one running, and one of which a table fails."""
    made = {name: make_replicator(name) for name in ("alpha", "beta", "gamma")}
    make_live(made["beta"])
    make_live(made["gamma"])
    Table.objects.filter(replicator=made["gamma"], name="orders").update(
        state=TableState.FAILING, error_code="target:permission"
    )
    return made


def names(html: str) -> list[str]:
    return re.findall(r'data-replicator="(\w+)"', html)


def test_an_empty_list_leads_to_the_first_replicator(browser: Client) -> None:
    html = page(browser, "/")
    assert 'data-testid="empty"' in html
    assert 'href="/replicators/new/"' in html


def test_what_fails_comes_first(browser: Client, three: Any) -> None:
    assert names(page(browser, "/")) == ["gamma", "beta", "alpha"]


def test_states_are_counted_and_filter(browser: Client, three: Any) -> None:
    html = page(browser, "/")
    counted = dict(re.findall(r'>([A-Z][a-z]+) <span class="chip-count">(\d+)', html))
    assert counted == {"All": "3", "Failing": "1", "Running": "1", "Paused": "1"}
    assert names(page(browser, "/?state=paused")) == ["alpha"]
    assert names(page(browser, "/?state=failing")) == ["gamma"]
    assert len(names(page(browser, "/?state=nonsense"))) == 3


def test_search_and_order_are_done_by_the_server(browser: Client, three: Any) -> None:
    assert names(page(browser, "/?search=ET")) == ["beta"]
    assert names(page(browser, "/?sort=-name")) == ["gamma", "beta", "alpha"]
    make_metrics(three["alpha"], count=8)
    assert names(page(browser, "/?sort=-rate"))[0] == "alpha"
    none = page(browser, "/?search=nothing")
    assert "No replicator matches" in none
    assert 'aria-sort="descending"' in page(browser, "/?sort=-lag")


def test_links_keep_what_was_asked_before(browser: Client, three: Any) -> None:
    html = page(browser, "/?state=failing&sort=-name&search=a")
    assert "state=paused&amp;search=a&amp;sort=-name" in html.replace("%2D", "-") or (
        "state=running&amp;search=a&amp;sort=-name" in html
    )
    assert "state=failing&amp;search=a&amp;sort=name" in html


def test_a_line_shows_lag_line_rate_and_last_error(browser: Client, three: Any) -> None:
    make_metrics(three["beta"], count=8)
    make_metrics(three["beta"], count=20, resolution=60)
    html = page(browser, "/?search=beta")
    assert '<svg class="spark"' in html
    assert re.search(r'>5\.0<span class="unit">', html)
    from runners.models import Progress

    Progress.objects.filter(replicator=three["alpha"]).update(
        error_code="source:login-refused", failing_since=timezone.now()
    )
    assert "last-error" in page(browser, "/?search=alpha")


def test_going_back_in_the_history_gives_the_whole_page(browser: Client, three: Any) -> None:
    headers = {**htmx(), "HX-History-Restore-Request": "true"}
    assert "<html" in page(browser, "/?sort=name", headers=headers)


def test_an_unchanged_list_answers_204(browser: Client, replicator: Replicator) -> None:
    version = re.search(r"version=(\w+)", page(browser, "/"))
    assert version
    assert browser.get(f"/?version={version[1]}", headers=htmx()).status_code == 204
    Table.objects.update(inserts=3)
    assert browser.get(f"/?version={version[1]}", headers=htmx()).status_code == 200


def test_a_list_costs_the_same_however_many_replicators_and_tables(
    browser: Client, django_assert_max_num_queries: Any
) -> None:
    for number in range(60):
        make_tables(make_replicator(f"r{number:02}"), 20)
    with django_assert_max_num_queries(12):
        html = page(browser, "/?sort=name")
    assert len(names(html)) == 50
    assert "1–50 of 60" in html
    assert len(names(page(browser, "/?sort=name&page=2"))) == 10
    assert len(names(page(browser, "/?sort=name&page=99"))) == 10


# --- banner ------------------------------------------------------------------------------------------------------  # noqa: E501
def _banner(browser: Client) -> str:
    found = re.search(r'data-testid="banner">.*?<span>(.*?)</span>', panel(browser, "/health/"))
    return re.sub("<[^>]+>", "", found[1]) if found else ""


def test_the_banner_says_what_to_start(browser: Client, settings: Any, three: Any) -> None:
    assert "make dev" in _banner(browser), "no broker is configured"
    cache.clear()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        settings.REDIS_URL = f"redis://127.0.0.1:{port}/0"
        assert "make worker-default" in _banner(browser), "the broker answers, nobody works"
    cache.clear()
    assert f"127.0.0.1:{port}" in _banner(browser), "the broker is down"
    Sign.objects.create(name="reconcile", at=timezone.now())
    assert _banner(browser) == ""
    Run.objects.update(supervised_at=timezone.now() - timedelta(minutes=5))
    assert "make worker-runs" in _banner(browser)
    Run.objects.update(state=RunState.STOPPED)
    assert _banner(browser) == ""


def test_an_unchanged_banner_answers_204(browser: Client) -> None:
    said = re.search(r"said=(\w+)", page(browser, "/"))
    assert said
    assert browser.get(f"/health/?said={said[1]}", headers=htmx()).status_code == 204
