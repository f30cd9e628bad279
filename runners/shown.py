"""What pages and REST show of replicators, tables and runs; no queries."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NotRequired, TypedDict

from django.utils import timezone

from replicators.config import source_plugin
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.lookup import message_of
from replicators.models import Replicator
from runners.metrics.retention import Retention, retention_of
from runners.metrics.status import FRESH_SECONDS, Shown, tables_held
from runners.metrics.totals import Totals
from runners.models import Run, Table
from runners.states import RunState, TableState


class ErrorShown(TypedDict):
    """An error of a run or a table, its texts in words."""

    code: str
    title: str
    message: str
    suggestion: str
    since: str | None
    severity: NotRequired[str]


@dataclass(frozen=True, slots=True)
class TableView:
    """A table as pages and REST show it."""

    row: Table
    shown: Shown
    lag_seconds: float | None
    snapshot_percent: int | None
    error: ErrorShown | None

    @property
    def called(self) -> str:
        """The table's present name at the source where it was renamed; empty otherwise."""
        now = getattr(self.row, "called", None)  # only what `tables_shown` read has it
        return "" if now in (None, [self.row.schema_name, self.row.name]) else ".".join(now)

    def to_json(self) -> dict[str, Any]:
        """The form of the status answer."""
        return {
            "schema": self.row.schema_name,
            "table": self.row.name,
            "state": self.shown.state,
            "rows_snapshotted": self.row.rows_snapshotted,
            "snapshot_percent": self.snapshot_percent,
            "inserts": self.row.inserts,
            "updates": self.row.updates,
            "deletes": self.row.deletes,
            "lag_seconds": self.lag_seconds,
            "error": reported(self.error),
        }

    def asked_json(self) -> dict[str, Any]:
        """The status form, with what was asked of the table and is not done yet."""
        row = self.row
        return self.to_json() | {
            "mode": row.mode,
            "called": self.called,
            "is_resync_asked": row.is_resync_asked,
            "is_replay_asked": row.is_replay_asked,
            "rewind_to": row.rewind_to,
            "rows_quarantined": row.rows_quarantined,
            "retry_at": row.retry_at,
            "needs_resync": row.needs_resync,
            "scanned_bytes": row.scanned_bytes,
            "is_pruned": row.is_pruned,
            "estimated_bytes": row.estimated_bytes,
            "estimate_accuracy": row.estimate_accuracy,
            "is_given_up": row.is_given_up,
        }


@dataclass(frozen=True, slots=True)
class ReplicatorView:
    """A replicator with its state and its tables' totals, as a list or a page shows it."""

    replicator: Replicator
    shown: Shown
    totals: Totals
    error: ErrorShown | None
    retry_at: datetime | None
    facts: dict[str, Any] = field(default_factory=dict)
    facts_at: datetime | None = None
    run: Run | None = None
    tries: int = 0

    @property
    def lag_seconds(self) -> float | None:
        """The lag of the table that is furthest behind."""
        return self.totals.lag_seconds

    @property
    def has_deliveries(self) -> bool:
        """Whether its source's data sets arrive whole: pages then show the next delivery in place
        of a lag."""
        try:
            return source_plugin(self.replicator.source_kind).capabilities.has_deliveries
        except ReplicationError:
            return False

    @property
    def next_delivery_at(self) -> datetime | None:
        """When a schedule looks for the next delivery; None where one is taken as it arrives."""
        at = self.facts.get("next_delivery_at")
        return datetime.fromtimestamp(at, UTC) if at and self.is_live else None

    @property
    def is_live(self) -> bool:
        """Whether a run writes metrics."""
        return self.run is not None and self.run.state == RunState.RUNNING

    @property
    def is_log_full(self) -> bool:
        """Whether reading is paused until the change log has room."""
        return self.is_live and bool(self.facts.get("is_backpressure"))

    @property
    def is_source_closed(self) -> bool:
        """Whether the connection to the source is closed until the change log has room."""
        return self.is_live and bool(self.facts.get("is_source_closed"))

    @property
    def retention(self) -> Retention:
        """How long the source's log and the change log last; unknown while no run measures."""
        return retention_of(self.facts if self.is_live else {}, self.replicator.options)

    @property
    def waits_for(self) -> str:
        """What the run waits for at the source, as reported within the last seconds; empty where it
        waits for nothing."""
        return waits_reported(self.facts, timezone.now()) if self.is_live else ""

    @property
    def is_paused(self) -> bool:
        """Whether its tables stand still because a person paused it."""
        return self.shown.state in {"paused", "stopping"}

    @property
    def may_retry(self) -> bool:
        """Whether it waits for its next retry, or failed and has none."""
        return self.shown.state in {"failed", "failing"} and self.run is None

    @property
    def held(self) -> Shown | None:
        """The state shown for its tables, except failing ones, while nothing copies them; None
        while its run copies them."""
        return tables_held(self.shown, is_live=self.is_live, desired=self.replicator.desired_state)

    @property
    def counts(self) -> dict[str, int]:
        """Number of its tables in each state shown, the most urgent state first."""
        held, counts = self.held, self.totals.counts
        if held is None:
            return counts
        failing, rest = self.totals.failing, self.totals.tables - self.totals.failing
        found = {str(TableState.FAILING): failing, held.state: rest}
        return {state: count for state, count in found.items() if count}


def reported(error: ErrorShown | None) -> dict[str, Any] | None:
    """An error in the form of REST, without the fields that only a page's notice has."""
    return error and {k: v for k, v in error.items() if k not in {"title", "severity"}}


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as a page shows it."""

    run: Run
    error: ErrorShown | None
    stopped_by: str = ""

    @property
    def ended(self) -> str:
        """Why it ended, where no error ended it."""
        match self.run.stop_origin:
            case "user":
                return f"Stopped by {self.stopped_by}" if self.stopped_by else "Stopped by request"
            case "change":
                by = f" by {self.stopped_by}" if self.stopped_by else ""
                return f"Restarted{by}, with new settings"
            case "owner":
                return "Paused: its owner may not edit any more"
            case "retention":
                return "Paused for another replicator's log"
            case "shutdown":
                return "Stopped with its worker"
        return "Ended"

    @property
    def seconds(self) -> float | None:
        """How long it ran, or has run so far; None before it started."""
        if self.run.started_at is None:
            return None
        return ((self.run.ended_at or timezone.now()) - self.run.started_at).total_seconds()


def error_shown(
    code: str, facts: dict[str, Any], since: datetime | None, table: TableId | None = None
) -> ErrorShown | None:
    """An error as `{code, title, message, suggestion, since}`; None without a code."""
    if not code:
        return None
    values = {**facts}
    if table is not None:
        values = {"table": str(table), "schema": table.schema, "name": table.name, **facts}
    message = message_of(code).render(values)
    return {
        "code": code,
        "title": message.title,
        "message": message.text,
        "suggestion": message.suggestion,
        "since": since.isoformat() if since else None,
    }


def waits_reported(facts: dict[str, Any], now: datetime) -> str:
    """What the run waits for at the source, as it reported within the last seconds."""
    age = now.timestamp() - facts.get("waits_at", 0.0)
    return str(facts["waits"]) if age <= FRESH_SECONDS else ""
