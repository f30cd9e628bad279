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


def may_be_tried_again(code: str) -> bool:
    """Whether a person may have a table tried again that fails by this without a time for its next
    try. Such a fault of the target's work leaves the change log whole; all others say that changes
    are missing from it, or are in the target twice (a target that is ahead), which only a fresh
    copy mends."""
    if code == "target:table-ahead":
        return False
    return code.startswith("target:") or code == "source:schema-changed"


def is_lasting(code: str, retry_at: object, *, is_given_up: bool = False) -> bool:
    """Whether a failing table has to be copied afresh, whatever else goes on: see
    `may_be_tried_again`. A table whose retry time is used up (`is_given_up`) keeps its change
    log."""
    return retry_at is None and not is_given_up and not may_be_tried_again(code)


def is_heard(event: str, code: str, retry_at: object, *, is_given_up: bool = False) -> bool:
    """Whether an event changes a table with a lasting fault. Jobs that began before the fault end
    after it: what they bring neither ends it nor takes its place, but a rewind that is published is
    recorded."""
    return event != "table_recovered" and (
        event != "table_failed" or is_lasting(code, retry_at, is_given_up=is_given_up)
    )
