"""Tables that appear and vanish at the source: what the policy says, what people answer. One door
to `NewTable`."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from replicators.config import parse_tables
from replicators.connectors.model.schema import TableId, TableSelection
from replicators.models import Replicator
from replicators.options import Options
from runners.events.write import act_add, event_add
from runners.models import NewTable, Progress, Run, Table
from runners.services import IllegalTransition, progress_of, table_remove
from runners.tables.changes import table_add

SHOWN = 20


@transaction.atomic
def tables_appeared(
    *, replicator: Replicator, tables: Sequence[TableId], run: Run | None = None
) -> list[TableId]:
    """These tables are at the source, in schemas that are copied from, and nobody chose them: all
    of them, each time. What is there at the first look into a schema was left out by a person; what
    comes later is asked about or added, by the policy, and forgotten when it is gone again. Those
    that are new."""
    progress = progress_of(replicator)
    schemas = {t.id.schema for t in parse_tables(replicator.tables)}
    first = schemas - set(progress.schemas_seen)
    if first:
        _remember(replicator, [t for t in tables if t.schema in first])
        seen = sorted({*progress.schemas_seen, *schemas})
        Progress.objects.filter(pk=progress.pk).update(schemas_seen=seen)
    rows = NewTable.objects.filter(replicator=replicator)
    known = {TableId(t.schema_name, t.name): t for t in rows}
    gone = [r.pk for t, r in known.items() if t not in set(tables) and not r.is_ignored]
    NewTable.objects.filter(pk__in=gone).delete()
    policy = Options.parse(replicator.options).new_tables
    new = [t for t in tables if t not in known]
    if not new or policy == "ignore":
        return []
    facts = {
        "tables": [str(t) for t in new[:SHOWN]],
        "count": len(new),
        "policy": policy,
    }
    event_add("tables_appeared", replicator=replicator, run=run, facts=facts)
    for table in new:
        if policy == "ask" or not _is_added(replicator, table):
            NewTable.objects.get_or_create(
                replicator=replicator, schema_name=table.schema, name=table.name
            )
    return new


def _is_added(replicator: Replicator, table: TableId) -> bool:
    """False for a table that can't be added now, such as one that goes by the name that another one
    of the replicator has been given: a person is asked."""
    try:
        with transaction.atomic():
            table_add(
                replicator=replicator,
                selection=TableSelection(table),
                actor=None,
                is_assessed=False,
            )
    except IllegalTransition:
        return False
    return True


def _remember(replicator: Replicator, tables: Sequence[TableId]) -> None:
    rows = [
        NewTable(replicator=replicator, schema_name=t.schema, name=t.name, is_ignored=True)
        for t in tables
    ]
    NewTable.objects.bulk_create(rows, 500, ignore_conflicts=True)


@transaction.atomic
def table_vanished(*, replicator: Replicator, table: TableId) -> bool:
    """The table is gone at the source, and its copy is to go too. False for the last table: it is
    never removed."""
    try:
        table_remove(
            replicator=replicator,
            schema=table.schema,
            name=table.name,
            actor=None,
            keep_target=False,
        )
    except (
        IllegalTransition,
        Table.DoesNotExist,
    ):  # the last one, or removed by a person meanwhile
        return False
    return True


def tables_asked(replicator: Replicator) -> list[NewTable]:
    """The new tables that a person is asked about: neither answered nor chosen by another way."""
    chosen = {t.id for t in parse_tables(replicator.tables)}
    rows = NewTable.objects.filter(replicator=replicator, is_ignored=False)
    return [r for r in rows if TableId(r.schema_name, r.name) not in chosen]


@transaction.atomic
def new_table_ignore(
    *, replicator: Replicator, schema: str, name: str, actor: AbstractBaseUser | None
) -> NewTable:
    """The table is not to be asked about again; it can be added later all the same.
    `NewTable.DoesNotExist`."""
    row = NewTable.objects.get(replicator=replicator, schema_name=schema, name=name)
    if NewTable.objects.filter(pk=row.pk, is_ignored=False).update(is_ignored=True):
        table = TableId(schema, name)
        act_add("table_ignored", replicator=replicator, actor=actor, table=table)
    row.refresh_from_db()
    return row
