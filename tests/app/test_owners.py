"""A replicator whose owner may not edit any more is paused, if its options say so."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from replicators.audit import AuditEntry
from replicators.models import Replicator
from runners.models import Run
from runners.services import replicator_resume
from runners.states import RunState
from runners.supervision.owners import guard_owners
from tests.app.factories import make_replicator, make_run, make_user

pytestmark = pytest.mark.django_db


def owned(name: str, owner: User | None, **options: str) -> Replicator:
    row = make_replicator(name, options=options)
    Replicator.objects.filter(pk=row.pk).update(created_by=owner, desired_state="running")
    make_run(row, state=RunState.RUNNING)
    return row


def paused() -> set[str]:
    return set(Replicator.objects.filter(desired_state="paused").values_list("name", flat=True))


@pytest.mark.parametrize("is_deactivated", [True, False])
def test_a_feed_of_somebody_without_the_right_stops_if_told_and_is_taken_over_by_resuming_it(
    is_deactivated: bool,
) -> None:
    """Guards a right that is revoked: the person's replicators went on for ever. Others' go on; who
    resumes one owns it, and it is not paused again."""
    owner, other = make_user("owner", "editor"), make_user("other", "editor")
    mine = owned("stops", owner, owner_gone="stop")
    owned("goes on", owner)
    owned("of another", other, owner_gone="stop")
    owned("of nobody", None, owner_gone="stop")
    guard_owners()
    assert paused() == set()
    if is_deactivated:
        User.objects.filter(pk=owner.pk).update(is_active=False)
    else:
        owner.groups.clear()
    guard_owners()
    assert paused() == {"stops"}
    run = Run.objects.get(replicator=mine)
    assert (run.is_stop_asked, run.stop_origin) == (True, "owner")
    replicator_resume(replicator=mine, actor=other)
    guard_owners()
    assert paused() == set()
    mine.refresh_from_db()
    assert mine.created_by == other
    entry = AuditEntry.objects.get(act="replicator_handed_over")
    assert (entry.old_values["owner"], entry.new_values["owner"]) == ("owner", "other")


def test_resuming_takes_nothing_away_from_an_owner_who_may_edit() -> None:
    """Guards `_take_on`: a colleague who resumes a paused replicator must not become its owner."""
    owner, other = make_user("owner", "editor"), make_user("other", "editor")
    mine = owned("mine", owner, owner_gone="stop")
    Replicator.objects.update(desired_state="paused")
    replicator_resume(replicator=mine, actor=other)
    mine.refresh_from_db()
    assert mine.created_by == owner
