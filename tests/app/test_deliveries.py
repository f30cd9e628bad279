"""Deliveries as rows, in REST and on the pages."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from django.test import Client

from replicators.connectors.model.schema import TableId
from replicators.connectors.poll import DeliveryReport
from replicators.connectors.problems.errors import ReplicationError
from replicators.models import Replicator
from runners.models import Delivery, Event, Progress, Run, Table
from runners.states import RunState
from runners.store.django import DjangoStore
from runners.tables import deliveries
from tests.app.factories import make_replicator, make_run
from tests.compared_world import Inbox, line

pytestmark = pytest.mark.django_db

PEOPLE = TableId("delivered", "people")


@pytest.fixture
def delivered(tmp_path: Path) -> Replicator:
    """A replicator of files."""
    inbox = Inbox(tmp_path)
    inbox.deliver("2026-01-01", [line(1)])
    params = {
        "files": f"{inbox.folder}/{{delivery}}/{{table}}.csv",
        "state": str(inbox.state),
        "keys": "id",
    }
    return make_replicator(
        "files to lakehouse",
        source_kind="compared",
        source_params=params,
        tables=[{"schema": "delivered", "name": "people"}],
    )


@pytest.fixture
def run(delivered: Replicator) -> Run:
    return make_run(delivered, state=RunState.RUNNING)


@pytest.fixture
def store(run: Run) -> DjangoStore:
    return DjangoStore(run.pk, run.lease)


def report(name: str, code: str = "", **facts: str) -> DeliveryReport:
    counts = {} if code else {"rows": 9, "inserts": 1, "updates": 2, "deletes": 3, "unchanged": 6}
    known = tuple({"delivery": name, **facts}.items()) if code else ()
    return DeliveryReport(
        PEOPLE, name, f"mark of {name}", time.time(), code=code, facts=known, **counts
    )


SHRANK = report("2026-01-02", "source:delivery-shrank", rows="1", lost="8", before="9",
                percent="89", limit="50")  # fmt: skip


def test_a_delivery_is_one_row_that_needs_the_lease(store: DjangoStore, run: Run) -> None:
    """Guards repeats after a crash, and fencing (CORRECTNESS 29). A refused delivery that is
    accepted later is the same row; the event of its refusal stays the only one."""
    for found in (report("2026-01-01"), report("2026-01-01"), SHRANK, SHRANK):
        store.record_deliveries([found])
    assert [(d.name, d.error_code) for d in Delivery.objects.all()] == [
        ("2026-01-02", "source:delivery-shrank"), ("2026-01-01", "")
    ]  # fmt: skip
    assert Event.objects.filter(kind="delivery_refused").count() == 1
    store.record_deliveries([report("2026-01-02")])
    assert not Delivery.objects.exclude(error_code="").exists()
    Run.objects.filter(pk=run.pk).update(lease="another's")
    with pytest.raises(ReplicationError, match="run:lease-lost"):
        store.record_deliveries([report("2026-01-03")])


def test_only_the_newest_deliveries_are_kept(
    store: DjangoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "KEPT", 2)
    for day in range(1, 5):
        store.record_deliveries([report(f"2026-01-0{day}")])
    assert [d.name for d in Delivery.objects.all()] == ["2026-01-04", "2026-01-03"]


def test_rest_lists_deliveries_with_what_to_do(
    store: DjangoStore, delivered: Replicator, browser: Client
) -> None:
    store.record_deliveries([report("2026-01-01"), SHRANK])
    url = f"/api/v1/replicators/{delivered.pk}"
    newest, first = browser.get(f"{url}/deliveries/").json()
    assert (first["rows"], first["inserts"], first["updates"], first["deletes"]) == (9, 1, 2, 3)
    assert (first["unchanged"], first["refused"]) == (6, None)
    assert "8 of 9 rows (89 %)" in newest["refused"]["message"]
    assert "delivered.people" in newest["refused"]["message"]
    assert "raise the largest loss" in newest["refused"]["suggestion"]
    assert browser.get(f"{url}/deliveries/?limit=0").status_code == 400
    assert browser.get(f"{url}/status/").json()["next_delivery_at"] is None


def test_pages_show_deliveries_and_the_next_one_in_place_of_a_lag(
    store: DjangoStore, delivered: Replicator, browser: Client
) -> None:
    """Guards the overview, the list of replicators, the tables and the events."""
    store.record_deliveries([report("2026-01-01"), SHRANK])
    Table.objects.filter(replicator=delivered).update(state="replicating", is_snapshot_done=True)
    page = f"/replicators/{delivered.pk}/"
    shown = browser.get(page).content.decode()
    assert 'data-testid="next-delivery"' in shown and ">on arrival<" in shown
    assert 'data-testid="lag"' not in shown
    assert 'data-delivery="2026-01-01"' in shown
    assert "raise the largest loss" in shown
    at = time.time() + 3600
    Progress.objects.filter(replicator=delivered).update(facts={"next_delivery_at": at})
    assert "data-until" in browser.get(page).content.decode()
    assert 'data-label="Next delivery"' in browser.get("/").content.decode()
    tables = browser.get(f"{page}tables/").content.decode()
    assert 'data-label="Last delivery"' in tables and "refused" in tables
    assert "Delivery refused" in browser.get(f"{page}activity/").content.decode()


def test_other_replicators_keep_their_lag(replicator: Replicator, browser: Client) -> None:
    shown = browser.get(f"/replicators/{replicator.pk}/").content.decode()
    assert 'data-testid="lag"' in shown
    assert 'data-testid="deliveries"' not in shown
