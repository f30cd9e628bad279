"""The states of a table, and to which one each event leads."""

from __future__ import annotations

from enum import StrEnum


class TableState(StrEnum):
    """Where a table is. FAILING ones do not stop the others."""

    WAITING = "waiting"
    SNAPSHOTTING = "snapshotting"
    REPLICATING = "replicating"
    FAILING = "failing"
    REMOVED = "removed"


EVENTS_STATE = {
    "table_snapshot_started": TableState.SNAPSHOTTING,
    "table_snapshot_done": TableState.REPLICATING,
    "table_failed": TableState.FAILING,
    "table_recovered": TableState.REPLICATING,
    "table_waits": TableState.WAITING,
    "table_removed": TableState.REMOVED,
    "table_added": TableState.WAITING,
    "table_rewind_started": TableState.REPLICATING,
    "table_rewind_refused": TableState.REPLICATING,
    "table_rewound": TableState.REPLICATING,
}
