"""What is left of a deleted replicator: nothing but an event."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from replicators.models import Replicator
from replicators.sources.memory.control import DROPPED
from runners.models import Event, Progress, Segment, Table
from runners.services import replicator_delete
from runners.states import RunState
from runners.supervision.removal import TRIES, drop_replicator
from tests.app.factories import make_replicator, make_run
from tests.fakes.clock import FakeClock

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def log_root(settings: Any, tmp_path: Path) -> Path:
    settings.RUNNER = replace(settings.RUNNER, log_url=str(tmp_path / "log"))
    return tmp_path / "log"


def test_everything_goes_and_an_event_stays(replicator: Replicator, log_root: Path) -> None:
    """Guards `removal._drop`: a slot that stays keeps the server's log until its disk is full; the
    event is all that tells of it afterwards."""
    folder = log_root / str(replicator.pk)
    folder.mkdir(parents=True)
    (folder / "segment").touch()
    slot = replicator.slot_name
    replicator_delete(replicator=replicator, actor=None, keep_target=True)
    assert drop_replicator(replicator.pk)
    assert slot in DROPPED
    assert not folder.exists()
    assert not any(m.objects.exists() for m in (Replicator, Table, Segment, Progress))
    event = Event.objects.get()
    assert (event.kind, event.replicator, event.facts["name"]) == (
        "replicator_deleted",
        None,
        "shop to lakehouse",
    )
    assert drop_replicator(replicator.pk)


def test_nothing_is_removed_while_a_run_lives_or_nobody_asked(replicator: Replicator) -> None:
    """Guards the first lines of `drop_replicator`: a slot dropped under a live run loses its
    changes, and a stray message must remove nothing."""
    assert drop_replicator(replicator.pk)
    assert Replicator.objects.exists()
    make_run(replicator, state=RunState.RUNNING)
    replicator_delete(replicator=replicator, actor=None, keep_target=True)
    assert not drop_replicator(replicator.pk)
    assert Replicator.objects.exists()


def test_an_unreachable_source_is_tried_some_times_then_the_statements_are_kept() -> None:
    """Guards `TRIES`, the claim and the statements in `removal._drop_failed`: a delete would hang
    on a source that is gone, or end and leave a slot that nobody knows of."""
    replicator = make_replicator(source_params={"host": "h", "fault": "unreachable"})
    replicator_delete(replicator=replicator, actor=None, keep_target=True)
    clock = FakeClock()
    for _ in range(TRIES - 1):
        assert not drop_replicator(replicator.pk, clock())
        assert not drop_replicator(replicator.pk, clock.move(1))
        clock.move(timedelta(minutes=15).total_seconds())
    assert drop_replicator(replicator.pk, clock())
    event = Event.objects.get(kind="replicator_deleted")
    assert event.facts["statements"] == [f"DROP SLOT {replicator.slot_name};"]


def test_a_removal_that_breaks_off_is_tried_again_within_seconds(
    replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the claim's end: a database that was locked for a moment held it, and the page said
    "Deleting", for ten minutes."""
    from runners.supervision import removal

    def locked(*_: Any) -> None:
        raise OperationalError("database is locked")

    replicator_delete(replicator=replicator, actor=None, keep_target=True)
    clock = FakeClock()
    with monkeypatch.context() as broken:
        broken.setattr(removal, "_forget", locked)
        with pytest.raises(OperationalError):
            drop_replicator(replicator.pk, clock())
    assert not drop_replicator(replicator.pk, clock.move(1))
    assert drop_replicator(replicator.pk, clock.move(5))
    assert not Replicator.objects.exists()


def test_while_the_target_is_cleaned_nobody_else_begins(
    replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the longer claim: Spark takes longer than the claim of a delete that only asks the
    source."""
    from runners.supervision import removal

    seen: list[bool] = []

    def cleaned(one: Replicator) -> None:
        later = timezone.now() + timedelta(seconds=removal.TARGET_SECONDS)
        seen.append(drop_replicator(one.pk, later))

    monkeypatch.setattr(removal, "_drop_target", cleaned)
    replicator_delete(replicator=replicator, actor=None, keep_target=False)
    assert drop_replicator(replicator.pk)
    assert seen == [False]
