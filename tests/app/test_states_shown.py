"""States of a replicator and of its tables, on pages and in REST: none of them contradicts
another."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from replicators.connectors.params import MASK
from replicators.models import Replicator
from runners.models import Event, Progress, Run, Table
from runners.services import progress_of
from runners.supervision.reconcile import reconcile_runs
from tests.app.factories import make_replicator
from tests.app.pages import htmx, make_live, page

pytestmark = pytest.mark.django_db


@pytest.fixture
def failed(replicator: Replicator) -> Replicator:
    """A replicator that was copied, failed and is not tried again."""
    Table.objects.update(state="replicating", is_snapshot_done=True)
    Replicator.objects.update(desired_state="running")
    progress_of(replicator)
    Progress.objects.update(is_given_up=True, failures=3, error_code="source:login-refused")
    return replicator


def test_a_failed_replicator_has_no_green_table(browser: Client, failed: Replicator) -> None:
    """Guards `tables_held` wherever tables are reported: overview, list, tables, status, filters,
    metrics."""
    url = failed.get_absolute_url()
    for shown in (page(browser, url), page(browser, f"{url}tables/"), page(browser, "/")):
        assert 'data-state="replicating"' not in shown
        assert 'class="state is-red" data-state="stopped"' in shown
    status = browser.get(f"/api/v1/replicators/{failed.pk}/status/").json()
    assert {t["state"] for t in status["tables"]} == {"stopped"}
    listed = browser.get("/api/v1/replicators/").json()["results"][0]
    assert listed["tables"] == {"stopped": 2}
    tables = f"/api/v1/replicators/{failed.pk}/tables/"
    assert browser.get(f"{tables}?state=stopped").json() != []
    assert browser.get(f"{tables}?state=replicating").json() == []
    assert 'state="replicating"} 0.0' in browser.get("/metrics").content.decode()


def test_a_replicator_whose_tables_all_fail_does_not_look_well(
    browser: Client, replicator: Replicator
) -> None:
    """Guards `_all_failing`: REST said `running` and no error while nothing reached the target."""
    make_live(replicator)
    since = timezone.now() - timedelta(hours=1)
    Table.objects.update(state="failing", error_code="target:table-missing", error_since=since)
    status = browser.get(f"/api/v1/replicators/{replicator.pk}/status/").json()
    assert (status["state"], status["error"]["code"]) == ("failing", "run:tables-failing")
    assert status["error"]["since"][:19] == since.isoformat()[:19]
    html = page(browser, replicator.get_absolute_url())
    assert "All 2 tables failing" in html
    assert "All tables fail" in html
    Table.objects.filter(name="orders").update(state="replicating", error_code="")
    status = browser.get(f"/api/v1/replicators/{replicator.pk}/status/").json()
    assert (status["state"], status["error"]) == ("running", None)


# --- one replicator more than may run ----------------------------------------------------------------------------  # noqa: E501
@pytest.fixture
def crowded(replicator: Replicator, settings: Any) -> Replicator:
    """It should run, but another one does and only one may."""
    settings.MAX_RUNS = 1
    make_live(make_replicator("the other one"))
    Replicator.objects.filter(pk=replicator.pk).update(desired_state="running")
    return replicator


def test_who_waits_for_a_run_is_told_for_whom(browser: Client, crowded: Replicator) -> None:
    """Guards `_waits_for_run`: the page said "slot", which is the source's word, and named
    nobody."""
    status = browser.get(f"/api/v1/replicators/{crowded.pk}/status/").json()
    assert (status["state"], status["error"]["code"]) == ("waiting", "run:limit")
    assert "1 of 1 replicators run: `the other one`" in status["error"]["message"]
    html = page(browser, crowded.get_absolute_url())
    assert "Waiting: 1 of 1 replicators run" in html
    assert "<code>the other one</code>" in html
    assert "REPLICATOR_MAX_RUNS" in html
    assert 'class="notice is-blue"' in html
    assert "<code>the other one</code>" in page(browser, "/")


def test_waiting_for_a_run_is_an_event_once(browser: Client, crowded: Replicator) -> None:
    """Guards `run_waits`: nothing said why it did not start; written each ten seconds it would fill
    the list."""
    for _ in range(3):
        reconcile_runs()
    kinds = list(Event.objects.filter(replicator=crowded).values_list("kind", flat=True))
    assert kinds == ["run_waits"]
    html = page(browser, f"{crowded.get_absolute_url()}activity/")
    assert "Waiting for a free run" in html
    assert "<code>the other one</code>" in html
    Run.objects.all().delete()
    reconcile_runs()
    Run.objects.filter(replicator=crowded).delete()
    make_live(Replicator.objects.exclude(pk=crowded.pk).get())
    reconcile_runs()
    kinds = list(Event.objects.filter(replicator=crowded).values_list("kind", flat=True))
    assert kinds == ["run_waits", "run_created", "run_waits"]


# --- tried again by a person -------------------------------------------------------------------------------------  # noqa: E501
@pytest.mark.parametrize("is_given_up", [True, False])
def test_a_failed_replicator_is_retried_at_once(
    is_given_up: bool, browser: Client, failed: Replicator
) -> None:
    """Guards `replicator_retry` on page and REST: a failed one had only *Resume*, one that waits
    for its next try nothing."""
    later = None if is_given_up else timezone.now() + timedelta(minutes=5)
    Progress.objects.update(is_given_up=is_given_up, retry_at=later)
    url = failed.get_absolute_url()
    assert "Retry now" in page(browser, url)
    assert browser.post(f"{url}retry/", headers=htmx(url)).status_code == 200
    progress = Progress.objects.get()
    assert (progress.is_given_up, progress.retry_at, progress.failures) == (False, None, 0)
    event = Event.objects.get()
    assert (event.kind, event.actor) == ("replicator_retry_asked", "editor")
    assert "Retry now" not in page(browser, url)
    again = browser.post(f"/api/v1/replicators/{failed.pk}/retry/")
    assert (again.status_code, again.json()["code"]) == (409, "illegal-transition")
    Progress.objects.update(is_given_up=is_given_up, retry_at=later)
    assert browser.post(f"/api/v1/replicators/{failed.pk}/retry/").status_code == 202
    Replicator.objects.update(desired_state="paused")
    Progress.objects.update(is_given_up=True)
    assert browser.post(f"/api/v1/replicators/{failed.pk}/retry/").status_code == 409


def test_the_settings_of_a_failed_replicator_are_saved_and_it_is_retried(
    browser: Client, failed: Replicator
) -> None:
    """Guards the button: saved without another connection, a failed one stayed failed, and nobody
    said so."""
    url = f"{failed.get_absolute_url()}edit/"
    html = page(browser, url)
    assert "Save and retry" in html
    (version,) = re.findall(r'name="version" value="(\w+)"', html)
    form = {"version": version, "act": "retry", "name": failed.name, "description": "again"}
    form |= {f"source.{k}": v for k, v in failed.source_params.items()}
    form |= {f"target.{k}": v for k, v in failed.target_params.items()}
    answer = browser.post(url, form | {"source.password": MASK}, follow=True)
    assert "is saved, and tried again now." in answer.content.decode()
    failed.refresh_from_db()
    assert failed.description == "again"
    assert not Progress.objects.get().is_given_up
    assert "Save and retry" not in page(browser, url)
