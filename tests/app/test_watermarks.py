"""Watermarks as rows, in REST and on the page."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.test import Client

from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.models import Replicator
from runners.engine.store import watermarks
from runners.engine.store.watermarks import Watermark as Published
from runners.models import Run, Watermark
from runners.store.django import DjangoStore
from tests.app.factories import make_run

pytestmark = pytest.mark.django_db

ORDERS, CUSTOMERS = TableId("shop", "orders"), TableId("shop", "customers")


def mark(number: int, *, kept_seconds: float = 600.0, **left_out: str) -> Published:
    versions = {t: f"v{number}" for t in (ORDERS, CUSTOMERS) if t.name not in left_out}
    out = {TableId("shop", n): why for n, why in left_out.items()}
    now = time.time()
    return Published(number << 32, Position(number * 10), now, now + kept_seconds, versions, out)


@pytest.fixture
def run(replicator: Replicator) -> Run:
    return make_run(replicator)


@pytest.fixture
def store(run: Run) -> DjangoStore:
    return DjangoStore(run.pk, run.lease)


def test_a_watermark_is_one_row_that_needs_the_lease(store: DjangoStore, run: Run) -> None:
    """Guards the fencing of the publication (CORRECTNESS 29, 31): a run that was replaced publishes
    nothing."""
    store.record_watermark(mark(1))
    Run.objects.filter(pk=run.pk).update(lease="another's")
    with pytest.raises(ReplicationError, match="run:lease-lost"):
        store.record_watermark(mark(2))
    assert [w.sequence >> 32 for w in Watermark.objects.all()] == [1]


def test_rows_past_the_targets_history_go_and_the_newest_stays(store: DjangoStore) -> None:
    """Guards the pruning by time: a listed watermark is one whose versions are promised to be
    readable."""
    store.record_watermark(mark(1, kept_seconds=-1))
    assert Watermark.objects.count() == 1
    store.record_watermark(mark(2))
    store.record_watermark(mark(3, kept_seconds=-1))
    assert [w.sequence >> 32 for w in Watermark.objects.all()] == [3, 2]


def test_the_entries_of_all_rows_are_bounded(
    store: DjangoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the pruning by number: thousands of tables do not fill the application's database."""
    monkeypatch.setattr(watermarks, "ENTRIES_KEPT", 6)
    monkeypatch.setattr(watermarks, "LEAST_KEPT", 1)
    for number in range(1, 9):
        store.record_watermark(mark(number))
    assert [w.sequence >> 32 for w in Watermark.objects.all()] == [8, 7, 6]


def test_a_dropped_table_is_named_by_no_watermark(store: DjangoStore) -> None:
    """Guards `forget_versions`: a version of a table that is gone can't be read, whatever the row
    promised."""
    store.record_watermark(mark(1))
    store.forget_versions(ORDERS)
    row = Watermark.objects.get()
    assert row.versions == [["shop", "customers", "v1"]]
    assert row.left_out == [["shop", "orders", "dropped"]]


def test_rest_and_the_page_tell_the_newest_and_who_is_left_out(
    client: Client, editor: Any, replicator: Replicator, store: DjangoStore
) -> None:
    """Guards that a watermark over some of the tables is not shown as one over all."""
    client.force_login(editor)
    store.record_watermark(mark(1))
    store.record_watermark(mark(2, customers="failing"))
    url = f"/api/v1/replicators/{replicator.pk}/"
    status = client.get(f"{url}status/").json()["consistent_at"]
    assert (status["sequence"], status["position"]) == (2 << 32, 20)
    listed = client.get(f"{url}watermarks/").json()
    assert [w["position"] for w in listed] == [20, 10]
    assert listed[0]["tables"] == [{"schema": "shop", "table": "orders", "version": "v2"}]
    assert listed[0]["left_out"] == [{"schema": "shop", "table": "customers", "reason": "failing"}]
    assert len(client.get(f"{url}watermarks/?limit=1").json()) == 1
    assert client.get(f"{url}watermarks/?limit=0").status_code == 400
    page = client.get(f"/replicators/{replicator.pk}/").content.decode()
    assert "Consistent at" in page and "shop.customers</span> (failing)" in page
