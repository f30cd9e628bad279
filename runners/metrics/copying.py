"""Progress of a replicator's current copies, summed over its tables; reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from replicators.models import Replicator
from runners.metrics.charts import copy_rate
from runners.models import Event, Table
from runners.shown import ReplicatorView
from runners.states import TableState

_ASKED = (
    "table_add_asked",
    "table_resync_asked",
    "table_mode_asked",
    "table_change_asked",
    "schema_resync",
)
_COPYING = (TableState.WAITING, TableState.SNAPSHOTTING)


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """Tables that are or were copied together, and their rows. `rows_expected` is None while one
    table's rows are not known."""

    tables: int
    tables_done: int
    rows: int
    rows_expected: int | None
    rate: float | None

    @property
    def percent(self) -> int | None:
        """Never 100: at 100 there is no copy any more."""
        if not self.rows_expected:
            return None
        return min(99, self.rows * 100 // self.rows_expected)

    @property
    def seconds_left(self) -> float | None:
        """Seconds left at the present rate."""
        left = (self.rows_expected or 0) - self.rows
        return left / self.rate if self.rate and left > 0 else None

    def to_json(self) -> dict[str, Any]:
        """The form of the status answer."""
        return {
            "tables": self.tables,
            "tables_done": self.tables_done,
            "rows": self.rows,
            "rows_expected": self.rows_expected,
            "percent": self.percent,
            "rows_per_second": self.rate,
            "seconds_left": self.seconds_left,
        }


def copy_progress(view: ReplicatorView, now: datetime) -> CopyProgress | None:
    """Progress of the current copies; None where no table waits for its copy or is being copied."""
    counts = view.totals.counts
    if not any(counts.get(state) for state in _COPYING):
        return None
    read = ("schema_name", "name", "state", "rows_snapshotted", "rows_total")
    rows = Table.objects.shown().filter(replicator=view.replicator).only(*read)
    tables = list(rows.exclude(state=TableState.FAILING))
    going = [t for t in tables if t.state in _COPYING]
    done = _done(view.replicator, [t for t in tables if t.state not in _COPYING])
    expected = [_expected(t) for t in going]
    copied = sum(t.rows_snapshotted for t in done)
    return CopyProgress(
        tables=len(going) + len(done),
        tables_done=len(done),
        rows=copied + sum(_rows(t) for t in going),
        rows_expected=None if None in expected else copied + sum(filter(None, expected)),
        rate=copy_rate(view.replicator, now) if view.is_live else None,
    )


def _rows(table: Table) -> int:
    """Rows of the current copy. A waiting table has none yet: its counter is of its last copy."""
    return table.rows_snapshotted if table.state == TableState.SNAPSHOTTING else 0


def _expected(table: Table) -> int | None:
    """Rows expected. The estimate is raised to the rows already copied."""
    return None if table.rows_total is None else max(table.rows_total, _rows(table))


def _done(replicator: Replicator, tables: Sequence[Table]) -> list[Table]:
    """Tables of the same group of copies that are finished: all of them in a first copy, otherwise
    those copied since the last action that asked for a copy."""
    mine = Event.objects.filter(replicator=replicator)
    asked = mine.filter(kind__in=_ASKED).order_by("-pk").values_list("pk", flat=True).first()
    if asked is None:
        return list(tables)
    since = mine.filter(kind="table_snapshot_done", pk__gt=asked)
    names = set(since.values_list("schema_name", "table_name"))
    return [t for t in tables if (t.schema_name, t.name) in names]
