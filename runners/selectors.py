"""What pages and REST read about running replicators. Writes nothing."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, cast

from django.conf import settings
from django.db.models import Exists, OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.fields.json import KeyTransform
from django.utils import timezone

from replicators.config import InvalidConfig
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.lookup import message_of
from replicators.connectors.problems.problem import Severity
from replicators.models import Replicator
from runners.metrics.copying import copy_progress
from runners.metrics.retention import retention_of
from runners.metrics.status import (
    Facts,
    Shown,
    replicator_state,
    snapshot_percent,
    table_lag,
    table_shown,
)
from runners.metrics.totals import Totals, lag_facts, totals_of
from runners.models import Event, Progress, Run, Table, TableMetric
from runners.shown import (
    ErrorShown,
    ReplicatorView,
    RunView,
    TableView,
    error_shown,
    reported,
    waits_reported,
)
from runners.states import RunState, TableState
from runners.supervision.capacity import run_limit_facts, running_names
from runners.tables.watermarks import consistent_at

METRICS_MOST = 100_000
_WELL = frozenset({RunState.STOPPING, RunState.STOPPED})


def replicators_loaded() -> QuerySet[Replicator]:
    """Replicators with everything a view needs besides totals, in a fixed number of queries."""
    mine = Run.objects.filter(replicator=OuterRef("pk"))
    return (
        Replicator.objects.select_related("progress", "created_by")
        .prefetch_related(Prefetch("runs", Run.objects.active(), to_attr="live_runs"))
        .annotate(has_started=Exists(mine), last_state=Subquery(mine.values("state")[:1]))
        .annotate(last_started_at=Subquery(mine.values("started_at")[:1]))
    )


def progress_seen(replicator: Replicator) -> Progress | None:
    """The loaded replicator's progress row, if it has one yet."""
    return getattr(replicator, "progress", None)


class _Annotated(Protocol):
    """The columns that `replicators_loaded` adds to a replicator's row."""

    live_runs: list[Run]
    last_state: str | None
    last_started_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A replicator with all that determines its state; `run` is its live run."""

    replicator: Replicator
    progress: Progress | None
    run: Run | None
    last_state: str | None
    last_started_at: datetime | None

    @classmethod
    def of(cls, row: Replicator) -> _Loaded:
        """From `row`, which is one of `replicators_loaded`."""
        more = cast(_Annotated, row)
        run = more.live_runs[0] if more.live_runs else None
        return cls(row, progress_seen(row), run, more.last_state, more.last_started_at)

    @property
    def is_live(self) -> bool:
        """Whether a run of it is running."""
        return self.run is not None and self.run.state == RunState.RUNNING


def paused_for(progress: Progress | None) -> str:
    """The name of the replicator for whose log it is paused; empty where it is not."""
    noted = progress.paused_for if progress and progress.paused_for else {}
    return "" if noted.get("is_over") else str(noted.get("name", ""))


def _shown(loaded: _Loaded, totals: Totals, live: int, now: datetime) -> Shown:
    replicator, progress, run = loaded.replicator, loaded.progress, loaded.run
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
        tables=totals.tables,
        failing_tables=totals.failing,
        is_log_full=bool(progress and progress.facts.get("is_backpressure")),
        is_log_short=bool(progress and retention_of(progress.facts, replicator.options).is_short),
        paused_for=paused_for(progress),
        is_source_waited_for=bool(progress and waits_reported(progress.facts, now)),
    )
    return replicator_state(facts, now)


def _all_failing(totals: Totals) -> ErrorShown | None:
    """The error `run:tables-failing` where every table fails; None while one table is well."""
    if not totals.failing or totals.failing < totals.tables:
        return None
    return error_shown("run:tables-failing", {"count": str(totals.failing)}, totals.failing_since)


def _error(loaded: _Loaded, totals: Totals) -> ErrorShown | None:
    """The error that keeps it from running; None where it has run well since. Once retries are
    given up, the suggestion does not say to wait for the next retry."""
    progress, is_outlived = loaded.progress, loaded.last_started_at and loaded.last_state in _WELL
    if loaded.is_live:
        return _all_failing(totals)
    if progress is None or (is_outlived and not loaded.replicator.deleting_since):
        return None
    found = error_shown(
        progress.error_code, progress.error_facts, progress.error_since or progress.failing_since
    )
    if found and progress.is_given_up and message_of(progress.error_code).waits:
        found["suggestion"] = message_of("run:retry-time-used-up").suggestion
    return found


def _waits_for_run(names: list[str]) -> ErrorShown | None:
    """The notice that the limit of runs is reached, with the names of those that run."""
    facts = run_limit_facts(names)
    found = error_shown("run:limit", facts, None)
    if found:
        found["severity"] = Severity.INFO
    return found


def _view(loaded: _Loaded, totals: Totals, live: list[str], now: datetime) -> ReplicatorView:
    progress = loaded.progress
    shown = _shown(loaded, totals, len(live), now)
    is_waiting = shown.state == "waiting"
    return ReplicatorView(
        replicator=loaded.replicator,
        shown=shown,
        totals=totals,
        error=_waits_for_run(live) if is_waiting else _error(loaded, totals),
        retry_at=progress.retry_at if progress else None,
        facts=progress.facts if progress else {},
        facts_at=progress.facts_at if progress else None,
        run=loaded.run,
        tries=progress.failures if progress else 0,
    )


def _views(found: Iterable[Replicator]) -> list[ReplicatorView]:
    now, live, rows = timezone.now(), running_names(), [_Loaded.of(r) for r in found]
    totals = totals_of([(r.replicator, r.progress, r.is_live) for r in rows], now)
    return [_view(r, totals[r.replicator.pk], live, now) for r in rows]


def replicators_for_list() -> list[ReplicatorView]:
    """All replicators with their states, by name."""
    return _views(replicators_loaded())


def replicators_found(
    *, state: str = "", name: str = "", source_kind: str = "", target_kind: str = ""
) -> list[ReplicatorView]:
    """The replicators that match every filter, by name; `name` matches a part of the name."""
    rows = replicators_loaded().filter(name__icontains=name)
    kinds = {"source_kind": source_kind, "target_kind": target_kind}
    views = _views(rows.filter(**{field: kind for field, kind in kinds.items() if kind}))
    return [v for v in views if not state or v.shown.state == state]


def replicator_view(replicator: Replicator) -> ReplicatorView:
    """One replicator with its state, its tables' totals and its last error. Raises
    `Replicator.DoesNotExist`."""
    return _views([replicators_loaded().get(pk=replicator.pk)])[0]


def replicator_badge(replicator: Replicator) -> Shown:
    """State, label and colour."""
    return replicator_view(replicator).shown


def tables_shown(replicator: Replicator) -> QuerySet[Table]:
    """The tables of a replicator, by name, without those whose removal was asked for."""
    rows = Table.objects.shown().filter(replicator=replicator)
    return rows.annotate(called=KeyTransform("called", "schema")).defer("schema")


def tables_found(
    view: ReplicatorView, *, state: str = "", schema: str = "", table: str = ""
) -> QuerySet[Table]:
    """The tables that match every filter, by name. `state` is the state shown; `table` matches a
    part of the name."""
    said = {"schema_name": schema, "name__icontains": table}
    found = tables_shown(view.replicator).filter(**{k: v for k, v in said.items() if v})
    if not state:
        return found
    if view.held is None or state == TableState.FAILING:
        return found.filter(state=state)
    return found.exclude(state=TableState.FAILING) if state == view.held.state else found.none()


def table_views(view: ReplicatorView, rows: Iterable[Table]) -> list[TableView]:
    """These tables of a replicator in the form that pages and REST show."""
    now, progress = timezone.now(), progress_seen(view.replicator)
    held = view.held
    return [_table_view(row, progress, view.is_live, held, now) for row in rows]


def _table_view(
    row: Table, progress: Progress | None, is_live: bool, held: Shown | None, now: datetime
) -> TableView:
    name = TableId(row.schema_name, row.name)
    return TableView(
        row=row,
        shown=table_shown(TableState(row.state), held),
        lag_seconds=table_lag(lag_facts(row, progress, is_live=is_live), now),
        snapshot_percent=snapshot_percent(
            row.rows_snapshotted, row.rows_total, row.is_snapshot_done
        ),
        error=error_shown(row.error_code, row.error_facts, row.error_since, name),
    )


def tables_accepted(replicator: Replicator, rows: Iterable[Table]) -> list[dict[str, str]]:
    """These tables after an action on them, in the form of REST."""
    found = table_views(replicator_view(replicator), rows)
    return [
        {"schema": t.row.schema_name, "table": t.row.name, "state": t.shown.state} for t in found
    ]


def replicator_status(replicator: Replicator) -> dict[str, Any]:
    """The status answer of REST."""
    view = replicator_view(replicator)
    copying = copy_progress(view, timezone.now())
    return {
        "id": str(view.replicator.pk),
        "name": view.replicator.name,
        "state": view.shown.state,
        "desired_state": view.replicator.desired_state,
        "lag_seconds": view.lag_seconds,
        "next_delivery_at": view.next_delivery_at,
        "retention": view.retention.to_json(),
        "consistent_at": consistent_at(replicator),
        "error": reported(view.error),
        "copy": copying and copying.to_json(),
        "tables": [t.to_json() for t in table_views(view, tables_shown(replicator))],
    }


def events(
    replicator: Replicator, *, after: int = 0, table: TableId | None = None, limit: int = 200
) -> list[Event]:
    """Events, newest first. With `after`: the next events after that id, so that a reader who
    continues from the newest misses none."""
    found = Event.objects.filter(replicator=replicator, pk__gt=after)
    if table is not None:
        found = found.filter(schema_name=table.schema, table_name=table.name)
    if after:
        return list(found.order_by("pk")[:limit])[::-1]
    return list(found.order_by("-pk")[:limit])


def events_shown(
    replicator: Replicator | None, *, before: int = 0, is_people: bool = False, limit: int
) -> list[Event]:
    """Events of one replicator or of all, newest first. `is_people`: only people's actions."""
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


def deletion(pk: uuid.UUID | str) -> Event | None:
    """The event that outlives a deleted replicator."""
    return Event.objects.filter(kind="replicator_deleted", facts__id=str(pk)).first()


def target_after(event: Event) -> str:
    """What happened to the target's tables in a deletion: `kept` where they were to stay,
    `dropped`, `left` where they could not be dropped; empty where it was not recorded."""
    keeps = event.facts.get("keep_target")
    if keeps is None:
        return ""
    if keeps:
        return "kept"
    left = Event.objects.filter(kind="target_left", facts__id=event.facts["id"])
    return "left" if left.exists() else "dropped"


def deletion_reported(pk: uuid.UUID | str) -> dict[str, Any] | None:
    """How the deletion of a replicator ended, in the form of REST; None for a replicator that still
    exists or never existed."""
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
    runs = list(Run.objects.filter(replicator=replicator)[:limit])
    asked = Event.objects.filter(run__in=runs, kind="run_stop_asked").exclude(actor="")
    actors = dict(asked.values_list("run_id", "actor"))
    return [
        RunView(run, error_shown(run.error_code, run.error_facts, None), actors.get(run.pk, ""))
        for run in runs
    ]


def metrics(
    replicator: Replicator, *, table: TableId | None = None, seconds: int
) -> list[dict[str, Any]]:
    """Metrics of the last `seconds`, oldest first: every 10 s up to an hour, every minute beyond.
    Raises InvalidConfig where one answer can't hold them all."""
    resolution = 10 if seconds <= 3600 else 60
    found = TableMetric.objects.filter(
        table__replicator=replicator,
        resolution_seconds=resolution,
        at__gte=timezone.now() - timedelta(seconds=seconds),
    )
    if table is not None:
        found = found.filter(table__schema_name=table.schema, table__name=table.name)
    if found[: METRICS_MOST + 1].count() > METRICS_MOST:
        text = f"covers more than {METRICS_MOST} metrics: name a table, or ask for less time"
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
        for m in found.select_related("table").defer("table__schema").order_by("at", "pk")
    ]
