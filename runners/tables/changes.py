"""Adds tables to a deployed replicator, and changes what is copied of them: columns, rows, kinds of
changes, mode.

Pages and REST call the same service. Each function first assesses the request, as a deploy does,
outside of any transaction: it blocks while source and target answer. `is_assessed` False skips the
assessment; it is for a policy's decisions, not a person's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.db import transaction
from django.db.models import F

from assessments.services import assess
from replicators import audit
from replicators.config import ReplicatorConfig, parse_tables
from replicators.connectors.model.schema import TableId, TableSelection
from replicators.connectors.problems.problem import Problem, Severity
from replicators.models import Replicator
from replicators.services import config_of, replicator_choose, table_choice
from runners.engine.store.protocol import FRESH
from runners.events.write import act_add
from runners.models import Table
from runners.services import (
    Actor,
    IllegalTransition,
    actor_name,
    back_off_clear,
    replicator_locked,
    table_of,
    table_transition,
    tables_sync,
)
from runners.states import TableState
from runners.supervision.dispatch import nudge


class TableRefused(Exception):
    """The assessment found errors in a table that was to be added or changed; `problems` are all
    problems of that table."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("The assessment found errors.")
        self.problems = problems


def table_add(
    *, replicator: Replicator, selection: TableSelection, actor: Actor, is_assessed: bool = True
) -> Table:
    """Copy this table too, and then replicate it. Works while the run is live; the other tables do
    not pause.

    A table that was removed before is copied again and matched by its name alone. Raises
    `TableRefused` on an error of the table or of the servers; IllegalTransition where the table is
    already chosen, also under its earlier name.
    """
    if is_assessed and selection.id not in {t.id for t in config_of(replicator).tables}:
        _refuse_faulty(replicator, [selection])
    return _add(replicator=replicator, selection=selection, actor=actor)


def tables_add(
    *, replicator: Replicator, selections: Sequence[TableSelection], actor: Actor
) -> list[Table]:
    """Add tables after one assessment, all of them or none, as `table_add` does. Tables already
    chosen are skipped."""
    known = {t.id for t in config_of(replicator).tables}
    new = [s for s in selections if s.id not in known]
    if new:
        _refuse_faulty(replicator, new)
    with transaction.atomic():
        return [_add(replicator=replicator, selection=s, actor=actor) for s in new]


def table_change(
    *, replicator: Replicator, selection: TableSelection, actor: Actor, is_assessed: bool = True
) -> Table:
    """Copy other columns, rows or kinds of changes of a table, or use another mode; works while the
    run is live.

    Where rows or values may be missing in the copy, a fresh copy is made. Raises `TableRefused`;
    `Table.DoesNotExist` for a table that is not chosen.
    """
    if is_assessed:
        if selection.id not in {t.id for t in config_of(replicator).tables}:
            raise Table.DoesNotExist
        _refuse_faulty(replicator, [selection])
    return _change(replicator=replicator, selection=selection, actor=actor)


def table_mode(
    *,
    replicator: Replicator,
    schema: str,
    name: str,
    mode: str,
    actor: Actor,
    is_assessed: bool = True,
) -> Table:
    """Copy this table in another mode (empty: the replicator's).

    Where the mode differs from that of the present copy, the live run, or the next one, makes a
    fresh copy, as a re-sync does. Raises `TableRefused`, InvalidConfig for an unknown mode,
    `Table.DoesNotExist`.
    """
    (asked,) = parse_tables([{"schema": schema, "name": name, "mode": mode}])
    if is_assessed:
        config = config_of(replicator)
        tables = [replace(t, mode=asked.mode) if t.id == asked.id else t for t in config.tables]
        if tuple(tables) != config.tables:
            _require_mode(replace(config, tables=tuple(tables)), asked)
    return _mode(replicator=replicator, schema=schema, name=name, mode=asked.mode, actor=actor)


def _refuse_faulty(replicator: Replicator, selections: Sequence[TableSelection]) -> None:
    config, asked = config_of(replicator), {s.id for s in selections}
    others = tuple(t for t in config.tables if t.id not in asked)
    found = assess(replace(config, tables=(*others, *selections))).problems
    mine = tuple(p for p in found if p.table is None or p.table in asked)
    if any(p.severity is Severity.ERROR for p in mine):
        raise TableRefused(mine)


def _require_mode(config: ReplicatorConfig, asked: TableSelection) -> None:
    """Refuse a mode that the table can't have. Other errors do not count: the table is copied
    already."""
    found = assess(config).problems
    mine = tuple(p for p in found if p.table == asked.id and ":mode-" in p.code)
    if any(p.severity is Severity.ERROR for p in mine):
        raise TableRefused(mine)


@transaction.atomic
def _add(*, replicator: Replicator, selection: TableSelection, actor: Actor) -> Table:
    row = replicator_locked(replicator, "table_add_asked")
    table, known = selection.id, parse_tables(row.tables)
    if table in {t.id for t in known}:
        raise IllegalTransition(
            "chosen", "table_add_asked", message=f"{table} is a table of this replicator already."
        )
    called = Table.objects.filter(
        replicator=row, is_chosen=True, schema__called=[table.schema, table.name]
    ).first()
    if called is not None:
        text = (
            f"{table} is copied already, as {called.schema_name}.{called.name}: that was its "
            "name before."
        )
        raise IllegalTransition("chosen", "table_add_asked", message=text)
    replicator_choose(replicator=row, tables=[*known, selection])
    tables_sync(row)
    mine = Table.objects.filter(replicator=row, schema_name=table.schema, name=table.name)
    mine.update(is_chosen=True, is_drop_asked=False)
    found = mine.get()
    if found.state == TableState.REMOVED:
        table_transition(
            table=found, event="table_added", actor=actor_name(actor), schema=None, **FRESH
        )
    elif found.state != TableState.WAITING:
        # The run has not carried out the removal yet, so the table is still replicated. Only a
        # fresh copy matches the new selection.
        mine.update(is_resync_asked=True)
    new = table_choice(selection)
    act_add("table_add_asked", replicator=row, actor=actor, table=table, new=new)
    nudge()
    replicator.refresh_from_db()
    return mine.get()


@transaction.atomic
def _change(*, replicator: Replicator, selection: TableSelection, actor: Actor) -> Table:
    row = replicator_locked(replicator, "table_change_asked")
    known = {t.id: t for t in parse_tables(row.tables)}
    if selection.id not in known:
        raise Table.DoesNotExist
    before = known[selection.id]
    found = table_of(row, selection.id.schema, selection.id.name)
    if _same_columns(before, selection, found):
        selection = replace(selection, columns=before.columns)
    if selection != before:
        replicator_choose(replicator=row, tables={**known, selection.id: selection}.values())
        old, new = audit.changed(table_choice(before), table_choice(selection))
        act_add(
            "table_change_asked", replicator=row, actor=actor, table=selection.id, old=old, new=new
        )
    is_wider = "inserts" in {*selection.excluded} ^ {*before.excluded}
    if {*selection.excluded} != {*before.excluded}:
        # A rewind would apply earlier changes in another way than they were applied, so no rewind
        # may go back beyond this point.
        Table.objects.filter(pk=found.pk).update(schema_sequence=F("token_sequence"))
    if is_wider or (selection.columns, selection.filter) != (before.columns, before.filter):
        Table.objects.filter(pk=found.pk).update(is_resync_asked=True)
        back_off_clear(row)
    nudge()
    replicator.refresh_from_db()
    found.refresh_from_db()
    return found


def _same_columns(one: TableSelection, other: TableSelection, found: Table) -> bool:
    """Whether both choose the same columns. Order does not matter, nor whether the key's columns
    are listed: they are always copied."""
    key = (found.schema or {}).get("key", ())
    is_some = bool(one.columns) == bool(other.columns)
    return is_some and {*one.columns, *key} == {*other.columns, *key}


@transaction.atomic
def _mode(*, replicator: Replicator, schema: str, name: str, mode: str, actor: Actor) -> Table:
    row = replicator_locked(replicator, "table_mode_asked")
    table, found = TableId(schema, name), table_of(row, schema, name)
    if not found.is_chosen:
        raise Table.DoesNotExist
    known = parse_tables(row.tables)
    chosen = [replace(t, mode=mode) if t.id == table else t for t in known]
    if chosen != list(known):
        replicator_choose(replicator=row, tables=chosen)
        old = {"mode": next(str(t.mode) for t in known if t.id == table)}
        act_add(
            "table_mode_asked",
            replicator=row,
            actor=actor,
            table=table,
            facts={"mode": mode},
            old=old,
        )
        nudge()
    replicator.refresh_from_db()
    return found
