"""Tables that appear and vanish at the source: the policy's decisions and people's answers. Only
this module writes `NewTable`."""

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
    """Record tables of the source that nobody chose, in schemas that are copied from; returns the
    new ones. Each call gets all such tables. Tables present at the first look into a schema count
    as left out by a person. For later ones the policy decides: a person is asked, or the table is
    added. A table that is gone again is forgotten."""
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
    """Try to add the table. False where it can't be added now, such as where another table of the
    replicator has its name: then a person is asked."""
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
    """Remove a table that is gone at the source, and its copy. False for the last table, which is
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
    ):  # the last table, or a person removed it meanwhile
        return False
    return True


def tables_asked(replicator: Replicator) -> list[NewTable]:
    """The new tables that a person is asked about: neither answered nor chosen in another way."""
    chosen = {t.id for t in parse_tables(replicator.tables)}
    rows = NewTable.objects.filter(replicator=replicator, is_ignored=False)
    return [r for r in rows if TableId(r.schema_name, r.name) not in chosen]


@transaction.atomic
def new_table_ignore(
    *, replicator: Replicator, schema: str, name: str, actor: AbstractBaseUser | None
) -> NewTable:
    """Do not ask about the table again; it can still be added later. Raises
    `NewTable.DoesNotExist`."""
    row = NewTable.objects.get(replicator=replicator, schema_name=schema, name=name)
    if NewTable.objects.filter(pk=row.pk, is_ignored=False).update(is_ignored=True):
        table = TableId(schema, name)
        act_add("table_ignored", replicator=replicator, actor=actor, table=table)
    row.refresh_from_db()
    return row
