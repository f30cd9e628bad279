"""What pages and REST read of running replicators; writes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Prefetch, QuerySet
from django.utils import timezone

from replicators.connectors.messages import MESSAGES
from replicators.connectors.schema import TableId
from replicators.models import Replicator
from runners.models import Event, LogLine, Progress, Run, Sign, Table, TableMetric
from runners.states import RunState, TableState
from runners.status import (
    Facts,
    LagFacts,
    Shown,
    replicator_state,
    snapshot_percent,
    table_lag,
    worst_lag,
)

WORKER_SECONDS = 45.0


@dataclass(frozen=True, slots=True)
class TableView:
    """A table as pages and REST show it."""

    row: Table
    lag_seconds: float | None
    snapshot_percent: int | None
    error: dict[str, Any] | None

    def to_json(self) -> dict[str, Any]:
        """The form of the status answer."""
        return {
            "schema": self.row.schema_name,
            "table": self.row.name,
            "state": self.row.state,
            "rows_snapshotted": self.row.rows_snapshotted,
            "snapshot_percent": self.snapshot_percent,
            "inserts": self.row.inserts,
            "updates": self.row.updates,
            "deletes": self.row.deletes,
            "lag_seconds": self.lag_seconds,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class ReplicatorView:
    """A replicator with its state, as a list or a page shows it."""

    replicator: Replicator
    shown: Shown
    lag_seconds: float | None
    tables: tuple[TableView, ...]
    error: dict[str, Any] | None
    retry_at: datetime | None
    facts: dict[str, Any] = field(default_factory=dict)
    run: Run | None = None


@dataclass(frozen=True, slots=True)
class WorkerHealth:
    """Whether anybody works; `message` is the banner's text, empty when all is well."""

    is_ok: bool
    has_broker: bool
    reconciled_at: datetime | None
    message: str


def error_shown(
    code: str, facts: dict[str, Any], since: datetime | None, table: TableId | None = None
) -> dict[str, Any] | None:
    """An error as `{code, message, suggestion, since}`; None without a code."""
    if not code:
        return None
    values = {**facts}
    if table is not None:
        values = {"table": str(table), "schema": table.schema, "name": table.name, **facts}
    message = MESSAGES.get(code, MESSAGES["internal:unexpected"]).render(values)
    return {
        "code": code,
        "message": message.text,
        "suggestion": message.suggestion,
        "since": since.isoformat() if since else None,
    }


def replicators_loaded() -> QuerySet[Replicator]:
    """Replicators with everything a view needs, in a fixed number of queries."""
    return Replicator.objects.select_related("progress", "created_by").prefetch_related(
        Prefetch("runs", Run.objects.active(), to_attr="live_runs"),
        Prefetch(
            "table_rows",
            Table.objects.exclude(state=TableState.REMOVED).defer("shape"),
            to_attr="shown_tables",
        ),
    )


def _table_view(row: Table, progress: Progress | None, is_live: bool, now: datetime) -> TableView:
    facts = LagFacts(
        state=TableState(row.state),
        is_snapshot_done=row.is_snapshot_done,
        lag_seconds=row.lag_seconds,
        unmerged_since=row.unmerged_since,
        error_since=row.error_since,
        facts_at=progress.facts_at if progress else None,
        is_live=is_live,
    )
    name = TableId(row.schema_name, row.name)
    return TableView(
        row=row,
        lag_seconds=table_lag(facts, now),
        snapshot_percent=snapshot_percent(
            row.rows_snapshotted, row.rows_total, row.is_snapshot_done
        ),
        error=error_shown(row.error_code, row.error_facts, row.error_since, name),
    )


def _shown(
    replicator: Any, run: Run | None, progress: Progress | None, live: int, now: datetime
) -> Shown:
    failing = sum(t.state == TableState.FAILING for t in replicator.shown_tables)
    facts = Facts(
        desired=replicator.desired_state,
        run_state=RunState(run.state) if run else None,
        is_deleting=replicator.deleting_since is not None,
        is_given_up=progress.is_given_up if progress else False,
        error_code=progress.error_code if progress else "",
        failures=progress.failures if progress else 0,
        retry_at=progress.retry_at if progress else None,
        live_runs=live,
        max_runs=settings.MAX_RUNS,
        failing_tables=failing,
    )
    return replicator_state(facts, now)


def _view(replicator: Any, live: int, now: datetime) -> ReplicatorView:
    progress: Progress | None = getattr(replicator, "progress", None)
    run = replicator.live_runs[0] if replicator.live_runs else None
    is_live = run is not None and run.state == RunState.RUNNING
    tables = tuple(_table_view(t, progress, is_live, now) for t in replicator.shown_tables)
    return ReplicatorView(
        replicator=replicator,
        shown=_shown(replicator, run, progress, live, now),
        lag_seconds=worst_lag([t.lag_seconds for t in tables]),
        tables=tables,
        error=(
            error_shown(progress.error_code, progress.error_facts, progress.failing_since)
            if progress and not is_live
            else None
        ),
        retry_at=progress.retry_at if progress else None,
        facts=progress.facts if progress else {},
        run=run,
    )


def _views(found: Iterable[Replicator]) -> list[ReplicatorView]:
    now, live = timezone.now(), Run.objects.active().count()
    return [_view(r, live, now) for r in found]


def replicators_for_list() -> list[ReplicatorView]:
    """All replicators with their states, by name."""
    return _views(replicators_loaded())


def replicator_view(replicator: Replicator) -> ReplicatorView:
    """One replicator with its state, its tables and its last error; `Replicator.DoesNotExist`."""
    return _views([replicators_loaded().get(pk=replicator.pk)])[0]


def replicator_badge(replicator: Replicator) -> Shown:
    """State, label and colour."""
    return replicator_view(replicator).shown


def table_rows(replicator: Replicator) -> list[TableView]:
    """The tables of a replicator, by name."""
    return list(replicator_view(replicator).tables)


def replicator_status(replicator: Replicator) -> dict[str, Any]:
    """The status answer of REST."""
    view = replicator_view(replicator)
    return {
        "id": str(view.replicator.pk),
        "name": view.replicator.name,
        "state": view.shown.state,
        "desired_state": view.replicator.desired_state,
        "lag_seconds": view.lag_seconds,
        "tables": [t.to_json() for t in view.tables],
    }


def log_lines(
    replicator: Replicator,
    *,
    after: int = 0,
    level: str = "",
    table: str = "",
    search: str = "",
    limit: int = 200,
) -> list[LogLine]:
    """Lines after the cursor, oldest first; without a cursor the last `limit` lines."""
    found = LogLine.objects.filter(replicator=replicator)
    if level:
        found = found.filter(level__in=_levels_from(level))
    if table:
        found = found.filter(table=table)
    if search:
        found = found.filter(text__icontains=search)
    if after:
        return list(found.filter(pk__gt=after).order_by("pk")[:limit])
    return list(found.order_by("-pk")[:limit])[::-1]


_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def _levels_from(level: str) -> tuple[str, ...]:
    upper = level.upper()
    return _LEVELS[_LEVELS.index(upper) :] if upper in _LEVELS else _LEVELS


def events(
    replicator: Replicator, *, after: int = 0, table: TableId | None = None, limit: int = 200
) -> list[Event]:
    """Events, newest first; `after`: only those newer than that id."""
    found = Event.objects.filter(replicator=replicator, pk__gt=after)
    if table is not None:
        found = found.filter(schema_name=table.schema, table_name=table.name)
    return list(found.order_by("-pk")[:limit])


def events_version(replicator: Replicator) -> int:
    """A number that grows with each event: a cheap answer to "did anything change?"."""
    return (
        Event.objects.filter(replicator=replicator)
        .order_by("-pk")
        .values_list("pk", flat=True)
        .first()
        or 0
    )


def metrics(
    replicator: Replicator, *, table: TableId | None = None, seconds: int
) -> list[dict[str, Any]]:
    """Figures of the last `seconds`, oldest first: every 10 s up to an hour, every minute beyond."""
    resolution = 10 if seconds <= 3600 else 60
    found = TableMetric.objects.filter(
        table__replicator=replicator,
        resolution_seconds=resolution,
        at__gte=timezone.now() - timedelta(seconds=seconds),
    )
    if table is not None:
        found = found.filter(table__schema_name=table.schema, table__name=table.name)
    return [
        {
            "schema": m.table.schema_name,
            "table": m.table.name,
            "at": m.at.isoformat(),
            "resolution_seconds": m.resolution_seconds,
            "lag_seconds": m.lag_seconds,
            "inserts": m.inserts,
            "updates": m.updates,
            "deletes": m.deletes,
            "rows_snapshotted": m.rows_snapshotted,
            "backlog_bytes": m.backlog_bytes,
        }
        for m in found.select_related("table").defer("table__shape").order_by("at", "pk")
    ]


def worker_health() -> WorkerHealth:
    """Cheap: no connection is made; the workers' signs in the database tell."""
    at = Sign.objects.filter(name="reconcile").values_list("at", flat=True).first()
    has_broker = bool(settings.REDIS_URL)
    if not has_broker:
        message = "No worker: run `make dev`."
    elif at is None or timezone.now() - at > timedelta(seconds=WORKER_SECONDS):
        message = "The workers don't answer: nothing starts or stops until they run again."
    else:
        message = ""
    return WorkerHealth(not message, has_broker, at, message)
