"""Looks into the source's catalog from time to time, in its own thread, for changes that have no
row in the log (CORRECTNESS 21). It changes nothing itself: `drift` decides what follows."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from replicators.connectors.control import (
    SourceControl,
    TellsRefused,
    TellsUnpublished,
    TellsUnreadable,
)
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from runners.engine.job import Job
from runners.engine.schema.describe import describe_tables
from runners.engine.store.protocol import Store, TableRow, is_live

logger = logging.getLogger("replicator.run")


@dataclass(frozen=True, slots=True)
class Look:
    """What a look found. `schemas`: the chosen tables that exist, with all of their columns.
    `renamed`: those that have another name now and are not followed there. `missed`: those that are
    gone. `left`: those whose changes the stream does not carry, though they are the same tables.
    `appeared`: tables that nobody chose yet. `known`: what was known of the tables before.
    `refused`: those whose changes the source refuses while they are in the stream, with the
    statement that mends it. `unreadable`: those that our user may not read any more. `position`:
    everything that was seen was committed before this log position."""

    schemas: Mapping[TableId, TableSchema]
    renamed: Mapping[TableId, TableId] = field(default_factory=dict)
    missed: frozenset[TableId] = frozenset()
    left: frozenset[TableId] = frozenset()
    appeared: tuple[TableId, ...] = ()
    position: int = 0
    known: Mapping[TableId, TableRow] = field(default_factory=dict)
    refused: Mapping[TableId, str] = field(default_factory=dict)
    unreadable: frozenset[TableId] = frozenset()

    def is_of(self, row: TableRow) -> bool:
        """Whether the look saw this copy of the table: a newer copy may have a newer schema."""
        then = self.known.get(row.id)
        return then is not None and (then.schema, then.generation) == (row.schema, row.generation)


def look(job: Job, store: Store, *, follows: bool) -> Look:
    """Look once. The number of queries does not depend on the number of tables. `follows`: a table
    with another name is followed there."""
    rows = store.tables()
    live = [r for r in rows if is_live(r)]
    known = [r.schema for r in live if r.schema is not None and r.is_snapshot_done]
    with job.source.catalog(job.source_params) as catalog:
        listed = [t.id for t in catalog.list_tables()]
        found = describe_tables(
            catalog,
            [r.selection for r in live],
            [r.schema for r in live if r.schema is not None],
            follows=follows,
        )
    described = found.schemas
    renamed = {t.id: found.renamed[t.id] for t in known if t.id in found.renamed}
    reached = store.memory().position
    with job.source.control(job.source_params, job.slot, reached) as control:
        same = [t for t in known if t.id in described and described[t.id].native_id == t.native_id]
        left = _left(control, same)
        refused = _refused(control, known)
        unreadable = _unreadable(control, known)
        position = control.status().end
    schemas = {r.id.schema for r in live}
    asked = {r.id for r in rows} | {s.source_id for s in described.values()}
    return Look(
        described,
        renamed,
        frozenset(t.id for t in known if t.id not in described and t.id not in renamed),
        left,
        tuple(t for t in listed if t not in asked and t.schema in schemas),
        position,
        {r.id: r for r in live},
        refused,
        unreadable,
    )


def _left(control: SourceControl, tables: list[TableSchema]) -> frozenset[TableId]:
    if not isinstance(control, TellsUnpublished):
        return frozenset()
    return frozenset(t.id for t in control.unpublished(tables))


def _refused(control: SourceControl, tables: list[TableSchema]) -> Mapping[TableId, str]:
    return control.refused(tables) if isinstance(control, TellsRefused) else {}


def _unreadable(control: SourceControl, tables: list[TableSchema]) -> frozenset[TableId]:
    if not isinstance(control, TellsUnreadable):
        return frozenset()
    return frozenset(control.unreadable(tables))


class DriftWatch:
    """Looks every `seconds`. `take` gives the last look once. If the source does not answer, the
    next look asks again."""

    def __init__(self, ask: Callable[[], Look], seconds: float) -> None:
        self._ask = ask
        self._seconds = seconds
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._last: Look | None = None
        self._thread = threading.Thread(target=self._run, name="catalog", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(30)

    def take(self) -> Look | None:
        """The last look, if it was not taken before."""
        with self._lock:
            last, self._last = self._last, None
        return last

    def _run(self) -> None:
        while not self._stop.wait(self._seconds):
            try:
                found = self._ask()
            except ReplicationError as err:
                logger.warning("The source's catalog could not be read: %s", err.message.text)
            except Exception:
                logger.exception("Looking into the source's catalog failed.")
            else:
                with self._lock:
                    self._last = found
