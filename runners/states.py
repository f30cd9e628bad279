"""The state machines as data: states, transitions, groups, labels and colours. No I/O."""

from __future__ import annotations

from enum import StrEnum

from runners.engine.store.protocol import EVENTS_STATE, TableState

__all__ = [
    "COLOURS",
    "LABELS",
    "REPAIR_TRANSITIONS",
    "REPLICATOR_STATES",
    "RUN_ACTIVE",
    "RUN_FINAL",
    "RUN_TRANSITIONS",
    "TABLES_SHOWN",
    "TABLE_TRANSITIONS",
    "VERIFICATION_ACTIVE",
    "VERIFICATION_TRANSITIONS",
    "RepairState",
    "RunState",
    "TableState",
    "VerificationState",
]


class RunState(StrEnum):
    """State of a run's process."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    LOST = "lost"


REPLICATOR_STATES = (
    "starting",
    "running",
    "stalled",
    "stopping",
    "paused",
    "waiting",
    "failing",
    "failed",
    "deleting",
)

TABLES_SHOWN = ("failing", "stopped", "paused", "snapshotting", "waiting", "replicating")
"""The states shown for a table, the most urgent first: its own state, or that of a replicator that
does not run."""

RUN_ACTIVE = frozenset({RunState.STARTING, RunState.RUNNING, RunState.STOPPING})
RUN_FINAL = frozenset(RunState) - RUN_ACTIVE

RUN_TRANSITIONS: dict[tuple[RunState, str], RunState] = {
    (RunState.STARTING, "run_started"): RunState.RUNNING,
    (RunState.STARTING, "run_stop_asked"): RunState.STOPPING,
    (RunState.RUNNING, "run_stop_asked"): RunState.STOPPING,
    **{(s, "run_stopped"): RunState.STOPPED for s in sorted(RUN_ACTIVE)},
    **{(s, "run_failed"): RunState.FAILED for s in sorted(RUN_ACTIVE)},
    **{(s, "run_lost"): RunState.LOST for s in sorted(RUN_ACTIVE)},
}

_LIVE = (TableState.WAITING, TableState.SNAPSHOTTING, TableState.REPLICATING, TableState.FAILING)
TABLE_TRANSITIONS: dict[tuple[TableState, str], TableState] = {
    (TableState.WAITING, "table_snapshot_started"): TableState.SNAPSHOTTING,
    (TableState.SNAPSHOTTING, "table_snapshot_started"): TableState.SNAPSHOTTING,
    (TableState.SNAPSHOTTING, "table_snapshot_done"): TableState.REPLICATING,
    (TableState.FAILING, "table_recovered"): TableState.REPLICATING,
    **{
        (TableState.REPLICATING, e): TableState.REPLICATING
        for e in ("table_rewind_started", "table_rewind_refused", "table_rewound")
    },
    (TableState.FAILING, "table_rewound"): TableState.REPLICATING,
    (TableState.REMOVED, "table_added"): TableState.WAITING,
    **{(s, "table_waits"): TableState.WAITING for s in _LIVE},
    **{(s, "table_failed"): TableState.FAILING for s in _LIVE},
    **{(s, "table_removed"): TableState.REMOVED for s in _LIVE},
}
RECORDED_ALWAYS = frozenset({"table_rewind_started", "table_rewind_refused", "table_rewound"})
"""Events that are recorded even where neither state nor error changes."""
assert {e for _, e in TABLE_TRANSITIONS} == set(EVENTS_STATE)


class VerificationState(StrEnum):
    """State of a verification."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


VERIFICATION_ACTIVE = frozenset({VerificationState.WAITING, VerificationState.RUNNING})
VERIFICATION_TRANSITIONS: dict[tuple[VerificationState, str], VerificationState] = {
    (VerificationState.WAITING, "verification_started"): VerificationState.RUNNING,
    (VerificationState.RUNNING, "verification_done"): VerificationState.DONE,
    **{(s, "verification_failed"): VerificationState.FAILED for s in sorted(VERIFICATION_ACTIVE)},
    **{
        (s, "verification_cancelled"): VerificationState.CANCELLED
        for s in sorted(VERIFICATION_ACTIVE)
    },
}


class RepairState(StrEnum):
    """State of a repair of rows."""

    ASKED = "asked"
    DONE = "done"
    REFUSED = "refused"


REPAIR_TRANSITIONS: dict[tuple[RepairState, str], RepairState] = {
    (RepairState.ASKED, "repair_done"): RepairState.DONE,
    (RepairState.ASKED, "repair_refused"): RepairState.REFUSED,
}

LABELS: dict[str, str] = {
    TableState.WAITING: "Waiting",
    TableState.SNAPSHOTTING: "Snapshotting",
    TableState.REPLICATING: "Replicating",
    TableState.FAILING: "Failing",
    TableState.REMOVED: "Removed",
    RunState.STARTING: "Starting",
    RunState.RUNNING: "Running",
    RunState.STOPPING: "Stopping",
    RunState.STOPPED: "Stopped",
    RunState.FAILED: "Failed",
    RunState.LOST: "Lost",
    VerificationState.DONE: "Done",
    VerificationState.CANCELLED: "Cancelled",
    RepairState.ASKED: "Requested",
    RepairState.REFUSED: "Refused",
    "paused": "Paused",
    "stalled": "Stalled",
    "not_compared": "Not compared",
}
COLOURS: dict[str, str] = {
    TableState.WAITING: "slate",
    TableState.SNAPSHOTTING: "blue",
    TableState.REPLICATING: "green",
    TableState.FAILING: "red",
    TableState.REMOVED: "slate",
    RunState.STARTING: "blue",
    RunState.RUNNING: "green",
    RunState.STOPPING: "amber",
    RunState.STOPPED: "slate",
    RunState.FAILED: "red",
    RunState.LOST: "red",
    VerificationState.DONE: "green",
    VerificationState.CANCELLED: "slate",
    RepairState.ASKED: "blue",
    RepairState.REFUSED: "red",
    "paused": "amber",
    "stalled": "amber",
}
