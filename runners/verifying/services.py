"""What people do about verifications: start, cancel, repair rows, set the schedule. Each action
writes an event row and a row of the audit trail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.utils import timezone

from replicators.connectors.model.schema import TableId
from replicators.invalid import InvalidConfig
from replicators.models import Replicator
from runners.events.write import act_add
from runners.models import Table
from runners.services import replicator_locked
from runners.states import RepairState
from runners.supervision.dispatch import send
from runners.transitions import IllegalTransition, verification_transition
from runners.verifications import (
    DifferingRow,
    Repair,
    Verification,
    VerifiedTable,
    VerifySchedule,
)
from runners.verifying.ability import refusal_repair, refusal_verify
from runners.verifying.schedule import next_time

Actor = AbstractBaseUser | None
ROWS_PER_SECOND_MOST = 100_000_000
_GOES_ON = "A verification is under way. Wait until it has ended, or cancel it."


def verify_nudge() -> None:
    """Start what waits at once after the transaction, so that people don't wait for beat."""
    transaction.on_commit(lambda: send("reconcile_verifications", expires=10.0))


@transaction.atomic
def verification_start(
    *,
    replicator: Replicator,
    actor: Actor,
    names: Sequence[TableId] | None = None,
    rows_per_second: int | None = None,
    is_scheduled: bool = False,
) -> Verification:
    """Ask for a verification of these tables, or of every table where no names are given; does not
    wait. Raises `Table.DoesNotExist`; IllegalTransition while one is under way, or where the
    replicator can't be verified."""
    row = Replicator.objects.select_for_update(no_key=True).get(pk=replicator.pk)
    refused = refusal_verify(row)
    if refused:
        raise IllegalTransition("refused", "verification_asked", message=refused)
    if Verification.objects.active().filter(replicator=row).exists():
        raise IllegalTransition("running", "verification_asked", message=_GOES_ON)
    tables = _tables(row, names)
    if not tables:
        text = "It has no table yet. Start it, and verify it after its first copy."
        raise IllegalTransition("empty", "verification_asked", message=text)
    name = actor.get_username() if actor is not None else ""
    try:
        with transaction.atomic():
            found = Verification.objects.create(
                replicator=row,
                rows_per_second=rows_checked(rows_per_second),
                is_scheduled=is_scheduled,
                asked_by=name,
            )
    except IntegrityError as err:
        raise IllegalTransition("running", "verification_asked", message=_GOES_ON) from err
    VerifiedTable.objects.bulk_create(
        VerifiedTable(verification=found, schema_name=t.schema_name, name=t.name) for t in tables
    )
    facts: dict[str, Any] = {"tables": [str(t) for t in tables] if names else "all"}
    if rows_per_second:
        facts["rows_per_second"] = rows_per_second
    act_add("verification_asked", replicator=row, actor=actor, facts=facts)
    verify_nudge()
    return found


def rows_checked(rows: int | None) -> int | None:
    """The throttle. InvalidConfig where it makes no sense."""
    if rows is not None and not 1 <= rows <= ROWS_PER_SECOND_MOST:
        text = f"must be a number from 1 to {ROWS_PER_SECOND_MOST:,}"
        raise InvalidConfig({"rows_per_second": text})
    return rows


def _tables(replicator: Replicator, names: Sequence[TableId] | None) -> list[Table]:
    shown = Table.objects.shown().filter(replicator=replicator).defer("schema")
    if names is None:
        return list(shown)
    return [shown.get(schema_name=n.schema, name=n.name) for n in dict.fromkeys(names)]


@transaction.atomic
def verification_cancel(*, verification: Verification, actor: Actor) -> Verification:
    """Ask it to stop. One that waits is cancelled at once; a running one stops after its chunk.
    Idempotent while it is active. Raises IllegalTransition where it has ended."""
    row = (
        Verification.objects.select_for_update(no_key=True)
        .select_related("replicator")
        .get(pk=verification.pk)
    )
    if not row.is_active:
        raise IllegalTransition(
            row.state, "verification_cancel_asked", message="This verification has ended already."
        )
    if not row.is_cancel_asked:
        name = actor.get_username() if actor is not None else ""
        Verification.objects.filter(pk=row.pk).update(
            is_cancel_asked=True, cancel_asked_at=timezone.now(), cancelled_by=name
        )
        act_add("verification_cancel_asked", replicator=row.replicator, actor=actor)
        if not row.lease:
            verification_transition(verification=row, event="verification_cancelled", actor=name)
    verify_nudge()
    verification.refresh_from_db()
    return verification


@transaction.atomic
def repair_ask(
    *,
    verification: Verification,
    schema: str,
    name: str,
    actor: Actor,
    rows: Iterable[int] | None = None,
) -> Repair:
    """Ask the run to write rows of a table again from the source: those of these ids, or every
    listed row that differs. Works while the run is live or before it starts. Raises
    `VerifiedTable.DoesNotExist`, `Table.DoesNotExist`; IllegalTransition where the rows can't be
    repaired."""
    row = replicator_locked(verification.replicator, "repair_asked")
    verified = VerifiedTable.objects.get(verification=verification, schema_name=schema, name=name)
    table = Table.objects.shown().get(replicator=row, schema_name=schema, name=name)
    refused = refusal_repair(row, table, verified)
    if refused:
        raise IllegalTransition(table.state, "repair_asked", message=refused)
    found = repairable(verified)
    if rows is not None:
        wanted = set(rows)
        found = [r for r in found if r.pk in wanted]
    if not found:
        text = f"No listed row of {schema}.{name} waits for a repair."
        raise IllegalTransition(table.state, "repair_asked", message=text)
    repair = Repair.objects.create(
        replicator=row,
        table=table,
        verification=verification,
        keys=[r.key for r in found],
        asked_by=actor.get_username() if actor is not None else "",
    )
    for first in range(0, len(found), 500):
        portion = [r.pk for r in found[first : first + 500]]
        DifferingRow.objects.filter(pk__in=portion).update(repair=repair)
    act_add(
        "repair_asked",
        replicator=row,
        actor=actor,
        table=TableId(schema, name),
        facts={"keys": len(found), "repair": repair.pk},
    )
    return repair


def repairable(verified: VerifiedTable) -> list[DifferingRow]:
    """The listed rows that differ and that no repair has taken: none was asked for, or it was
    refused."""
    rows = verified.rows.filter(is_unsettled=False).select_related("repair")
    return [r for r in rows if r.repair is None or r.repair.state == RepairState.REFUSED]


@transaction.atomic
def verify_schedule_set(
    *, replicator: Replicator, cron: str, rows_per_second: int | None = None, actor: Actor
) -> VerifySchedule:
    """Verify it by itself at these times (cron, UTC); an empty text: never. Raises InvalidConfig
    for a text that is no schedule, IllegalTransition where it can't be verified."""
    row = Replicator.objects.select_for_update(no_key=True).get(pk=replicator.pk)
    text = " ".join(cron.split())
    refused = refusal_verify(row) if text else ""
    if refused:
        raise IllegalTransition("refused", "verify_schedule_changed", message=refused)
    rows = rows_checked(rows_per_second)
    found, _ = VerifySchedule.objects.get_or_create(replicator=row)
    old = {"cron": found.cron, "rows_per_second": found.rows_per_second}
    found.next_at = next_time(text, timezone.now()) if text else None
    found.cron, found.rows_per_second = text, rows
    found.changed_by = actor.get_username() if actor is not None else ""
    found.save()
    new = {"cron": text, "rows_per_second": rows}
    if new != old:
        facts = {"cron": text}
        act_add(
            "verify_schedule_changed", replicator=row, actor=actor, facts=facts, old=old, new=new
        )
    return found
