"""The only code that changes the state of runs, tables, verifications and repairs: compare-and-set,
with an event row."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from replicators.connectors.model.schema import TableId
from runners.engine.store.table_states import is_heard
from runners.events.write import event_add
from runners.models import Run, Table
from runners.states import (
    RECORDED_ALWAYS,
    REPAIR_TRANSITIONS,
    RUN_ACTIVE,
    RUN_TRANSITIONS,
    TABLE_TRANSITIONS,
    VERIFICATION_ACTIVE,
    VERIFICATION_TRANSITIONS,
    RepairState,
    RunState,
    TableState,
    VerificationState,
)
from runners.verifications import Repair, Verification

_TRIES = 5


class IllegalTransition(Exception):
    """`event` is not allowed in `state`; `legal` are the allowed events. `message` is for
    people."""

    def __init__(
        self, state: str, event: str, legal: tuple[str, ...] = (), message: str = ""
    ) -> None:
        self.state, self.event, self.legal = str(state), event, legal
        self.message = message or f"It is {state} now."
        super().__init__(f"{event} is not possible in state {state}; possible: {', '.join(legal)}")


def _next(table: dict[tuple[Any, str], Any], state: Any, event: str) -> Any:
    found = table.get((state, event))
    if found is None:
        raise IllegalTransition(state, event, tuple(sorted(e for s, e in table if s == state)))
    return found


@transaction.atomic
def run_transition(
    *,
    run: Run,
    event: str,
    code: str = "",
    facts: dict[str, Any] | None = None,
    actor: str = "",
    **changes: Any,
) -> Run:
    """Move a run by `event`, change other fields with it, and return the run afterwards. Where
    another writer was first, the new state decides whether the event is still allowed. Raises
    IllegalTransition where it is not."""
    for _ in range(_TRIES):
        now = Run.objects.select_related("replicator").get(pk=run.pk)
        state = _next(RUN_TRANSITIONS, RunState(now.state), event)
        values: dict[str, Any] = {"state": state, **changes}
        if state not in RUN_ACTIVE:
            values.setdefault("ended_at", timezone.now())
        if code:
            values |= {"error_code": code, "error_facts": facts or {}}
        if Run.objects.filter(pk=run.pk, state=now.state).update(**values):
            event_add(
                event, replicator=now.replicator, run=now, actor=actor, code=code, facts=facts
            )
            run.refresh_from_db()
            return run
    raise IllegalTransition(now.state, event)


@transaction.atomic
def table_transition(
    *,
    table: Table,
    event: str,
    run: Run | None = None,
    code: str = "",
    facts: dict[str, Any] | None = None,
    actor: str = "",
    **changes: Any,
) -> Table:
    """Move a table by `event`, as `run_transition` moves a run. A repeated failure with the same
    cause keeps its `error_since` and writes no second event. An error that only a fresh copy can
    clear stays until that copy."""
    for _ in range(_TRIES):
        now = Table.objects.select_related("replicator").get(pk=table.pk)
        state = _next(TABLE_TRANSITIONS, TableState(now.state), event)
        if now.needs_resync:
            given_up = bool(changes.get("is_given_up"))
            if not is_heard(event, code, changes.get("retry_at"), is_given_up=given_up):
                table.refresh_from_db()
                return table
            if event == "table_rewound":
                state, code, facts = TableState.FAILING, now.error_code, now.error_facts
        values = {"state": state, **_error(now, state, code, facts), **changes}
        if Table.objects.filter(pk=table.pk, state=now.state).update(**values):
            if state != now.state or code != now.error_code or event in RECORDED_ALWAYS:
                event_add(
                    event,
                    replicator=now.replicator,
                    run=run,
                    table=TableId(now.schema_name, now.name),
                    actor=actor,
                    code=code,
                    facts=facts,
                )
            table.refresh_from_db()
            return table
    raise IllegalTransition(now.state, event)


@transaction.atomic
def verification_transition(
    *,
    verification: Verification,
    event: str,
    code: str = "",
    facts: dict[str, Any] | None = None,
    actor: str = "",
    **changes: Any,
) -> Verification:
    """Move a verification by `event`, as `run_transition` moves a run. `facts` belong to the error
    where there is a code, otherwise to the event. Raises IllegalTransition."""
    for _ in range(_TRIES):
        now = Verification.objects.select_related("replicator").get(pk=verification.pk)
        state = _next(VERIFICATION_TRANSITIONS, VerificationState(now.state), event)
        values: dict[str, Any] = {"state": state, **changes}
        if state not in VERIFICATION_ACTIVE:
            values = {"ended_at": timezone.now(), "lease": "", **values}
        if code:
            values |= {"error_code": code, "error_facts": facts or {}}
        if Verification.objects.filter(pk=now.pk, state=now.state).update(**values):
            event_add(event, replicator=now.replicator, actor=actor, code=code, facts=facts)
            verification.refresh_from_db()
            return verification
    raise IllegalTransition(now.state, event)


@transaction.atomic
def repair_transition(
    *,
    repair: Repair,
    event: str,
    run: Run | None = None,
    code: str = "",
    facts: dict[str, Any] | None = None,
    **changes: Any,
) -> Repair:
    """End a repair by `event`; `facts` as in `verification_transition`. Raises
    IllegalTransition."""
    now = Repair.objects.select_related("replicator", "table").get(pk=repair.pk)
    values = {"state": _next(REPAIR_TRANSITIONS, RepairState(now.state), event), **changes}
    values = {"ended_at": timezone.now(), **values}
    if code:
        values |= {"error_code": code, "error_facts": facts or {}}
    if not Repair.objects.filter(pk=now.pk, state=now.state).update(**values):
        raise IllegalTransition(now.state, event)
    event_add(
        event,
        replicator=now.replicator,
        run=run,
        table=TableId(now.table.schema_name, now.table.name),
        code=code,
        facts=facts,
    )
    repair.refresh_from_db()
    return repair


def _error(
    now: Table, state: TableState, code: str, facts: dict[str, Any] | None
) -> dict[str, Any]:
    if state is not TableState.FAILING:
        fresh: dict[str, Any] = {
            "error_code": "",
            "error_facts": {},
            "error_since": None,
            "retry_at": None,
        }
        return {**fresh, "is_given_up": False}
    since = now.error_since if now.error_since and now.error_code == code else timezone.now()
    error = {"error_code": code, "error_facts": facts or {}, "error_since": since}
    return {**error, "is_given_up": False}
