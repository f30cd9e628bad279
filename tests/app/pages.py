"""What tests of pages share: how a browser and HTMX ask, and what a run would have written."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from replicators.models import Replicator
from runners.models import Progress, ReplicatorMetric, Run, Table
from runners.services import progress_of
from runners.states import RunState
from tests.app.factories import make_run

ORIGIN = "http://testserver"


def page(browser: Client, url: str, **more: Any) -> str:
    """The page's HTML."""
    response = browser.get(url, **more)
    assert response.status_code == 200, response.status_code
    return str(response.content.decode())


def htmx(at: str = "/") -> dict[str, str]:
    """Headers of a request that HTMX makes from a page."""
    return {"HX-Request": "true", "HX-Current-URL": f"{ORIGIN}{at}"}


def panel(browser: Client, url: str, at: str = "/") -> str:
    """What HTMX gets."""
    return page(browser, url, headers=htmx(at))


def make_live(replicator: Replicator, at: datetime | None = None, **facts: Any) -> Run:
    """A run that runs and has just written metrics."""
    at = at or timezone.now()
    progress_of(replicator)
    Progress.objects.filter(replicator=replicator).update(facts=facts, facts_at=at)
    Replicator.objects.filter(pk=replicator.pk).update(desired_state="running")
    return make_run(replicator, state=RunState.RUNNING, started_at=at, supervised_at=at)


def make_tables(replicator: Replicator, count: int) -> None:
    """Many more tables, replicating."""
    Table.objects.bulk_create(
        Table(
            replicator=replicator, schema_name="many", name=f"t{n:04}", state="replicating",
            is_snapshot_done=True, lag_seconds=n / 1000, inserts=n,
        )
        for n in range(count)
    )  # fmt: skip


def make_metrics(
    replicator: Replicator, *, count: int, resolution: int = 10, growth: int = 50
) -> None:
    """Measured every `resolution` seconds until now, `growth` changes between two."""
    end = timezone.now()
    ReplicatorMetric.objects.bulk_create(
        ReplicatorMetric(
            replicator=replicator, at=end - timedelta(seconds=resolution * (count - 1 - n)),
            resolution_seconds=resolution, lag_worst_seconds=1.0 + n / count,
            lag_median_seconds=0.5, changes=growth * n, rows_snapshotted=1000,
        )
        for n in range(count)
    )  # fmt: skip
