"""Marks tables as failing in the store, and sets when they are tried again. The callers know which
tables, and why."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError, Retry
from replicators.connectors.problems.message import Scope
from runners.engine import sizes
from runners.engine.store.protocol import Store, TableRow, TableState

logger = logging.getLogger("replicator.run")
RETRY_FIRST_SECONDS = 5.0
RETRY_LAST_SECONDS = 600.0


def retry_delay(failures: int) -> float:
    """Seconds before the next try of a table that failed `failures` times in a row."""
    return float(min(RETRY_LAST_SECONDS, RETRY_FIRST_SECONDS * 2 ** min(failures, 10)))


def tried_seconds(row: TableRow, began: float, now: float) -> float:
    """For how long a table that fails again was tried in all: its jobs, and the waits between them.
    Time without any try does not count: the replicator was paused, or the machine was off."""
    waited = retry_delay(row.failures - 1) if row.failures else 0.0
    return row.failing_seconds + waited + max(0.0, now - began)


def ends_run(err: ReplicationError) -> bool:
    """Whether a fault of a table's job is a fault of the run. An unknown fault is the table's, so
    that the others continue."""
    return err.scope is Scope.RUN and err.code != "internal:unexpected"


def fail_table(
    store: Store,
    table: TableId,
    code: str,
    facts: Mapping[str, str],
    retry_at: float | None = None,
) -> None:
    """The table fails until `retry_at`, or (None) until a person asks for its re-sync. The others
    continue."""
    store.table_event(
        table, "table_failed", error_code=code, error_facts=dict(facts), retry_at=retry_at
    )


def fail_again(
    store: Store, row: TableRow, err: ReplicationError, *, began: float | None, patience: float
) -> None:
    """A job of the table failed. `began`: when it began (seconds since the epoch; None: just now).
    The table is tried again until `patience` seconds are used up. Then it waits for a person, and
    its change log is kept."""
    now = time.time()
    tried, delay = (
        tried_seconds(row, now if began is None else began, now),
        retry_delay(row.failures),
    )
    is_tried = err.retry is not Retry.NEVER and tried + delay < patience
    is_given_up = err.retry is not Retry.NEVER and not is_tried
    store.table_event(
        row.id,
        "table_failed",
        error_code=err.code,
        error_facts=err.facts,
        retry_at=now + delay if is_tried else None,
        failures=row.failures + 1,
        failing_seconds=tried,
        is_given_up=is_given_up,
    )
    if is_given_up:
        store.event("table_given_up", row.id, minutes=f"{tried / 60:.0f}")


def fail_at_start(store: Store, table: TableId, err: ReplicationError, seconds: float) -> None:
    """The table could not be compared with its target. It is tried again in that many seconds where
    that may help."""
    retry_at = None if err.retry is Retry.NEVER else time.time() + seconds
    fail_table(store, table, err.code, err.facts, retry_at)


def fail_all(store: Store, err: ReplicationError) -> None:
    """Every table that has been copied fails: the log that it needs is gone. Snapshots in progress
    are forgotten, since they need that log too."""
    logger.error("%s %s", err.message.text, err.message.suggestion)
    for row in store.tables():
        store.copy_forget(row.id)
        if row.is_snapshot_done and row.state is not TableState.REMOVED:
            fail_table(store, row.id, err.code, err.facts)


def unsupported(why: str) -> tuple[str, dict[str, str]]:
    """Code and facts for an unsupported value. `why` is its column and the reason."""
    column, _, reason = why.partition(": ")
    code = sizes.CODE if sizes.is_of_size(reason) else "source:value-unsupported"
    return code, {"column": column, "reason": reason.partition(";")[0]}
