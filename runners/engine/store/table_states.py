"""The states of a table, and the state that each event leads to."""

from __future__ import annotations

from enum import StrEnum


class TableState(StrEnum):
    """The state of a table. A FAILING table does not stop the others."""

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
    """Whether a person may ask for another try of a table that fails with this code and has no time
    for its next try. Such a fault of the target's work leaves the change log whole. All other
    faults mean that changes are missing from the log, or are in the target twice (a target that is
    ahead). Only a fresh copy mends those."""
    if code == "target:table-ahead":
        return False
    return code.startswith("target:") or code == "source:schema-changed"


def is_lasting(code: str, retry_at: object, *, is_given_up: bool = False) -> bool:
    """Whether a failing table has to be copied afresh: see `may_be_tried_again`. A table whose
    retry time is used up (`is_given_up`) keeps its change log."""
    return retry_at is None and not is_given_up and not may_be_tried_again(code)


def is_heard(event: str, code: str, retry_at: object, *, is_given_up: bool = False) -> bool:
    """Whether an event changes a table with a lasting fault. Jobs that began before the fault end
    after it: their events neither end the fault nor replace it. But a published rewind is
    recorded."""
    return event != "table_recovered" and (
        event != "table_failed" or is_lasting(code, retry_at, is_given_up=is_given_up)
    )
