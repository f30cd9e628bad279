"""What an operator asks the program: whether it lives and is ready, its figures, and that nothing of it grows for ever."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import DatabaseError, connection
from django.test import Client
from django.utils import timezone

from replicators.models import Replicator
from runners.events.write import event_add
from runners.logs import write as log_writer
from runners.logs.write import prune_run_logs
from runners.models import Event, Run, Table
from runners.services import progress_of
from runners.supervision.retention import prune_activity
from tests.app.factories import make_replicator, make_run

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_probe_needs_no_login_no_https_and_no_host_name(path: str, settings: Any) -> None:
    """Guards that `Probes` is the first middleware: behind the others a probe by address is redirected, or refused for its host."""
    settings.SECURE_SSL_REDIRECT = True
    assert Client().get(path, headers={"host": "10.1.2.3:8000"}).status_code == 200
    assert Client().get("/", headers={"host": "10.1.2.3:8000"}).status_code == 400


def test_it_is_not_ready_before_its_database_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards `/readyz`: a web process of a new version beside an old database must get no requests yet."""
    client = Client()
    with monkeypatch.context() as patched:
        patched.setattr("replicators.project.probes._waiting", lambda: True)
        waits = client.get("/readyz")
    assert (waits.status_code, waits.json()["status"]) == (
        503,
        "Migrations wait: run `make migrate`.",
    )

    def away(*_: Any) -> None:
        raise DatabaseError("away")

    with connection.execute_wrapper(lambda *_: away()):
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").json() == {"status": "ready"}


def test_the_figures_are_told_as_prometheus_reads_them(
    replicator: Replicator, browser: Client, settings: Any
) -> None:
    """Guards `metrics_text`: names in quotes, one line a figure, and none for what is not known."""
    Replicator.objects.filter(pk=replicator.pk).update(name='shop "eu"\\1')
    Table.objects.filter(name="orders").update(
        state="failing", inserts=5, updates=2, rows_parked=3, backlog_bytes=10**12
    )
    progress = progress_of(replicator)
    progress.facts = {"log_bytes": 2048, "is_backpressure": True, "hours_left": None}
    progress.save()
    response = browser.get("/metrics", headers={"accept": "application/openmetrics-text"})
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    text = response.content.decode()
    who = f'replicator="shop \\"eu\\"\\\\1",id="{replicator.pk}"'
    for line in (
        f"replicator_changes_total{{{who}}} 7",
        f"replicator_log_bytes{{{who}}} 2048",
        f"replicator_parked_rows{{{who}}} 3",
        f"replicator_backlog_bytes{{{who}}} 1000000000000",
        f'replicator_tables{{{who},state="failing"}} 1',
        f'replicator_state{{{who},state="paused"}} 1',
        f"replicator_is_log_full{{{who}}} 0",
        "replicators_workers_ok 0",
    ):
        assert f"\n{line}\n" in text
    assert "replicator_source_hours_left{" not in text
    assert "None" not in text


def test_the_figures_cost_as_many_queries_however_many_replicators(
    replicator: Replicator, browser: Client, django_assert_max_num_queries: Any
) -> None:
    for number in range(5):
        make_replicator(f"another {number}")
    with django_assert_max_num_queries(12):
        browser.get("/metrics")


def test_old_activity_runs_and_sessions_go_and_what_is_needed_stays(
    replicator: Replicator, browser: Client, settings: Any
) -> None:
    """Guards `prune_activity`: a replicator that fails each ten minutes makes 50,000 runs and 200,000 events a year. The last run
    stays, since it says that there was one, and so do the statements of a deleted replicator that somebody has yet to run."""
    settings.ACTIVITY_SECONDS = 86400
    now = timezone.now()
    old = now - timedelta(days=2)
    runs = [make_run(replicator, state="failed", lease="", ended_at=old) for _ in range(3)]
    event_add("run_failed", replicator=replicator, run=runs[0])
    event_add("replicator_deleted", replicator=None, facts={"statements": ["DROP ..."]})
    Event.objects.update(at=old)
    event_add("run_created", replicator=replicator)
    Session.objects.create(session_key="x", session_data="", expire_date=old)
    prune_activity(now)
    assert list(Run.objects.values_list("pk", flat=True)) == [runs[2].pk]
    assert sorted(Event.objects.values_list("kind", flat=True)) == [
        "replicator_deleted",
        "run_created",
    ]
    assert Session.objects.count() == 1, "the browser's own"
    live = make_run(replicator, state="running")
    prune_activity(now + timedelta(days=9))
    assert set(Run.objects.values_list("pk", flat=True)) == {live.pk}


def test_a_runs_output_that_grows_large_begins_again_and_an_old_one_goes(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `prune_run_logs`: one process may write for months, and goes on writing where its file now ends."""
    monkeypatch.setattr(log_writer, "RUN_LOG_BYTES", 10)
    settings.RUN_LOG_DIR.mkdir()
    large, old = settings.RUN_LOG_DIR / "large.log", settings.RUN_LOG_DIR / "old.log.1"
    old.touch()
    os.utime(old, (1, 1))
    with large.open("ab") as written:
        written.write(b"more than ten\n")
        written.flush()
        prune_run_logs()
        written.write(b"and on\n")
    assert large.read_bytes() == b"and on\n"
    assert large.with_suffix(".log.1").read_bytes() == b"more than ten\n"
    assert not old.exists()
