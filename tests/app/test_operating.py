"""What an operator asks the program: whether it lives and is ready, its metrics, and that nothing
of it grows for ever."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import DatabaseError, connection
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from replicators.models import Replicator
from runners.events.write import event_add
from runners.logs import write as log_writer
from runners.logs.write import prune_run_logs
from runners.models import Event, Run, Sign, Table
from runners.services import progress_of
from runners.supervision.retention import prune_activity
from tests.app.factories import make_replicator, make_run

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_probe_needs_no_login_no_https_and_no_host_name(path: str, settings: Any) -> None:
    """Guards that `Probes` is the first middleware: behind the others a probe by address is
    redirected, or refused for its host."""
    settings.SECURE_SSL_REDIRECT = True
    assert Client().get(path, headers={"host": "10.1.2.3:8000"}).status_code == 200
    assert Client().get("/", headers={"host": "10.1.2.3:8000"}).status_code == 400


def test_it_is_not_ready_before_its_database_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards `/readyz`: a web process of a new version beside an old database must get no requests
    yet."""
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


KINDS = {
    "replicator_lag_seconds": "gauge",
    "replicator_changes": "counter",
    "replicator_rows_copied": "gauge",
    "replicator_failures": "gauge",
    "replicator_is_live": "gauge",
    "replicator_is_log_full": "gauge",
    "replicator_log_bytes": "gauge",
    "replicator_source_retained_bytes": "gauge",
    "replicator_source_hours_left": "gauge",
    "replicator_log_hours_left": "gauge",
    "replicator_is_log_short": "gauge",
    "replicator_segments_waiting": "gauge",
    "replicator_state": "gauge",
    "replicator_tables": "gauge",
    "replicator_quarantined_rows": "gauge",
    "replicator_verified_age_seconds": "gauge",
    "replicator_verified_wrong_rows": "gauge",
    "replicator_backlog_bytes": "gauge",
    "replicators_workers_ok": "gauge",
    "replicators_reconciled_age_seconds": "gauge",
}


def test_the_metrics_are_reported_as_prometheus_reads_them(
    replicator: Replicator, browser: Client, settings: Any
) -> None:
    """Guards `ReplicatorMetrics`: names, types, labels and values stay. A metric that is not known
    has no line. Whoever asks for another form gets this one too."""
    name = 'shop "eu"\\1\n'
    Replicator.objects.filter(pk=replicator.pk).update(name=name)
    Table.objects.filter(name="orders").update(
        state="failing", inserts=5, updates=2, rows_quarantined=3, backlog_bytes=10**12
    )
    progress = progress_of(replicator)
    progress.facts = {"log_bytes": 2048, "is_backpressure": True, "hours_left": None}
    progress.save()
    Sign.objects.create(name="reconcile", at=timezone.now())
    response = browser.get("/metrics", headers={"accept": "application/openmetrics-text"})
    assert response["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = list(text_string_to_metric_families(response.content.decode()))
    assert {family.name: family.type for family in families} == KINDS
    assert all(family.documentation for family in families)
    samples = [sample for family in families for sample in family.samples]
    who = {"replicator": name, "id": str(replicator.pk)}
    found = {
        (s.name, *(v for k, v in s.labels.items() if k not in who)): s.value
        for s in samples
        if {k: s.labels.get(k) for k in who} == who
    }
    assert found == {
        ("replicator_changes_total",): 7,
        ("replicator_rows_copied",): 0,
        ("replicator_failures",): 0,
        ("replicator_is_live",): 0,
        ("replicator_is_log_full",): 0,
        ("replicator_is_log_short",): 0,
        ("replicator_log_bytes",): 2048,
        ("replicator_state", "paused"): 1,
        ("replicator_tables", "failing"): 1,
        ("replicator_tables", "stopped"): 0,
        ("replicator_tables", "paused"): 1,
        ("replicator_tables", "snapshotting"): 0,
        ("replicator_tables", "waiting"): 0,
        ("replicator_tables", "replicating"): 0,
        ("replicator_quarantined_rows",): 3,
        ("replicator_backlog_bytes",): 10**12,
    }
    rest = {s.name: s.value for s in samples if not s.labels}
    assert rest.pop("replicators_reconciled_age_seconds") >= 0
    assert rest == {"replicators_workers_ok": 0}
    assert len(found) + 2 == len(samples)


def test_the_metrics_cost_as_many_queries_however_many_replicators(
    replicator: Replicator, browser: Client, django_assert_max_num_queries: Any
) -> None:
    for number in range(5):
        make_replicator(f"another {number}")
    with django_assert_max_num_queries(12):
        browser.get("/metrics")


def test_old_activity_runs_and_sessions_go_and_what_is_needed_stays(
    replicator: Replicator, browser: Client, settings: Any
) -> None:
    """Guards `prune_activity`: a replicator that fails each ten minutes makes 50,000 runs and
    200,000 events a year. The last run stays, since it says that there was one, and so do the
    statements of a deleted replicator that somebody has yet to run."""
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
    """Guards `prune_run_logs`: one process may write for months, and goes on writing where its file
    now ends."""
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
