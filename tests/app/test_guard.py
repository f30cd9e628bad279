"""Other replicators of a source are paused while one is about to lose its log, if it says so."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from replicators.models import Replicator
from runners.models import Event, Progress, Run
from runners.selectors import replicator_badge
from runners.services import replicator_pause, replicator_resume
from runners.states import RunState
from runners.supervision.guard import guard_retention
from tests.app.factories import make_replicator, make_run

pytestmark = pytest.mark.django_db


def running(
    name: str, hours: float | None, *, host: str = "db.example", **options: object
) -> Replicator:
    """A replicator whose run says for how many hours the source keeps its log."""
    params = {"host": host, "database": "shop", "user": "u", "password": "x"}
    row = make_replicator(name, source_kind="postgresql", source_params=params, options=options)
    Replicator.objects.filter(pk=row.pk).update(desired_state="running")
    make_run(row, state=RunState.RUNNING)
    says(row, hours)
    return row


def says(row: Replicator, hours: float | None) -> None:
    facts = {"hours_left": hours}
    Progress.objects.filter(replicator=row).update(facts=facts, facts_at=timezone.now())


def wanted() -> dict[str, str]:
    return dict(Replicator.objects.values_list("name", "desired_state"))


def paused() -> set[str]:
    return {name for name, state in wanted().items() if state == "paused"}


@pytest.mark.parametrize(("action", "expected"), [("warn", set()), ("pause", {"other"}),
    ("drop", {"other"})])  # fmt: skip
def test_others_of_the_same_server_are_paused_if_told_and_go_on_by_themselves(
    action: str, expected: set[str]
) -> None:
    """Guards `guard_retention`: others of that server only, only if told, and never for ever.
    The one that is paused says for whom."""
    short = running("short", 3.0, warn_hours=6.0, retention_action=action)
    other = running("other", None)
    running("elsewhere", None, host="other.example")
    running("tight", 11.0, warn_hours=6.0)
    running("short too", 2.0, warn_hours=6.0, retention_action=action)
    now = timezone.now()
    guard_retention(now)
    assert paused() == expected
    if not expected:
        return
    run = Run.objects.get(replicator=other)
    assert (run.is_stop_asked, run.stop_origin) == (True, "retention")
    Run.objects.filter(pk=run.pk).update(state=RunState.STOPPED)
    assert replicator_badge(other).label in {"Paused for short", "Paused for short too"}
    guard_retention(now)
    assert paused() == expected
    says(short, 30.0)
    says(Replicator.objects.get(name="short too"), 30.0)
    guard_retention(now)
    assert paused() == set()
    assert Progress.objects.get(replicator=other).paused_for is None
    kinds = list(Event.objects.filter(replicator=other).values_list("kind", flat=True))
    assert {"replicator_paused_for", "replicator_resumed_after"} <= set(kinds)


def test_a_person_has_the_last_word() -> None:
    """Guards a replicator that somebody resumes, which must not be paused again ten seconds later,
    and one that somebody pauses, which must not be started later."""
    short = running("short", 3.0, warn_hours=6.0, retention_action="pause")
    resumed, held = running("resumed", None), running("held", None)
    now = timezone.now()
    guard_retention(now)
    assert paused() == {"resumed", "held"}
    replicator_resume(replicator=resumed, actor=None)
    replicator_pause(replicator=held, actor=None)
    guard_retention(now)
    guard_retention(now)
    assert paused() == {"held"}
    says(short, 30.0)
    guard_retention(now)
    assert paused() == {"held"}


def test_it_is_paused_for_some_hours_at_most() -> None:
    """Guards the other replicator's own log, which nobody measures while it is paused."""
    running("short", 3.0, warn_hours=6.0, retention_action="pause")
    running("other", 16.0, warn_hours=6.0)
    now = timezone.now()
    guard_retention(now)
    assert paused() == {"other"}
    Progress.objects.update(facts_at=now + timedelta(hours=4.9))
    guard_retention(now + timedelta(hours=4.9))
    assert paused() == {"other"}
    Progress.objects.update(facts_at=now + timedelta(hours=5.1))
    guard_retention(now + timedelta(hours=5.1))
    assert paused() == set()
    guard_retention(now + timedelta(hours=5.1))
    assert paused() == set(), "it was paused again at once"
