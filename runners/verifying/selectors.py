"""What pages and REST read about verifications and repairs. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet, Subquery, Sum

from replicators.connectors.model.schema import TableId
from replicators.models import Replicator
from runners.models import Table
from runners.shown import ErrorShown, error_shown
from runners.states import LABELS, RepairState, VerificationState
from runners.verifications import (
    DifferingRow,
    Repair,
    Verification,
    VerificationQuerySet,
    VerifiedTable,
    VerifySchedule,
)
from runners.verifying.outcomes import COMPARED, OutcomeShown, outcome_shown, state_shown

LAST = 3
"""How many of the last verifications are searched for a table's last result."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The tables of a verification in numbers."""

    tables: int = 0
    done: int = 0
    rows: int = 0
    wrong: int = 0
    unsettled: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class VerificationView:
    """A verification as pages and REST show it."""

    row: Verification
    counts: Counts

    @property
    def shown(self) -> OutcomeShown:
        """Its outcome, or its state while it has none."""
        if self.row.state == VerificationState.DONE:
            return outcome_shown(self.row.outcome, self.counts.wrong)
        return state_shown(self.row.state)

    @property
    def error(self) -> ErrorShown | None:
        """What ended it, where an error did."""
        return error_shown(self.row.error_code, self.row.error_facts, self.row.ended_at)

    @property
    def by(self) -> str:
        """Who asked for it."""
        return "the schedule" if self.row.is_scheduled else self.row.asked_by

    def to_json(self) -> dict[str, Any]:
        """The form of a list in REST."""
        row, counts, error = self.row, self.counts, self.error
        return {
            "id": str(row.pk),
            "state": row.state,
            "outcome": row.outcome,
            "is_scheduled": row.is_scheduled,
            "asked_by": row.asked_by,
            "is_cancel_asked": row.is_cancel_asked,
            "rows_per_second": row.rows_per_second,
            "tables": counts.tables,
            "tables_done": counts.done,
            "rows": counts.rows,
            "wrong": counts.wrong,
            "unsettled": counts.unsettled,
            "asked_at": row.created_at,
            "started_at": row.started_at,
            "ended_at": row.ended_at,
            "error": error and {k: error[k] for k in ("code", "message", "suggestion", "since")},
        }


def verifications_of(replicator: Replicator) -> VerificationQuerySet:
    """Its verifications, newest first."""
    return Verification.objects.filter(replicator=replicator)


def verifications_page(
    replicator: Replicator, *, before: UUID | None, limit: int
) -> list[Verification]:
    """At most `limit` verifications, newest first: those that were asked for before `before`."""
    found = verifications_of(replicator)
    if before is not None:
        last = found.filter(pk=before).values("created_at")[:1]
        found = found.filter(created_at__lt=Subquery(last))
    return list(found[:limit])


def verification_views(found: Iterable[Verification]) -> list[VerificationView]:
    """These verifications with the counts of their tables, in one query more."""
    rows = list(found)
    summed = (
        VerifiedTable.objects.filter(verification__in=rows)
        .order_by()
        .values("verification")
        .annotate(
            all_tables=Count("pk"),
            all_done=Count("pk", filter=~Q(outcome="")),
            all_rows=Sum("rows_source", default=0),
            all_wrong=Sum(F("missing") + F("extra") + F("different"), default=0),
            all_unsettled=Sum("unsettled", default=0),
            all_failed=Count("pk", filter=Q(outcome="failed")),
        )
    )
    counts = {
        one["verification"]: Counts(
            one["all_tables"], one["all_done"], one["all_rows"], one["all_wrong"],
            one["all_unsettled"], one["all_failed"],
        )
        for one in summed
    }  # fmt: skip
    return [VerificationView(row, counts.get(row.pk, Counts())) for row in rows]


def verification_active(replicator: Replicator) -> VerificationView | None:
    """The one that waits or compares now."""
    found = verification_views(verifications_of(replicator).active()[:1])
    return found[0] if found else None


def verification_last(replicator: Replicator) -> VerificationView | None:
    """The last one that compared to the end."""
    found = verification_views(verifications_of(replicator).ended()[:1])
    return found[0] if found else None


def verification_failed(replicator: Replicator) -> VerificationView | None:
    """The newest one, where it has failed."""
    newest = verifications_of(replicator).first()
    if newest is None or newest.state != VerificationState.FAILED:
        return None
    return verification_views([newest])[0]


@dataclass(frozen=True, slots=True)
class TableVerified:
    """When a table was compared last, and with which outcome."""

    at: datetime
    shown: OutcomeShown


def tables_verified(
    replicator: Replicator, tables: Iterable[Table]
) -> dict[TableId, TableVerified]:
    """The last result of each of these tables that has one, from the last few verifications."""
    last = list(verifications_of(replicator).exclude(started_at=None).values_list("pk")[:LAST])
    if not last:
        return {}
    asked = {TableId(t.schema_name, t.name): t.generation for t in tables}
    found = VerifiedTable.objects.filter(
        verification__in=[pk for (pk,) in last],
        outcome__in=COMPARED,
        name__in=[t.name for t in asked],
    ).order_by("ended_at")
    shown = {}
    for row in found:
        table = TableId(row.schema_name, row.name)
        if row.ended_at is not None and asked.get(table) == row.generation:
            shown[table] = TableVerified(row.ended_at, outcome_shown(row.outcome, row.wrong))
    return shown


def repairs_of(replicator: Replicator) -> QuerySet[Repair]:
    """Its repairs, newest first."""
    return (
        Repair.objects.filter(replicator=replicator).select_related("table").defer("table__schema")
    )


def repairs_page(replicator: Replicator, *, before: int | None, limit: int) -> list[Repair]:
    """At most `limit` repairs, newest first: those before the id `before`."""
    found = repairs_of(replicator)
    return list((found if before is None else found.filter(pk__lt=before))[:limit])


def schedule_of(replicator: Replicator) -> VerifySchedule:
    """When it is verified by itself; a schedule that never comes where none was set."""
    found = VerifySchedule.objects.filter(replicator=replicator).first()
    return found or VerifySchedule(replicator=replicator)


def rows_page(
    table: VerifiedTable, *, kind: str = "", after: int = 0, limit: int
) -> list[DifferingRow]:
    """The listed rows of a table after that id. `kind`: only missing, extra or different rows, or
    `unsettled`."""
    found = table.rows.filter(pk__gt=after).select_related("repair")
    if kind == "unsettled":
        found = found.filter(is_unsettled=True)
    elif kind:
        found = found.filter(kind=kind, is_unsettled=False)
    return list(found[:limit])


def rows_counted(tables: Iterable[VerifiedTable]) -> dict[int, tuple[int, int]]:
    """For each of these tables with listed rows: how many there are, and how many of them a repair
    may take."""
    waits = Q(is_unsettled=False) & (Q(repair=None) | Q(repair__state=RepairState.REFUSED))
    odd = [t.pk for t in tables if t.wrong or t.unsettled]
    found = (
        DifferingRow.objects.filter(table__in=odd)
        .order_by()
        .values("table")
        .annotate(listed=Count("pk"), waits=Count("pk", filter=waits))
    )
    return {one["table"]: (one["listed"], one["waits"]) for one in found}


def repair_json(repair: Repair) -> dict[str, Any]:
    """A repair in the form of REST."""
    error = error_shown(
        repair.error_code,
        repair.error_facts,
        repair.ended_at,
        TableId(repair.table.schema_name, repair.table.name),
    )
    return {
        "id": repair.pk,
        "schema": repair.table.schema_name,
        "table": repair.table.name,
        "verification": repair.verification_id,
        "state": repair.state,
        "state_label": LABELS[repair.state],
        "keys": len(repair.keys),
        "rows_written": repair.rows_written,
        "rows_deleted": repair.rows_deleted,
        "rows_equal": repair.rows_equal,
        "rows_left": repair.rows_left,
        "asked_by": repair.asked_by,
        "asked_at": repair.asked_at,
        "ended_at": repair.ended_at,
        "error": error and {k: error[k] for k in ("code", "message", "suggestion", "since")},
    }
