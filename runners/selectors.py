"""What pages and REST read of running replicators; writes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.fields.json import KeyTransform
from django.utils import timezone

from replicators.config import InvalidConfig
from replicators.connectors.messages import MESSAGES, WAITS
from replicators.connectors.schema import TableId
from replicators.models import Replicator
from runners.models import Event, Progress, Run, Table, TableMetric
from runners.states import RunState
from runners.status import (
    Facts,
    Shown,
    replicator_state,
    snapshot_percent,
    table_lag,
)
from runners.totals import Totals, lag_facts, totals_of
from runners.watermarks import consistent_at

METRICS_MOST = 100_000
_WELL = frozenset({RunState.STOPPING, RunState.STOPPED})


@dataclass(frozen=True, slots=True)
class TableView:
    """A table as pages and REST show it."""

    row: Table
    lag_seconds: float | None
    snapshot_percent: int | None
    error: dict[str, Any] | None

    @property
    def called(self) -> str:
        """The table's name at the source where that is another one by now, empty otherwise."""
        now = getattr(self.row, "called", None)  # only what `tables_shown` read has it
        return "" if now in (None, [self.row.schema_name, self.row.name]) else ".".join(now)

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
            "error": told(self.error),
        }

    def asked_json(self) -> dict[str, Any]:
        """The same, with what was asked of the table and is not done yet."""
        row = self.row
        return self.to_json() | {
            "mode": row.mode,
            "called": self.called,
            "is_resync_asked": row.is_resync_asked,
            "is_replay_asked": row.is_replay_asked,
            "rewind_to": row.rewind_to,
            "rows_parked": row.rows_parked,
            "retry_at": row.retry_at,
            "needs_resync": row.needs_resync,
        }


@dataclass(frozen=True, slots=True)
class ReplicatorView:
    """A replicator with its state and its tables' totals, as a list or a page shows it."""

    replicator: Replicator
    shown: Shown
    totals: Totals
    error: dict[str, Any] | None
    retry_at: datetime | None
    facts: dict[str, Any] = field(default_factory=dict)
    facts_at: datetime | None = None
    run: Run | None = None
    tries: int = 0

    @property
    def lag_seconds(self) -> float | None:
        """That of the worst table."""
        return self.totals.lag_seconds

    @property
    def is_live(self) -> bool:
        """Whether a run writes figures."""
        return self.run is not None and self.run.state == RunState.RUNNING

    @property
    def is_log_full(self) -> bool:
        """Whether reading waits for room in the change log."""
        return self.is_live and bool(self.facts.get("is_backpressure"))

    @property
    def is_paused(self) -> bool:
        """Whether its tables stand still because a person asked for it."""
        return self.shown.state in {"paused", "stopping"}


def told(error: dict[str, Any] | None) -> dict[str, Any] | None:
    """An error as REST tells it: without the title, which only heads a page's notice."""
    return error and {k: v for k, v in error.items() if k != "title"}


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as a page shows it."""

    run: Run
    error: dict[str, Any] | None

    @property
    def seconds(self) -> float | None:
        """How long it ran, or runs; None before it started."""
        if self.run.started_at is None:
            return None
        return ((self.run.ended_at or timezone.now()) - self.run.started_at).total_seconds()


def error_shown(
    code: str, facts: dict[str, Any], since: datetime | None, table: TableId | None = None
) -> dict[str, Any] | None:
    """An error as `{code, title, message, suggestion, since}`; None without a code."""
    if not code:
        return None
    values = {**facts}
    if table is not None:
        values = {"table": str(table), "schema": table.schema, "name": table.name, **facts}
    message = MESSAGES.get(code, MESSAGES["internal:unexpected"]).render(values)
    return {
        "code": code,
        "title": message.title,
        "message": message.text,
        "suggestion": message.suggestion,
        "since": since.isoformat() if since else None,
    }


def replicators_loaded() -> QuerySet[Replicator]:
    """Replicators with everything a view needs besides totals, in a fixed number of queries."""
    mine = Run.objects.filter(replicator=OuterRef("pk"))
    return (
        Replicator.objects.select_related("progress", "created_by")
        .prefetch_related(Prefetch("runs", Run.objects.active(), to_attr="live_runs"))
        .annotate(has_started=Exists(mine), last_state=Subquery(mine.values("state")[:1]))
        .annotate(last_started_at=Subquery(mine.values("started_at")[:1]))
    )


def progress_seen(replicator: Any) -> Progress | None:
    """The loaded replicator's progress row, if it has one yet."""
    return getattr(replicator, "progress", None)


def _run(replicator: Any) -> Run | None:
    return replicator.live_runs[0] if replicator.live_runs else None


def _is_live(replicator: Any) -> bool:
    run = _run(replicator)
    return run is not None and run.state == RunState.RUNNING


def _shown(replicator: Any, totals: Totals, live: int, now: datetime) -> Shown:
    progress, run = progress_seen(replicator), _run(replicator)
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
        failing_tables=totals.failing,
        is_log_full=bool(progress and progress.facts.get("is_backpressure")),
    )
    return replicator_state(facts, now)


def _error(replicator: Any, progress: Progress | None) -> dict[str, Any] | None:
    """What keeps it from running; nothing of what it has outlived. Given up, it is not advised to wait for the next try."""
    is_outlived = replicator.last_started_at and replicator.last_state in _WELL
    if progress is None or _is_live(replicator) or (is_outlived and not replicator.deleting_since):
        return None
    found = error_shown(progress.error_code, progress.error_facts, progress.failing_since)
    if found and progress.is_given_up and progress.error_code in WAITS:
        found["suggestion"] = MESSAGES["run:retry-time-used-up"].suggestion
    return found


def _view(replicator: Any, totals: Totals, live: int, now: datetime) -> ReplicatorView:
    progress = progress_seen(replicator)
    return ReplicatorView(
        replicator=replicator,
        shown=_shown(replicator, totals, live, now),
        totals=totals,
        error=_error(replicator, progress),
        retry_at=progress.retry_at if progress else None,
        facts=progress.facts if progress else {},
        facts_at=progress.facts_at if progress else None,
        run=_run(replicator),
        tries=progress.failures if progress else 0,
    )


def _views(found: Iterable[Replicator]) -> list[ReplicatorView]:
    now, live, rows = timezone.now(), Run.objects.active().count(), list(found)
    totals = totals_of([(r, progress_seen(r), _is_live(r)) for r in rows], now)
    return [_view(r, totals[r.pk], live, now) for r in rows]


def replicators_for_list() -> list[ReplicatorView]:
    """All replicators with their states, by name."""
    return _views(replicators_loaded())


def replicators_found(
    *, state: str = "", name: str = "", source_kind: str = "", target_kind: str = ""
) -> list[ReplicatorView]:
    """The replicators that fit all that is said, by name; `name` is a part of it."""
    rows = replicators_loaded().filter(name__icontains=name)
    kinds = {"source_kind": source_kind, "target_kind": target_kind}
    views = _views(rows.filter(**{field: kind for field, kind in kinds.items() if kind}))
    return [v for v in views if not state or v.shown.state == state]


def replicator_view(replicator: Replicator) -> ReplicatorView:
    """One replicator with its state, its tables' totals and its last error; `Replicator.DoesNotExist`."""
    return _views([replicators_loaded().get(pk=replicator.pk)])[0]


def replicator_badge(replicator: Replicator) -> Shown:
    """State, label and colour."""
    return replicator_view(replicator).shown


def tables_shown(replicator: Replicator) -> QuerySet[Table]:
    """The tables of a replicator, by name; one whose removal was asked for is not shown any more."""
    rows = Table.objects.shown().filter(replicator=replicator)
    return rows.annotate(called=KeyTransform("called", "shape")).defer("shape")


def tables_found(
    replicator: Replicator, *, state: str = "", schema: str = "", table: str = ""
) -> QuerySet[Table]:
    """The tables that fit all that is said, by name; `table` is a part of it."""
    said = {"state": state, "schema_name": schema, "name__icontains": table}
    return tables_shown(replicator).filter(**{k: v for k, v in said.items() if v})


def table_views(view: ReplicatorView, rows: Iterable[Table]) -> list[TableView]:
    """These tables of a replicator as they are shown."""
    now, progress = timezone.now(), progress_seen(view.replicator)
    return [_table_view(row, progress, view.is_live, now) for row in rows]


def _table_view(row: Table, progress: Progress | None, is_live: bool, now: datetime) -> TableView:
    name = TableId(row.schema_name, row.name)
    return TableView(
        row=row,
        lag_seconds=table_lag(lag_facts(row, progress, is_live=is_live), now),
        snapshot_percent=snapshot_percent(
            row.rows_snapshotted, row.rows_total, row.is_snapshot_done
        ),
        error=error_shown(row.error_code, row.error_facts, row.error_since, name),
    )


def replicator_status(replicator: Replicator) -> dict[str, Any]:
    """The status answer of REST."""
    view = replicator_view(replicator)
    return {
        "id": str(view.replicator.pk),
        "name": view.replicator.name,
        "state": view.shown.state,
        "desired_state": view.replicator.desired_state,
        "lag_seconds": view.lag_seconds,
        "consistent_at": consistent_at(replicator),
        "error": told(view.error),
        "tables": [t.to_json() for t in table_views(view, tables_shown(replicator))],
    }


def events(
    replicator: Replicator, *, after: int = 0, table: TableId | None = None, limit: int = 200
) -> list[Event]:
    """Events, newest first; `after`: the next ones past that id, so that whoever goes on from the newest misses none."""
    found = Event.objects.filter(replicator=replicator, pk__gt=after)
    if table is not None:
        found = found.filter(schema_name=table.schema, table_name=table.name)
    if after:
        return list(found.order_by("pk")[:limit])[::-1]
    return list(found.order_by("-pk")[:limit])


def events_shown(
    replicator: Replicator | None, *, before: int = 0, is_people: bool = False, limit: int
) -> list[Event]:
    """Events of one replicator or of all, newest first; `is_people`: only what a person did."""
    found = Event.objects.select_related("replicator").order_by("-pk")
    if replicator is not None:
        found = found.filter(replicator=replicator)
    if before:
        found = found.filter(pk__lt=before)
    if is_people:
        found = found.exclude(actor="")
    return list(found[:limit])


def events_version(replicator: Replicator | None) -> int:
    """A number that grows with each event: a cheap answer to "did anything change?"."""
    found = Event.objects.order_by("-pk")
    if replicator is not None:
        found = found.filter(replicator=replicator)
    return found.values_list("pk", flat=True).first() or 0


def deletion(pk: Any) -> Event | None:
    """The event that outlives a deleted replicator."""
    return Event.objects.filter(kind="replicator_deleted", facts__id=str(pk)).first()


def deletion_told(pk: Any) -> dict[str, Any] | None:
    """What became of a deleted replicator, as REST tells it; None for one that is there, or never was."""
    event = deletion(pk)
    if event is None:
        return None
    left = Event.objects.filter(kind="target_left", facts__id=str(pk))
    return {
        "id": event.facts["id"],
        "name": event.facts["name"],
        "deleted_at": event.at,
        "statements": event.facts["statements"],
        "is_target_left": left.exists(),
    }


def runs_shown(replicator: Replicator, *, limit: int) -> list[RunView]:
    """Its last runs, newest first."""
    return [
        RunView(run, error_shown(run.error_code, run.error_facts, None))
        for run in Run.objects.filter(replicator=replicator)[:limit]
    ]


def metrics(
    replicator: Replicator, *, table: TableId | None = None, seconds: int
) -> list[dict[str, Any]]:
    """Figures of the last `seconds`, oldest first: every 10 s up to an hour, every minute beyond. InvalidConfig where they are too
    many for one answer."""
    resolution = 10 if seconds <= 3600 else 60
    found = TableMetric.objects.filter(
        table__replicator=replicator,
        resolution_seconds=resolution,
        at__gte=timezone.now() - timedelta(seconds=seconds),
    )
    if table is not None:
        found = found.filter(table__schema_name=table.schema, table__name=table.name)
    if found[: METRICS_MOST + 1].count() > METRICS_MOST:
        text = f"covers more than {METRICS_MOST} figures: name a table, or ask for less time"
        raise InvalidConfig({"seconds": text})
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
