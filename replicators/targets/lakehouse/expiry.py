"""Decides when old versions of tables are removed. This happens less often than compaction, since
it reads the list of all files of a table."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from datetime import datetime

from replicators.connectors.spark import Session
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.versions import Snapshot, Snapshots

SHARE_OF_HISTORY = 0.25
MINUTES_A_DAY = 1440


def current_at(history: str, snapshots: str, moment: datetime) -> str:
    """SQL for the commit time, in microseconds since the epoch, of the snapshot that was an Iceberg
    table's current one at `moment` (UTC). `history` and `snapshots` are its metadata tables."""
    return (
        f"SELECT unix_micros(s.committed_at) FROM {history} h "  # noqa: S608 - both quoted by the caller
        f"JOIN {snapshots} s ON s.snapshot_id = h.snapshot_id "
        f"WHERE h.made_current_at <= TIMESTAMP '{moment.isoformat(' ', 'milliseconds')}' "
        "ORDER BY h.made_current_at DESC LIMIT 1"
    )


def by_queries(session: Session, snapshots: str, refs: str) -> Snapshots:
    """The snapshots that an Iceberg table still has, by Spark queries of these metadata tables."""
    rows = session.sql(
        f"SELECT snapshot_id, parent_id, summary, unix_micros(committed_at) FROM {snapshots}"  # noqa: S608 - quoted by the caller
    ).collect()
    known = {r[0]: Snapshot(r[0], r[1], dict(r[2] or {}), r[3] / 1e6) for r in rows}
    named = session.sql(f"SELECT name, type, snapshot_id FROM {refs}").collect()  # noqa: S608 - likewise
    tags, branches = (
        {name: version for name, kind, version in named if kind == wanted}
        for wanted in ("TAG", "BRANCH")
    )
    return Snapshots(branches.get("main"), known, tags, branches)


def retention(params: LakehouseParams, kept_seconds: float = 0.0) -> dict[str, str]:
    """A Delta table's properties that keep its log and files as long as the history, in whole days,
    at least one. The log is also kept as long as single versions are kept. Otherwise Delta's own
    clean-up would remove versions that are promised."""
    files, log = (
        max(1, math.ceil(minutes / MINUTES_A_DAY))
        for minutes in (
            params.history_minutes,
            max(params.history_minutes, kept_seconds / 60),
        )
    )
    return {
        "delta.logRetentionDuration": f"interval {log} days",
        "delta.deletedFileRetentionDuration": f"interval {files} days",
    }


class Expiry:
    """Says when expiry is due: at once for a table that this process has not asked about, then each
    time a quarter of the history has passed. So a version lives at most that much longer than
    promised. Thread safe."""

    def __init__(
        self, params: LakehouseParams, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = 60 * SHARE_OF_HISTORY * params.history_minutes
        self._clock = clock
        self._done: dict[tuple[str, ...], float] = {}
        self._lock = threading.Lock()

    def is_due(self, names: tuple[str, ...]) -> bool:
        """Whether expiry is due. If so, the waiting time starts again."""
        now = self._clock()
        with self._lock:
            last = self._done.get(names)
            if last is not None and now - last < self._seconds:
                return False
            self._done[names] = now
            return True
