"""Which tables are not at the moment of the others, where all tables merge together."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Exists, Max, OuterRef, QuerySet

from replicators.models import Replicator
from replicators.options import Options
from runners.models import ChangeFile, Table
from runners.states import TableState

SHOWN = 3


@dataclass(frozen=True, slots=True)
class Apart:
    """The tables that are apart from the others, each with the reason: the first ones, and how many
    more there are."""

    tables: tuple[tuple[str, str], ...] = ()
    more: int = 0


def tables_apart(replicator: Replicator) -> Apart | None:
    """The tables that readers do not see at the moment of the others. None where each table merges
    by itself."""
    if Options.readable(replicator.options).consistent != "on":
        return None
    shown = Table.objects.shown().filter(replicator=replicator)
    found = [(str(row), _why(row)) for row in _apart(shown).defer("schema")]
    return Apart(tuple(found[:SHOWN]), max(0, len(found) - SHOWN))


def _apart(shown: QuerySet[Table]) -> QuerySet[Table]:
    level = shown.filter(state=TableState.REPLICATING, rows_quarantined=0)
    most = level.aggregate(most=Max("merged_sequence"))["most"] or 0
    missing = ChangeFile.objects.filter(
        replicator=OuterRef("replicator"),
        schema_name=OuterRef("schema_name"),
        table_name=OuterRef("name"),
        first_sequence__lte=most,
        last_sequence__gt=OuterRef("merged_sequence"),
        last_position__gte=OuterRef("snapshot_position"),
    )
    behind = level.filter(Exists(missing)).values("pk")
    return shown.exclude(pk__in=level.exclude(pk__in=behind).values("pk"))


def _why(row: Table) -> str:
    if row.state != TableState.REPLICATING:
        return str(row.state)
    return "rows quarantined" if row.rows_quarantined else "catching up"
