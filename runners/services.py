"""What people do with replicators that run: start, pause, resume, delete, re-sync. Each action
writes an event row."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

from django.contrib.auth.models import AbstractBaseUser, User
from django.db import transaction
from django.utils import timezone

from replicators.config import parse_tables
from replicators.connectors.model.schema import TableId
from replicators.models import DesiredState, Replicator
from replicators.permissions import can_change
from replicators.services import replicator_choose, tables_changed
from runners.events.write import act_add
from runners.models import Progress, Run, Table
from runners.states import TableState
from runners.supervision.dispatch import nudge
from runners.tables.quarantine import quarantined_rows
from runners.tables.rewinding import can_rewind, refusal, rewind_window
from runners.transitions import IllegalTransition, run_transition, table_transition

__all__ = [
    "IllegalTransition",
    "progress_of",
    "replicator_delete",
    "replicator_hold",
    "replicator_pause",
    "replicator_resume",
    "replicator_retry",
    "replicator_start",
    "run_ask_stop",
    "run_transition",
    "table_remove",
    "table_replay",
    "table_resync",
    "table_retry",
    "table_rewind",
    "table_transition",
    "tables_resync",
    "tables_sync",
]

Actor = AbstractBaseUser | None
_CALM: dict[str, Any] = {
    "failures": 0,
    "failing_since": None,
    "retry_at": None,
    "error_code": "",
    "error_facts": {},
    "error_since": None,
    "is_given_up": False,
}


def actor_name(actor: Actor) -> str:
    """The actor's name for event rows; empty for the program itself."""
    return actor.get_username() if actor is not None else ""


def progress_of(replicator: Replicator) -> Progress:
    """The replicator's progress row; created where it is missing."""
    return Progress.objects.get_or_create(replicator=replicator)[0]


def tables_sync(replicator: Replicator) -> None:
    """Create a row for every selected table; idempotent. Rows that are there are left out of the
    INSERT: PostgreSQL would wait there for whoever is changing them, which can end in a
    deadlock."""
    there = set(Table.objects.filter(replicator=replicator).values_list("schema_name", "name"))
    rows = [
        Table(replicator=replicator, schema_name=t.id.schema, name=t.id.name)
        for t in parse_tables(replicator.tables)
        if (t.id.schema, t.id.name) not in there
    ]
    Table.objects.bulk_create(rows, ignore_conflicts=True)


def _state(before: str, after: str) -> dict[str, Any]:
    """The values that the audit trail records when the desired state changes."""
    if before == after:
        return {}
    return {"old": {"desired_state": str(before)}, "new": {"desired_state": str(after)}}


def back_off_clear(replicator: Replicator) -> None:
    """Forget failures, so that the next start is at once."""
    progress_of(replicator)
    Progress.objects.filter(replicator=replicator).update(**_CALM)


def replicator_locked(replicator: Replicator, event: str) -> Replicator:
    """Lock the replicator's row for this transaction, for an action that may change its tables, and
    make its run read them again.

    Raises IllegalTransition while it is being deleted.
    """
    row = Replicator.objects.select_for_update(no_key=True).get(pk=replicator.pk)
    if row.deleting_since is not None:
        raise IllegalTransition("deleting", event, message="This replicator is being deleted.")
    tables_changed(row)
    return row


def _ask(replicator: Replicator, state: DesiredState) -> bool:
    found = Replicator.objects.filter(pk=replicator.pk).exclude(desired_state=state)
    return bool(found.update(desired_state=state, updated_at=timezone.now()))


def _take_on(row: Replicator, actor: Actor) -> None:
    """Hand a replicator over to who resumes it, where it stops without an owner who may change
    it."""
    owner, now = row.created_by, cast(User | None, actor)
    if now is None or owner is None or row.options.get("owner_gone") != "stop":
        return
    if can_change(owner, row):
        return
    Replicator.objects.filter(pk=row.pk).update(created_by=now)
    act_add(
        "replicator_handed_over",
        replicator=row,
        actor=now,
        old={"owner": actor_name(owner)},
        new={"owner": actor_name(now)},
    )


@transaction.atomic
def run_from_now(replicator: Replicator, actor: Actor, event: str) -> Replicator:
    """Ask it to run at once and forget its failures; `event` names the action."""
    row = replicator_locked(replicator, event)
    tables_sync(row)
    back_off_clear(row)
    before = row.desired_state
    _take_on(row, actor)
    _ask(row, DesiredState.RUNNING)
    act_add(event, replicator=row, actor=actor, **_state(before, DesiredState.RUNNING))
    nudge()
    replicator.refresh_from_db()
    return replicator


def replicator_start(*, replicator: Replicator, actor: Actor) -> Replicator:
    """Ask it to run; does not wait. Idempotent. Raises IllegalTransition while it is being
    deleted."""
    return run_from_now(replicator, actor, "replicator_started")


def replicator_resume(*, replicator: Replicator, actor: Actor) -> Replicator:
    """Ask it to run again at once. Clears the back-off, also where retries were given up. Does not
    wait."""
    return run_from_now(replicator, actor, "replicator_resumed")


@transaction.atomic
def replicator_retry(*, replicator: Replicator, actor: Actor) -> Replicator:
    """Retry it now; does not wait. Raises IllegalTransition where it neither waits for its next
    retry nor has failed."""
    row, progress = Replicator.objects.get(pk=replicator.pk), progress_of(replicator)
    is_wanted = row.desired_state == DesiredState.RUNNING and row.deleting_since is None
    has_failed = progress.is_given_up or progress.retry_at is not None
    if not is_wanted or not has_failed or Run.objects.active().filter(replicator=row).exists():
        text = "There is nothing to retry: it neither waits for its next try nor has failed."
        raise IllegalTransition(row.desired_state, "replicator_retry_asked", message=text)
    return run_from_now(replicator, actor, "replicator_retry_asked")


@transaction.atomic
def replicator_pause(*, replicator: Replicator, actor: Actor) -> Replicator:
    """Ask it to stop. The run seals what it has read and ends. Idempotent; does not wait."""
    row = replicator_locked(replicator, "replicator_paused")
    if _ask(row, DesiredState.PAUSED):
        wanted = _state(row.desired_state, DesiredState.PAUSED)
        act_add("replicator_paused", replicator=row, actor=actor, **wanted)
    Progress.objects.filter(replicator=row).update(paused_for=None)
    _stop_runs(row, actor_name(actor))
    nudge()
    replicator.refresh_from_db()
    return replicator


def _stop_runs(replicator: Replicator, actor: str) -> None:
    for run in Run.objects.active().filter(replicator=replicator):
        run_ask_stop(run=run, origin="user", actor=actor)


def replicator_hold(replicator: Replicator, origin: str) -> bool:
    """Pause it for a reason of the program's own, which `origin` names, within the caller's
    transaction; False where it is not to run. Runs are asked before the caller changes the
    progress: a run's own writes lock the two in this order."""
    mine = Replicator.objects.filter(
        pk=replicator.pk, desired_state=DesiredState.RUNNING, deleting_since=None
    )
    if not mine.update(desired_state=DesiredState.PAUSED):
        return False
    for run in Run.objects.active().filter(replicator=replicator):
        run_ask_stop(run=run, origin=origin)
    nudge()
    return True


@transaction.atomic
def run_ask_stop(*, run: Run, origin: str, actor: str = "") -> Run:
    """Ask a run to stop; `origin` is `user`, `error`, `owner`, `retention` or `shutdown`.
    Idempotent, also for a run that has ended."""
    run.refresh_from_db()
    Run.objects.filter(pk=run.pk, is_stop_asked=False).update(
        is_stop_asked=True, stop_origin=origin, stop_asked_at=timezone.now()
    )
    try:
        return run_transition(
            run=run, event="run_stop_asked", facts={"origin": origin}, actor=actor
        )
    except IllegalTransition:
        run.refresh_from_db()
        return run


@transaction.atomic
def replicator_delete(*, replicator: Replicator, actor: Actor, keep_target: bool) -> Replicator:
    """Mark it as being deleted and stop its run; a task removes the rest. Idempotent; does not
    wait."""
    row = Replicator.objects.select_for_update(no_key=True).get(pk=replicator.pk)
    if row.deleting_since is None:
        back_off_clear(row)
        Replicator.objects.filter(pk=row.pk).update(
            deleting_since=timezone.now(),
            keep_target=keep_target,
            desired_state=DesiredState.PAUSED,
        )
        act_add(
            "replicator_delete_asked",
            replicator=row,
            actor=actor,
            facts={"keep_target": keep_target},
        )
    _stop_runs(row, actor_name(actor))
    nudge()
    replicator.refresh_from_db()
    return replicator


def table_of(replicator: Replicator, schema: str, name: str) -> Table:
    """Its table of that name. Raises `Table.DoesNotExist`."""
    return Table.objects.get(replicator=replicator, schema_name=schema, name=name)


@transaction.atomic
def table_resync(*, replicator: Replicator, schema: str, name: str, actor: Actor) -> Table:
    """Ask for a fresh copy of a table; works while the run is live. Raises `Table.DoesNotExist`;
    IllegalTransition for a removed table."""
    names = [TableId(schema, name)]
    return tables_resync(replicator=replicator, names=names, actor=actor)[0]


@transaction.atomic
def tables_resync(
    *,
    replicator: Replicator,
    names: Sequence[TableId] | None = None,
    actor: Actor,
) -> list[Table]:
    """Ask for fresh copies of these tables, or of every table where no names are given; either all
    are asked for or none. Raises what `table_resync` raises."""
    row = replicator_locked(replicator, "table_resync_asked")
    if names is None:
        tables = list(Table.objects.shown().filter(replicator=row))
    else:
        tables = [table_of(row, name.schema, name.name) for name in dict.fromkeys(names)]
    for table in tables:
        _resync(row, table, actor)
    back_off_clear(row)
    nudge()
    return tables


def _resync(row: Replicator, table: Table, actor: Actor) -> None:
    if not table.is_chosen:
        raise IllegalTransition(TableState.REMOVED, "table_resync_asked")
    if Table.objects.filter(pk=table.pk, is_resync_asked=False).update(is_resync_asked=True):
        act_add(
            "table_resync_asked",
            replicator=row,
            actor=actor,
            table=TableId(table.schema_name, table.name),
        )
    table.refresh_from_db()


@transaction.atomic
def table_rewind(
    *, replicator: Replicator, schema: str, name: str, at: datetime, actor: Actor
) -> Table:
    """Ask to take a table back to that time and apply the later changes again; works while the run
    is live. Raises `Table.DoesNotExist`; IllegalTransition where the table does not replicate or
    the time can't be reached."""
    row = replicator_locked(replicator, "table_rewind_asked")
    table = table_of(row, schema, name)
    text, window = "", rewind_window(row)
    if not can_rewind(row):
        text = refusal(TableId(schema, name))
    elif not table.is_chosen or table.state != TableState.REPLICATING or table.is_resync_asked:
        text = f"{schema}.{name} can be rewound only while it replicates."
    elif not window.earliest <= at <= window.latest:
        text = str(window)
    if text:
        raise IllegalTransition(table.state, "table_rewind_asked", message=text)
    Table.objects.filter(pk=table.pk).update(rewind_to=at)
    reported = at.astimezone(UTC).isoformat(" ", "seconds")
    act_add(
        "table_rewind_asked",
        replicator=row,
        actor=actor,
        table=TableId(schema, name),
        facts={"at": reported},
    )
    nudge()
    table.refresh_from_db()
    return table


@transaction.atomic
def table_remove(
    *, replicator: Replicator, schema: str, name: str, actor: Actor, keep_target: bool = True
) -> Table:
    """Stop copying this table. The live run, or the next one, removes it from the source's stream
    and the change log. Its rows stay in the target unless told otherwise. Raises
    `Table.DoesNotExist`; IllegalTransition for the last table."""
    row = replicator_locked(replicator, "table_remove_asked")
    table, known = TableId(schema, name), parse_tables(row.tables)
    found = table_of(row, schema, name)
    if not found.is_chosen:
        raise Table.DoesNotExist
    left = [t for t in known if t.id != table]
    if not left:
        text = "This is its last table. Delete the replicator instead, or add another table first."
        raise IllegalTransition("chosen", "table_remove_asked", message=text)
    replicator_choose(replicator=row, tables=left)
    Table.objects.filter(pk=found.pk).update(is_chosen=False, is_drop_asked=not keep_target)
    act_add(
        "table_remove_asked",
        replicator=row,
        actor=actor,
        table=table,
        facts={"keep_target": keep_target},
    )
    nudge()
    replicator.refresh_from_db()
    found.refresh_from_db()
    return found


@transaction.atomic
def table_retry(*, replicator: Replicator, schema: str, name: str, actor: Actor) -> Table:
    """Retry a failing table now instead of at the end of its back-off. A table whose first copy
    never finished is copied from the start. Raises IllegalTransition where it isn't failing, or
    where changes are missing that only a re-sync brings."""
    row = replicator_locked(replicator, "table_retry_asked")
    table = table_of(row, schema, name)
    if table.state != TableState.FAILING:
        raise IllegalTransition(table.state, "table_retry_asked")
    again: dict[str, Any] = {
        "retry_at": timezone.now(),
        "failures": 0,
        "failing_seconds": 0.0,
        "is_given_up": False,
    }
    if table.needs_resync:
        if table.is_snapshot_done:
            text = (
                f"Changes of {schema}.{name} are missing from the change log. Fix the cause, "
                "then re-sync the table."
            )
            raise IllegalTransition(table.state, "table_retry_asked", message=text)
        again = {"is_resync_asked": True}
    Table.objects.filter(pk=table.pk).update(**again)
    act_add("table_retry_asked", replicator=row, actor=actor, table=TableId(schema, name))
    back_off_clear(row)
    nudge()
    table.refresh_from_db()
    return table


@transaction.atomic
def table_replay(*, replicator: Replicator, schema: str, name: str, actor: Actor) -> Table:
    """Ask to merge the table's quarantined rows, with NULL for each unsupported value; the run does
    it in its next merge. Rows quarantined later wait again. Raises `Table.DoesNotExist`;
    IllegalTransition where nothing is quarantined."""
    row = replicator_locked(replicator, "table_replay_asked")
    table = table_of(row, schema, name)
    accepted = quarantined_rows(table).update(is_accepted=True)
    if not accepted:
        text = f"No row of {schema}.{name} is quarantined."
        raise IllegalTransition(table.state, "table_replay_asked", message=text)
    Table.objects.filter(pk=table.pk).update(is_replay_asked=True)
    act_add(
        "table_replay_asked",
        replicator=row,
        actor=actor,
        table=TableId(schema, name),
        facts={"rows": accepted},
    )
    nudge()
    table.refresh_from_db()
    return table
