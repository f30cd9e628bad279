"""What keeps one replicator's trouble from being everybody's, and old rows from holding up new
ones."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from replicators.connectors.model.positions import Position
from replicators.models import Replicator
from runners.engine.store.protocol import SegmentRow, TableMetrics
from runners.metrics import record
from runners.models import Progress, Run, Table, TableMetric
from runners.services import progress_of, replicator_delete, replicator_start
from runners.states import RunState
from runners.store.django import PORTION, DjangoStore
from runners.store.mapping import moment
from runners.supervision import backoff, removal, retention
from runners.supervision.reconcile import reconcile_runs
from tests.app.factories import make_replicator, make_run
from tests.fakes.clock import FakeClock

pytestmark = pytest.mark.django_db


def test_a_replicator_whose_options_can_not_be_read_stops_nobody_else(
    replicator: Replicator,
) -> None:
    """Guards `backoff._patience`, and the guard around each run in `reconcile._watch`: after a
    roll-back of the program nothing was started, ended or deleted any more, of any replicator."""
    other = make_replicator("another")
    for one in (replicator, other):
        replicator_start(replicator=one, actor=None)
    Replicator.objects.filter(pk=replicator.pk).update(options={"gone": 1})
    long_ago = timezone.now() - timedelta(hours=1)
    lost = make_run(
        replicator, state=RunState.RUNNING, lease_until=long_ago, supervised_at=long_ago
    )
    reconcile_runs()
    lost.refresh_from_db()
    assert lost.state == RunState.LOST
    assert Run.objects.active().filter(replicator=other).exists()


def test_more_segments_than_a_statement_takes_are_pruned(replicator: Replicator) -> None:
    """Guards the portions of `prunable` and `forget`: SQLite refuses very many parameters, which
    counted as a lost database, and ended every run after a minute."""
    run = make_run(replicator, state=RunState.RUNNING)
    store = DjangoStore(run.pk, run.lease)
    count = 2 * PORTION + 10
    for number in range(1, count + 1):
        position = Position(number)
        row = SegmentRow(number, f"{number}.raw", 1, 0, position, True, 1, True, sealed_at=50.0)
        store.record_segment(row, position)
    Table.objects.update(state="removed")
    with CaptureQueriesContext(connection) as asked:
        portions = []
        while found := store.prunable(older_than=100.0)[0]:
            portions.append([s.number for s in found])
            store.forget(portions[-1])
    assert [len(p) for p in portions] == [PORTION, PORTION, 10]
    assert sum(portions, []) == list(range(1, count + 1))
    assert max(q["sql"].count(",") for q in asked) < PORTION + 50
    assert not store.discard_segments(list(range(count)))


def test_a_start_that_fails_does_not_make_a_copy_look_level(replicator: Replicator) -> None:
    """Guards `record_metrics`: the first metrics of a run, which knows nothing yet, took the lag of
    days away, and with every failed start again."""
    run = make_run(replicator, state=RunState.RUNNING)
    store, row = DjangoStore(run.pk, run.lease), Table.objects.get(name="orders")
    table = next(t.id for t in store.tables() if t.id.name == "orders")
    store.record_metrics({table: TableMetrics(0.5, 1_000.0, 7)}, {})
    store.record_metrics({table: TableMetrics(None, None, 9)}, {})
    row.refresh_from_db()
    assert (row.lag_seconds, row.unmerged_since, row.backlog_bytes) == (None, moment(1_000.0), 9)
    store.record_metrics({table: TableMetrics(0.0, None, 0)}, {})
    row.refresh_from_db()
    assert (row.lag_seconds, row.unmerged_since) == (0.0, None)


def test_old_metrics_go_in_portions(
    replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `drop_portion`: one DELETE of millions of rows holds up every other writer for
    minutes, and ends the runs."""
    monkeypatch.setattr(retention.drop_portion, "__defaults__", (10,))
    table, now = Table.objects.filter(replicator=replicator).first(), timezone.now()
    assert table is not None

    def fill() -> None:
        TableMetric.objects.bulk_create(
            TableMetric(table=table, at=now - timedelta(days=9, minutes=n), resolution_seconds=60)
            for n in range(35)
        )

    fill()
    with CaptureQueriesContext(connection) as asked:
        assert record.prune_metrics(now) == 35
    deletes = [q["sql"] for q in asked if q["sql"].startswith("DELETE")]
    assert len(deletes) == 4 and all(sql.count(",") < 10 for sql in deletes)
    fill()
    replicator_delete(replicator=replicator, actor=None, keep_target=True)
    with CaptureQueriesContext(connection) as asked:
        assert removal.drop_replicator(replicator.pk)
    metrics = [q["sql"] for q in asked if q["sql"].startswith('DELETE FROM "runners_tablemetric"')]
    assert len(metrics) >= 4 and all(sql.count(",") < 10 for sql in metrics)


def test_a_clock_that_is_set_back_does_not_hold_up_a_deletion(replicator: Replicator) -> None:
    """Guards `removal.LONGEST`: the slot stayed for the whole hour, and kept the source's log."""
    clock = FakeClock()
    replicator_delete(replicator=replicator, actor=None, keep_target=True)
    progress = progress_of(replicator)
    Progress.objects.filter(pk=progress.pk).update(retry_at=clock() + timedelta(minutes=5))
    assert not removal.drop_replicator(replicator.pk, clock())
    Progress.objects.filter(pk=progress.pk).update(retry_at=clock() + timedelta(hours=1))
    assert removal.drop_replicator(replicator.pk, clock())


def test_nor_does_it_keep_the_lease_of_a_run_that_is_gone(
    replicator: Replicator, settings: Any
) -> None:
    """Guards `reconcile._shorten`: the run of a machine that is gone looked alive for the whole
    hour."""
    replicator_start(replicator=replicator, actor=None)
    clock = FakeClock()
    ahead = clock() + timedelta(hours=1)
    run = make_run(
        replicator, state=RunState.RUNNING, lease_until=ahead, supervised_at=ahead, hostname="gone"
    )
    reconcile_runs(clock())
    run.refresh_from_db()
    assert run.lease_until is not None and run.lease_until < clock() + timedelta(minutes=5)
    clock.move(300)
    reconcile_runs(clock())
    run.refresh_from_db()
    assert run.state == RunState.LOST


@pytest.mark.parametrize(("late", "is_given_up"), [(timedelta(days=2), False), (timedelta(), True)])
def test_time_in_which_nothing_could_be_tried_is_no_trying(
    replicator: Replicator, late: timedelta, is_given_up: bool
) -> None:
    """Guards `backoff._idle`: a machine that was off over the weekend, and up before its source,
    gave up at the second try."""
    now = timezone.now()
    first = make_run(replicator, state=RunState.FAILED)
    backoff.failure_note(
        run=first, code="source:unreachable", facts={}, now=now - timedelta(days=2)
    )
    due = Progress.objects.get(replicator=replicator).retry_at
    assert due is not None
    Progress.objects.filter(replicator=replicator).update(retry_at=now - late)
    second = make_run(replicator, state=RunState.FAILED)
    found = backoff.failure_note(run=second, code="source:unreachable", facts={}, now=now)
    assert (found.failures, found.is_given_up) == (2, is_given_up)


def test_the_time_of_an_error_is_that_of_this_error(replicator: Replicator) -> None:
    """Guards `Progress.error_since`: the error of a run that was lost now was reported as old as
    an earlier failure of another kind."""
    now = timezone.now()
    for code, ago in (("source:unreachable", 30), ("source:unreachable", 20), ("run:lost", 1)):
        run = make_run(replicator, state=RunState.FAILED)
        backoff.failure_note(run=run, code=code, facts={}, now=now - timedelta(minutes=ago))
        found = Progress.objects.get(replicator=replicator)
        expected = 30 if code == "source:unreachable" else 1
        assert found.error_since == now - timedelta(minutes=expected)
    assert found.failing_since is not None and found.failing_since < now - timedelta(minutes=10)
