"""Verifications as people ask for them, as their process reports them, and as the workers watch
them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from replicators.audit import AuditEntry
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.invalid import InvalidConfig
from replicators.models import Replicator
from runners.engine.processes import HOSTNAME
from runners.engine.verify.report import Outcome, Report, Step, TableProgress
from runners.models import Event, Table
from runners.states import RepairState, VerificationState
from runners.supervision.removal import drop_replicator
from runners.supervision.retention import prune_verifications
from runners.supervision.verifications import reconcile_verifications
from runners.transitions import IllegalTransition, repair_transition
from runners.verifications import DifferingRow, Repair, Verification, VerifySchedule
from runners.verifying.record import LISTED, Record
from runners.verifying.services import (
    repair_ask,
    verification_cancel,
    verification_start,
    verify_schedule_set,
)
from tests.app.factories import make_replicator
from tests.app.verified import (
    AT,
    CUSTOMERS,
    DIFFERENT,
    EXTRA,
    MISSING,
    ORDERS,
    begun,
    replicating,
    table_report,
    verified,
)
from tests.fakes.process import FakeProcess, FakeSpawn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("readable")]


class Stage:
    """Passes of the workers over fake processes."""

    def __init__(self) -> None:
        self.now = timezone.now()
        self.spawn = FakeSpawn()

    def adopt(self, pid: int, _: float | None) -> FakeProcess:
        return next(p for p in self.spawn.started if p.pid == pid)

    def turn(self, seconds: float = 0) -> None:
        self.now += timedelta(seconds=seconds)
        reconcile_verifications(self.now, spawn=self.spawn, adopt=self.adopt)

    def renew(self) -> None:
        Verification.objects.exclude(lease="").update(lease_until=self.now + timedelta(seconds=60))


@pytest.fixture
def stage() -> Stage:
    return Stage()


def asked(replicator: Replicator, **fields: Any) -> Verification:
    return verification_start(replicator=replicator, actor=None, **fields)


def now(row: Verification) -> Verification:
    return Verification.objects.get(pk=row.pk)


# --- asked for ---


def test_all_tables_are_verified_unless_some_are_named(replicator: Replicator) -> None:
    row = asked(replicator)
    assert [str(t) for t in row.tables.all()] == ["shop.customers", "shop.orders"]
    with pytest.raises(IllegalTransition, match="running") as refused:
        asked(replicator)
    assert refused.value.message.startswith("A verification is under way")
    verification_cancel(verification=row, actor=None)
    some = asked(replicator, names=[ORDERS, ORDERS], rows_per_second=500)
    assert [str(t) for t in some.tables.all()] == ["shop.orders"]
    assert Record(some, "", lease_seconds=1).options().rows_a_second == 500
    with pytest.raises(Table.DoesNotExist):
        asked(make_replicator("another"), names=[TableId("shop", "nothing")])


def test_a_throttle_that_makes_no_sense_is_refused(replicator: Replicator) -> None:
    with pytest.raises(InvalidConfig):
        asked(replicator, rows_per_second=0)
    assert not Verification.objects.exists()


def test_a_target_that_cant_be_read_back_is_refused(
    replicator: Replicator, unreadable: None
) -> None:
    with pytest.raises(IllegalTransition) as refused:
        asked(replicator)
    assert "can't be read back" in refused.value.message


def test_what_people_ask_for_is_in_the_audit_trail(replicator: Replicator, editor: Any) -> None:
    row = verification_start(replicator=replicator, actor=editor, names=[ORDERS])
    verification_cancel(verification=row, actor=editor)
    acts = AuditEntry.objects.order_by("id").values_list("act", "actor", "new_values")
    assert list(acts)[-2:] == [
        ("verification_asked", "editor", {"tables": ["shop.orders"]}),
        ("verification_cancel_asked", "editor", {}),
    ]
    assert now(row).state == VerificationState.CANCELLED


# --- reported ---


def test_progress_and_reports_are_stored_by_table(replicator: Replicator) -> None:
    row, record = begun(replicator)
    record.progress(TableProgress(ORDERS, Step.READ, 30, 120))
    table = row.tables.get(name="orders")
    assert (table.step, table.percent, table.outcome) == ("read", 25, "")
    record.table_done(table_report(ORDERS, DIFFERENT, MISSING, EXTRA, is_more=True))
    table.refresh_from_db()
    assert (table.percent, table.outcome, table.wrong, table.is_more) == (100, "different", 3, True)
    kinds = list(table.rows.values_list("kind", "key", "columns"))
    assert kinds == [
        ("different", [["id", 7]], ["note"]), ("missing", [["id", 8]], []),
        ("extra", [["id", 9]], []),
    ]  # fmt: skip
    assert len(set(table.rows.values_list("key_hash", flat=True))) == 3
    record.table_done(table_report(ORDERS))
    assert not DifferingRow.objects.exists()


def test_the_listed_rows_of_a_table_are_bounded(replicator: Replicator) -> None:
    """Guards the program's own database: a table that differs in every row must not fill it."""
    row, record = begun(replicator)
    record.table_done(table_report(ORDERS, *[MISSING] * (LISTED + 5)))
    table = row.tables.get(name="orders")
    assert (table.missing, table.rows.count()) == (LISTED + 5, LISTED)


def test_the_end_is_an_event_with_its_counts(replicator: Replicator) -> None:
    row = verified(replicator)
    assert (row.state, row.outcome, row.lease) == ("done", "different", "")
    facts = Event.objects.get(kind="verification_done").facts
    assert (facts["wrong"], facts["tables"], facts["rows"]) == (3, 2, 200)


def test_an_error_ends_it_with_its_code(replicator: Replicator) -> None:
    row, record = begun(replicator)
    record.failed("source:unreachable", {"host": "h", "port": "1"})
    assert (now(row).state, now(row).error_code) == ("failed", "source:unreachable")
    assert Event.objects.get(kind="verification_failed").code == "source:unreachable"


def test_a_process_whose_lease_is_gone_can_write_nothing(replicator: Replicator) -> None:
    row, record = begun(replicator)
    Verification.objects.update(lease="another")
    for write in (
        record.renew,
        lambda: record.table_done(table_report()),
        lambda: record.done(Report(AT, AT, ())),
        lambda: record.failed("verify:stuck", {}),
    ):
        with pytest.raises(ReplicationError, match="verify:replaced"):
            write()
    assert now(row).state == VerificationState.RUNNING


def test_one_that_was_asked_to_stop_is_cancelled_by_whom(
    replicator: Replicator, editor: Any
) -> None:
    row, record = begun(replicator)
    verification_cancel(verification=row, actor=editor)
    assert not record.should_stop()
    record.renew()
    assert record.should_stop()
    report = table_report(ORDERS, outcome=Outcome.STOPPED)
    record.done(Report(AT, AT, (report,)))
    assert now(row).state == VerificationState.CANCELLED
    assert Event.objects.get(kind="verification_cancelled").actor == "editor"
    with pytest.raises(IllegalTransition, match="cancelled"):
        verification_cancel(verification=row, actor=editor)


# --- watched ---


def test_one_process_is_started_with_the_lease_of_its_row(
    replicator: Replicator, stage: Stage
) -> None:
    row = asked(replicator)
    stage.turn()
    stage.turn()
    assert stage.spawn.leases == [now(row).lease]
    assert (now(row).pid, now(row).hostname) == (stage.spawn.started[0].pid, HOSTNAME)


def test_the_limit_of_processes_is_kept(replicator: Replicator, stage: Stage) -> None:
    first, second = asked(replicator), asked(make_replicator("another"))
    stage.turn()
    assert len(stage.spawn.started) == 1
    assert now(second).lease == ""
    stage.spawn.started[0].code = -9
    stage.turn()
    assert now(first).state == VerificationState.FAILED
    assert len(stage.spawn.started) == 2


def test_a_killed_process_is_a_failure_that_says_so(replicator: Replicator, stage: Stage) -> None:
    row = asked(replicator)
    stage.turn()
    Record(now(row), now(row).lease, lease_seconds=60).started()
    stage.spawn.started[0].code = -9
    stage.turn(1)
    assert (now(row).state, now(row).error_code) == ("failed", "verify:lost")
    assert asked(replicator).state == VerificationState.WAITING


def test_a_process_that_renews_no_lease_is_ended(replicator: Replicator, stage: Stage) -> None:
    row = asked(replicator)
    stage.turn()
    stage.turn(60)
    stage.renew()
    stage.turn(60)
    assert now(row).state == VerificationState.WAITING
    stage.turn(60)
    assert (now(row).state, stage.spawn.started[0].ends) == ("failed", 1)


def test_one_on_another_machine_is_ended_by_its_lease_alone(
    replicator: Replicator, stage: Stage
) -> None:
    row = asked(replicator)
    stage.turn()
    Verification.objects.update(hostname="elsewhere")
    stage.turn(300)
    assert (now(row).state, stage.spawn.started[0].ends) == ("failed", 0)


def test_one_that_does_not_stop_in_time_is_killed(replicator: Replicator, stage: Stage) -> None:
    row = asked(replicator)
    stage.turn()
    verification_cancel(verification=now(row), actor=None)
    stage.renew()
    stage.turn(30)
    assert now(row).is_active
    stage.turn(35)
    assert (now(row).state, stage.spawn.started[0].ends) == ("cancelled", 1)


def test_a_deleted_replicator_is_not_verified_further(replicator: Replicator, stage: Stage) -> None:
    row = asked(replicator)
    stage.turn()
    Replicator.objects.update(deleting_since=stage.now)
    stage.turn(1)
    assert now(row).is_cancel_asked


# --- kept ---


def test_old_verifications_go_and_the_last_ones_stay(replicator: Replicator) -> None:
    """Guards retention: the page must always have a last result to show."""
    old, last_done = verified(replicator), verified(replicator)
    failed, record = begun(replicator)
    record.failed("verify:stuck", {})
    also_failed, record = begun(replicator)
    record.failed("verify:stuck", {})
    long_ago = timezone.now() - timedelta(days=400)
    Verification.objects.update(ended_at=long_ago)
    while prune_verifications():
        pass
    kept = set(Verification.objects.values_list("pk", flat=True))
    assert kept == {last_done.pk, also_failed.pk}
    assert set(DifferingRow.objects.values_list("table__verification", flat=True)) == {last_done.pk}
    assert {old.pk, failed.pk}.isdisjoint(kept)


def test_a_replicator_goes_once_its_verification_has_no_process(
    replicator: Replicator, stage: Stage
) -> None:
    verified(replicator)
    asked(replicator)
    stage.turn()
    Replicator.objects.update(deleting_since=stage.now)
    assert not drop_replicator(replicator.pk)
    stage.spawn.started[0].code = 0
    stage.turn(1)
    assert drop_replicator(replicator.pk)
    assert not Verification.objects.exists() and not DifferingRow.objects.exists()


# --- by a schedule ---


def test_a_schedule_asks_at_its_time_and_once_for_what_was_missed(
    replicator: Replicator, stage: Stage
) -> None:
    verify_schedule_set(replicator=replicator, cron="0 3 * * *", rows_per_second=10, actor=None)
    stage.turn()
    assert not Verification.objects.exists()
    stage.turn(3 * 86400)
    row = Verification.objects.get()
    assert (row.is_scheduled, row.rows_per_second) == (True, 10)
    found = VerifySchedule.objects.get()
    assert stage.now < found.next_at <= stage.now + timedelta(days=1)
    assert found.next_at.astimezone(UTC).hour == 3
    Verification.objects.update(lease_until=stage.now + timedelta(seconds=86400 + 60))
    stage.turn(86400)
    assert Verification.objects.count() == 1
    assert Event.objects.get(kind="verification_skipped").facts["reason"].startswith("A verif")


def test_an_empty_schedule_means_never_and_a_bad_one_is_refused(
    replicator: Replicator, stage: Stage, editor: Any
) -> None:
    for bad in ("tomorrow", "0 3 * *", "61 * * * *", "* * * * * *"):
        with pytest.raises(InvalidConfig):
            verify_schedule_set(replicator=replicator, cron=bad, actor=None)
    verify_schedule_set(replicator=replicator, cron=" 5  4 * * 1", actor=editor)
    assert VerifySchedule.objects.get().cron == "5 4 * * 1"
    verify_schedule_set(replicator=replicator, cron="", actor=editor)
    stage.turn(30 * 86400)
    assert not Verification.objects.exists()
    last = AuditEntry.objects.get(act="verify_schedule_changed", new_values__cron="")
    assert (last.actor, last.old_values["cron"]) == ("editor", "5 4 * * 1")


# --- repaired ---


def test_a_repair_takes_the_keys_of_the_chosen_rows_and_says_who(
    replicator: Replicator, editor: Any
) -> None:
    replicating(replicator)
    row = verified(replicator)
    one = DifferingRow.objects.get(kind="missing")
    some = repair_ask(
        verification=row, schema="shop", name="orders", actor=editor, rows=[one.pk, 10**9]
    )
    assert some.keys == [[["id", 8]]]
    rest = repair_ask(verification=row, schema="shop", name="orders", actor=editor)
    assert rest.keys == [[["id", 7]], [["id", 9]]]
    with pytest.raises(IllegalTransition, match="repair_asked"):
        repair_ask(verification=row, schema="shop", name="orders", actor=editor)
    entry = AuditEntry.objects.filter(act="repair_asked").last()
    assert entry is not None
    assert (entry.actor, entry.new_values["table"], entry.new_values["keys"]) == (
        "editor", "shop.orders", 1,
    )  # fmt: skip


def test_a_refused_repair_may_be_asked_for_again(replicator: Replicator) -> None:
    replicating(replicator)
    row = verified(replicator)
    first = repair_ask(verification=row, schema="shop", name="orders", actor=None)
    repair_transition(repair=first, event="repair_refused", code="target:permission", facts={})
    assert Repair.objects.get().state == RepairState.REFUSED
    again = repair_ask(verification=row, schema="shop", name="orders", actor=None)
    repair_transition(repair=again, event="repair_done", rows_written=3)
    assert again.ended_at is not None
    with pytest.raises(IllegalTransition):
        repair_transition(repair=again, event="repair_refused")
    kinds = ["repair_asked", "repair_refused", "repair_asked", "repair_done"]
    found = Event.objects.filter(kind__startswith="repair").order_by("id")
    assert list(found.values_list("kind", flat=True)) == kinds


def test_rows_that_did_not_settle_are_not_repaired(replicator: Replicator) -> None:
    replicating(replicator)
    report = table_report(CUSTOMERS, outcome=Outcome.UNSETTLED, unsettled=1, undecided=(DIFFERENT,))
    row = verified(replicator, report)
    assert DifferingRow.objects.get().is_unsettled
    with pytest.raises(IllegalTransition):
        repair_ask(verification=row, schema="shop", name="customers", actor=None)


def test_a_table_that_was_copied_afresh_since_is_not_repaired(replicator: Replicator) -> None:
    """Guards the new copy: the report is about rows of another one."""
    replicating(replicator)
    row = verified(replicator)
    Table.objects.update(generation=2)
    with pytest.raises(IllegalTransition) as refused:
        repair_ask(verification=row, schema="shop", name="orders", actor=None)
    assert "Verify it again" in refused.value.message
    assert datetime.now(UTC) > row.created_at


def test_a_table_without_a_key_is_not_repaired_and_says_so(replicator: Replicator) -> None:
    """Guards multisets: single rows of them have no name. The advice is a re-sync."""
    replicating(replicator)
    row = verified(replicator)
    table = Table.objects.get(name="orders")
    table.schema = {**(table.schema or {}), "key": []}
    table.save(update_fields=["schema"])
    with pytest.raises(IllegalTransition) as refused:
        repair_ask(verification=row, schema="shop", name="orders", actor=None)
    assert "has no key" in refused.value.message
    assert "Re-sync the table" in refused.value.message
