"""Changes what is copied of a table of a replicator that was deployed: its columns, its rows, its mode."""

from __future__ import annotations

from dataclasses import replace

from django.db import transaction
from django.db.models import F

from replicators import audit
from replicators.config import parse_tables
from replicators.connectors.model.schema import TableId, TableSelection
from replicators.models import Replicator
from replicators.services import replicator_choose, table_choice
from runners.events.write import act_add
from runners.models import Table
from runners.services import Actor, back_off_clear, replicator_locked, table_of
from runners.supervision.dispatch import nudge


@transaction.atomic
def table_change(*, replicator: Replicator, selection: TableSelection, actor: Actor) -> Table:
    """Copy other columns, rows or kinds of changes of a table, or in another mode; works while the run runs. Where rows or
    values may be missing in the copy it is made afresh. `Table.DoesNotExist` for a table that is not chosen."""
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
        # Changes of before were applied otherwise than they would be again now, so no rewind may go back over this.
        Table.objects.filter(pk=found.pk).update(shape_sequence=F("token_sequence"))
    if is_wider or (selection.columns, selection.filter) != (before.columns, before.filter):
        Table.objects.filter(pk=found.pk).update(is_resync_asked=True)
        back_off_clear(row)
    nudge()
    replicator.refresh_from_db()
    found.refresh_from_db()
    return found


def _same_columns(one: TableSelection, other: TableSelection, found: Table) -> bool:
    """Whether both choose the same columns, in whatever order, and with or without those of the key, which are copied anyhow."""
    key = (found.shape or {}).get("key", ())
    is_some = bool(one.columns) == bool(other.columns)
    return is_some and {*one.columns, *key} == {*other.columns, *key}


@transaction.atomic
def table_mode(*, replicator: Replicator, schema: str, name: str, mode: str, actor: Actor) -> Table:
    """Copy this table in another mode (empty: the replicator's). Where that differs from the mode of the present copy, the run,
    or the next one, makes a fresh copy, as a re-sync does. Asks nobody whether the table can have it:
    `drafts.services.replicator_table_mode` does. `Table.DoesNotExist`."""
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
