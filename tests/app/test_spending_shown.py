"""What merges cost at the target is stored, and the pages say it in words."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from replicators.connectors import registry
from replicators.connectors.budgets import HOUR_SECONDS, Budget
from replicators.connectors.model.schema import TableId
from replicators.connectors.target import Accuracy, Estimate, MergeCost
from replicators.models import Replicator
from runners.engine.apply.spending import Spending
from runners.models import Table
from runners.store.django import DjangoStore
from tests.app.factories import make_run
from tests.app.pages import make_live, page

pytestmark = pytest.mark.django_db
ORDERS = TableId("shop", "orders")
BUDGET = Budget(a_table=1500, in_all=100_000, noun="load jobs")


@pytest.fixture
def store(replicator: Replicator, monkeypatch: pytest.MonkeyPatch) -> DjangoStore:
    """The store of a run whose target has a budget."""
    counting = replace(registry.targets()["memory"], budget=BUDGET)
    monkeypatch.setattr(registry, "targets", lambda: {"memory": counting})
    make_live(replicator)
    run = replicator.runs.first() or make_run(replicator)
    return DjangoStore(run.pk, run.lease)


def used(store: DjangoStore, count: int) -> None:
    store.table_progress(ORDERS, spent={str(int(time.time() // HOUR_SECONDS)): count})


def test_a_slower_table_says_how_much_of_the_day_is_used(
    browser: Client, replicator: Replicator, store: DjangoStore
) -> None:
    """Guards the whole way, from the engine's count in the database to the page."""
    url = f"{replicator.get_absolute_url()}tables/"
    assert "load jobs" not in page(browser, url)
    used(store, 1310)
    assert (
        "Merged every 199 s, since 1,310 of 1,500 load jobs of the last 24 hours are used."
        in page(browser, url)
    )
    overview = page(browser, replicator.get_absolute_url())
    assert "Load jobs of the last 24 hours" in overview
    assert "the busiest table" in overview
    again = Spending(DjangoStore(store._run.pk, store._lease), BUDGET)
    assert again.seconds(ORDERS) == pytest.approx(199, abs=1)


def test_bytes_read_are_shown_and_a_whole_table_is_warned_of(
    browser: Client, replicator: Replicator, store: DjangoStore
) -> None:
    url = f"{replicator.get_absolute_url()}tables/"
    store.record_cost(ORDERS, MergeCost(scanned_bytes=84_000_000))
    html = page(browser, url)
    assert "read 84.0 MB" in html and "reads the whole table" not in html
    store.record_cost(ORDERS, MergeCost(scanned_bytes=1_200_000_000, is_pruned=False))
    assert "Each merge reads the whole table, 1.2 GB" in page(browser, url)
    tables: Any = browser.get(f"/api/v1/replicators/{replicator.pk}/tables/").json()
    shown = {t["table"]: (t["scanned_bytes"], t["is_pruned"]) for t in tables}
    assert shown == {"orders": (1_200_000_000, False), "customers": (None, True)}


@pytest.mark.parametrize(
    ("accuracy", "words"),
    [
        (Accuracy.EXACT, "exactly 84.0 MB"),
        (Accuracy.AT_LEAST, "at least 84.0 MB"),
        (Accuracy.AT_MOST, "at most 84.0 MB"),
        (Accuracy.UNKNOWN, "about 84.0 MB"),
    ],
)
def test_what_a_merge_will_read_is_shown_until_a_newer_estimate(
    browser: Client, replicator: Replicator, store: DjangoStore, accuracy: Accuracy, words: str
) -> None:
    """Guards that a merge without an estimate of its own leaves the last one on the page."""
    url = f"{replicator.get_absolute_url()}tables/"
    store.record_cost(ORDERS, MergeCost())
    assert 'data-testid="estimated"' not in page(browser, url)
    store.record_cost(ORDERS, MergeCost(estimate=Estimate(84_000_000, accuracy)))
    store.record_cost(ORDERS, MergeCost(scanned_bytes=9))
    assert f"estimate: {words}" in page(browser, url)
    tables: Any = browser.get(f"/api/v1/replicators/{replicator.pk}/tables/").json()
    shown = {t["table"]: (t["estimated_bytes"], t["estimate_accuracy"]) for t in tables}
    assert shown == {"orders": (84_000_000, accuracy.value), "customers": (None, "")}


def test_a_target_that_counts_nothing_says_nothing(browser: Client, replicator: Replicator) -> None:
    make_live(replicator)
    Table.objects.filter(name="orders").update(spent={"1": 9})
    assert 'data-testid="spending"' not in page(browser, replicator.get_absolute_url())
