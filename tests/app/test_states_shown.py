"""States of a replicator and of its tables, on pages and in REST: none of them contradicts another."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from replicators.models import Replicator
from runners.models import Progress, Table
from runners.services import progress_of
from tests.app.pages import make_live, page

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
    """Guards `tables_held` wherever tables are told: overview, list, tables, status, filters, figures."""
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
    assert 'state="replicating"} 0' in browser.get("/metrics").content.decode()


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
