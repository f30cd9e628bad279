"""Totals of a replicator's tables, added up by the database: a list of replicators costs one query,
however many tables they have."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Max, Min, Q, Sum
from django.db.models.functions import Coalesce

from replicators.models import Replicator
from runners.metrics.status import LagFacts, table_lag, worst_lag
from runners.models import Progress, Table
from runners.states import TableState

SINCE = Coalesce("unmerged_since", "error_since")


@dataclass(frozen=True, slots=True)
class Totals:
    """Tables by state, failing first; their worst lag (None while one isn't known); rows and
    changes. `failing_since`: since when all failing tables have been failing."""

    counts: dict[str, int] = field(default_factory=dict)
    lag_seconds: float | None = None
    rows_copied: int = 0
    changes: int = 0
    failing_since: datetime | None = None

    @property
    def tables(self) -> int:
        """Number of tables."""
        return sum(self.counts.values())

    @property
    def failing(self) -> int:
        """Number of failing tables."""
        return self.counts.get(TableState.FAILING, 0)


def lag_facts(row: dict[str, Any] | Table, progress: Progress | None, *, is_live: bool) -> LagFacts:
    """What determines the lag of a table's row, or of a group of rows."""
    values = row if isinstance(row, dict) else vars(row)
    return LagFacts(
        state=TableState(values["state"]),
        is_snapshot_done=values["is_snapshot_done"],
        lag_seconds=values["lag_seconds"],
        unmerged_since=values["unmerged_since"],
        error_since=values["error_since"],
        facts_at=progress.facts_at if progress else None,
        is_live=is_live,
    )


def totals_of(
    replicators: Iterable[tuple[Replicator, Progress | None, bool]], now: datetime
) -> dict[uuid.UUID, Totals]:
    """Totals by primary key; each argument is (replicator, its progress, whether its run is
    running)."""
    known = {r.pk: (progress, is_live) for r, progress, is_live in replicators}
    groups: dict[uuid.UUID, list[dict[str, Any]]] = defaultdict(list)
    for group in _groups(known.keys()):
        groups[group["replicator_id"]].append(group)
    return {pk: _totals(groups[pk], *known[pk], now) for pk in known}


def _groups(pks: Collection[uuid.UUID]) -> Any:
    """Tables with the same state and the same known facts of their lag, as one row."""
    return (
        Table.objects.shown()
        .filter(replicator__in=pks)
        .order_by()
        .annotate(is_lag_known=Q(lag_seconds__isnull=False))
        .values("replicator_id", "state", "is_snapshot_done", "is_lag_known")
        .annotate(
            tables=Count("pk"),
            worst=Max("lag_seconds"),
            since=Min(SINCE),
            failing_since=Max("error_since"),
            undated=Count("pk", filter=Q(unmerged_since=None, error_since=None)),
            rows=Sum("rows_snapshotted"),
            merged=Sum(F("inserts") + F("updates") + F("deletes")),
        )
    )


def _totals(
    groups: list[dict[str, Any]], progress: Progress | None, is_live: bool, now: datetime
) -> Totals:
    counts: dict[str, int] = {}
    for state in (
        TableState.FAILING,
        TableState.SNAPSHOTTING,
        TableState.WAITING,
        TableState.REPLICATING,
    ):
        if found := sum(g["tables"] for g in groups if g["state"] == state):
            counts[str(state)] = found
    return Totals(
        counts=counts,
        lag_seconds=worst_lag([_lag(g, progress, is_live, now) for g in groups]),
        rows_copied=sum(g["rows"] for g in groups),
        changes=sum(g["merged"] for g in groups),
        failing_since=max((g["failing_since"] for g in groups if g["failing_since"]), default=None),
    )


def _lag(
    group: dict[str, Any], progress: Progress | None, is_live: bool, now: datetime
) -> float | None:
    """The worst lag of a group: the lag of a table with the group's greatest lag and earliest
    moment."""
    dated = {
        **group,
        "lag_seconds": group["worst"],
        "unmerged_since": group["since"],
        "error_since": None,
    }
    lags = [table_lag(lag_facts(dated, progress, is_live=is_live), now)] if group["since"] else []
    if group["undated"]:
        undated = {**dated, "unmerged_since": None}
        lags.append(table_lag(lag_facts(undated, progress, is_live=is_live), now))
    return worst_lag(lags)
