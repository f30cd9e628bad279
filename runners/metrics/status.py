"""A replicator's state and label, computed by pure functions from the desired state and the facts.
No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from replicators.connectors.problems.lookup import message_of
from runners.states import COLOURS, LABELS, RunState, TableState

FRESH_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Facts:
    """What determines the state. `run_state` is that of the live run; None without one."""

    desired: str
    run_state: RunState | None = None
    is_deleting: bool = False
    is_given_up: bool = False
    error_code: str = ""
    failures: int = 0
    retry_at: datetime | None = None
    live_runs: int = 0
    max_runs: int = 1
    tables: int = 0
    failing_tables: int = 0
    is_log_full: bool = False
    is_source_waited_for: bool = False
    is_log_short: bool = False
    paused_for: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """A state with its label and colour."""

    state: str
    label: str
    colour: str


def _time(seconds: float) -> str:
    whole = max(1, round(seconds))
    if whole < 120:
        return f"{whole} s"
    return f"{round(whole / 60)} min"


def _title(code: str) -> str:
    title = message_of(code).title if code else ""
    return "" if "{" in title else title


def _running(facts: Facts) -> Shown:
    """A running replicator's state, with what a person should look into: failing tables, a full
    change log, which pauses reading (`stalled`), and a log that is kept for few more hours."""
    count = facts.failing_tables
    words = ["change log full"] if facts.is_log_full else []
    if facts.is_log_short:
        words.append("log running short")
    if count and count == facts.tables:
        label = "Its only table failing" if count == 1 else f"All {count} tables failing"
        return Shown("failing", ", ".join([label, *words]), COLOURS[TableState.FAILING])
    if facts.is_source_waited_for:
        words.append("waiting at the source")
    if count:
        words.append(f"{'1 table' if count == 1 else f'{count} tables'} failing")
    if facts.is_log_full:
        return Shown("stalled", f"Stalled: {', '.join(words)}", COLOURS["stalled"])
    if not words:
        return Shown("running", "Running", COLOURS[RunState.RUNNING])
    return Shown("running", ", ".join(["Running", *words]), "amber")


def replicator_state(facts: Facts, now: datetime) -> Shown:
    """One of: deleting, starting, running, stalled (reading waits for room), stopping,
    paused, failed (waits for a person), failing (retried by itself, or running while all of its
    tables fail), waiting (for a free slot)."""
    if facts.is_deleting:
        return Shown("deleting", "Deleting", "amber")
    if facts.run_state is RunState.STOPPING or (facts.run_state and facts.desired == "paused"):
        label = "Pausing" if facts.desired == "paused" else LABELS[RunState.STOPPING]
        return Shown("stopping", label, COLOURS[RunState.STOPPING])
    if facts.run_state is RunState.RUNNING:
        return _running(facts)
    if facts.run_state is RunState.STARTING:
        label = "Starting again" if facts.failures else LABELS[RunState.STARTING]
        return Shown("starting", label, COLOURS[RunState.STARTING])
    if facts.desired == "paused":
        label = f"Paused for {facts.paused_for}" if facts.paused_for else LABELS["paused"]
        return Shown("paused", label, COLOURS["paused"])
    return _wanted(facts, now)


def _wanted(facts: Facts, now: datetime) -> Shown:
    """The state of a replicator that should run and does not."""
    if facts.is_given_up:
        title = _title(facts.error_code)
        label = f"Failed: {title[0].lower()}{title[1:]}" if title else "Failed"
        return Shown("failed", label, COLOURS[RunState.FAILED])
    if facts.retry_at is not None and facts.retry_at > now:
        wait = _time((facts.retry_at - now).total_seconds())
        return Shown("failing", f"Failed, retrying in {wait}", COLOURS[RunState.FAILED])
    if facts.live_runs >= facts.max_runs:
        label = f"Waiting: {facts.live_runs} of {facts.max_runs} replicators run"
        return Shown("waiting", label, COLOURS[TableState.WAITING])
    return Shown("starting", LABELS[RunState.STARTING], COLOURS[RunState.STARTING])


_PAUSED = Shown("paused", LABELS["paused"], COLOURS["paused"])
_STOPPED = Shown("stopped", LABELS[RunState.STOPPED], COLOURS[RunState.FAILED])
_WAITING = Shown("waiting", LABELS[TableState.WAITING], COLOURS[TableState.WAITING])
_HELD = {
    "paused": _PAUSED,
    "stopping": _PAUSED,
    "failing": _STOPPED,
    "failed": _STOPPED,
    "deleting": Shown("stopped", _STOPPED.label, COLOURS["paused"]),
    "starting": _WAITING,
    "waiting": _WAITING,
}


def tables_held(shown: Shown, *, is_live: bool, desired: str) -> Shown | None:
    """The state shown for the tables of a replicator that copies nothing, except failing tables.
    None while its run copies them."""
    if is_live and shown.state != "deleting":
        return None
    if shown.state == "stopping" and desired != "paused":
        return _WAITING
    return _HELD.get(shown.state)


def table_shown(state: TableState, held: Shown | None) -> Shown:
    """A table's state with its label and colour; `held` comes from `tables_held`."""
    if held is not None and state not in (TableState.FAILING, TableState.REMOVED):
        return held
    return Shown(str(state), LABELS[state], COLOURS[state])


@dataclass(frozen=True, slots=True)
class LagFacts:
    """What determines a table's lag; `facts_at` is when the run last wrote metrics."""

    state: TableState
    is_snapshot_done: bool
    lag_seconds: float | None
    unmerged_since: datetime | None
    error_since: datetime | None
    facts_at: datetime | None
    is_live: bool


def table_lag(facts: LagFacts, now: datetime) -> float | None:
    """Seconds the target is behind; None while not known (before and during a snapshot). While no
    run writes metrics (paused, failing, interrupted) the lag grows from the last moment known to be
    in the target."""
    copied = facts.state in (TableState.REPLICATING, TableState.FAILING) and facts.is_snapshot_done
    if not copied:
        return None
    age = None if facts.facts_at is None else (now - facts.facts_at).total_seconds()
    is_fresh = facts.is_live and age is not None and age <= FRESH_SECONDS
    if is_fresh and facts.lag_seconds is not None:
        return round(facts.lag_seconds + (age or 0.0 if facts.lag_seconds else 0.0), 3)
    if is_fresh and facts.state is TableState.REPLICATING:
        return None
    since = facts.unmerged_since or facts.error_since or facts.facts_at
    return None if since is None else round(max(0.0, (now - since).total_seconds()), 3)


def worst_lag(lags: list[float | None]) -> float | None:
    """A replicator's lag: that of its worst table; None while one table's lag isn't known."""
    known = [lag for lag in lags if lag is not None]
    return max(known) if known and len(known) == len(lags) else None


def snapshot_percent(rows: int, total: int | None, is_done: bool) -> int | None:
    """Percent of a snapshot that is copied; 100 only when it is done. None where the total isn't
    known or was estimated too low."""
    if is_done:
        return 100
    if rows == 0:
        return 0
    if not total or rows > total:
        return None
    return min(99, rows * 100 // total)
