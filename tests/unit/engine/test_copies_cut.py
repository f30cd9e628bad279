"""A copy whose view of the source went away."""

from __future__ import annotations

from typing import Any, cast

import pytest

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import TargetTable
from runners.engine.errors import fail_table
from runners.engine.snapshot.chunks import Snapshotter
from runners.engine.snapshot.consistent import ConsistentSnapshot, SnapshotSource
from runners.engine.snapshot.table import CUTS, TableSnapshots
from runners.engine.store.protocol import FRESH, MemoryStore, TableRow, TableState
from tests.unit.engine.changes import SCHEMA

ROW = TableRow(TableId("shop", "views"))


class Source(SnapshotSource):
    """Has no view, for the reason `code`, or because a stop was asked."""

    def __init__(self, code: str = "") -> None:
        self.code = code

    def snapshot(self, table: TableId, *, is_exact: bool = False) -> ConsistentSnapshot | None:
        if self.code:
            raise ReplicationError(self.code, table=table, right="SELECT")
        return None


def table_snapshots(source: Source) -> TableSnapshots:
    nothing: Any = None
    return TableSnapshots(MemoryStore([ROW.id]), source, nothing, "r")


class Begun(Snapshotter):
    """Copies nothing, finds no copy that could go on, and notes the generations that it was asked
    for."""

    def __init__(self, store: MemoryStore, fails: str = "") -> None:
        self.store, self.fails = store, fails
        self.generations: list[int] = []

    def find(self, *_: object) -> None:
        return None

    def copy(self, table: TargetTable, *_: object, **__: object) -> tuple[str, int]:
        self.generations.append(table.generation)
        if self.fails:
            fail_table(self.store, table.source, self.fails, {})
            self.fails = ""
        return "uuid", 0


class Streaming:
    """Knows schemas as they were copied."""

    def copied(self, schema: TableSchema) -> TableSchema:
        return schema


class ConsistentSnapshots(SnapshotSource):
    """A view whose tables are copied by `snapshotter`."""

    def __init__(self, snapshotter: Begun) -> None:
        self.snapshotter = snapshotter

    def snapshot(self, table: TableId, *, is_exact: bool = False) -> ConsistentSnapshot:
        return ConsistentSnapshot(self.snapshotter, SCHEMA, 7, 70)


def test_every_copy_that_is_begun_has_a_generation_of_its_own() -> None:
    """Guards a first copy that was published and not recorded, since the log told a fault
    meanwhile: under the same generation the next copy's publishing would take the old rows for its
    own, and what was committed between the two would be missing."""
    store = MemoryStore([SCHEMA.id])
    snapshotter = Begun(store, fails="source:value-unsupported")
    made = TableSnapshots(store, ConsistentSnapshots(snapshotter), cast(Any, Streaming()), "r")
    assert not made.copy(store.table(SCHEMA.id))
    row = store.table(SCHEMA.id)
    assert (row.state, row.error_code) == (TableState.FAILING, "source:value-unsupported")
    store.table_event(SCHEMA.id, "table_waits", error_code="", **FRESH)
    assert made.copy(store.table(SCHEMA.id))
    assert snapshotter.generations == [1, 2]
    assert store.table(SCHEMA.id).generation == 2


@pytest.mark.parametrize("code", sorted(CUTS))
def test_a_copy_that_is_cut_off_begins_again_and_the_run_goes_on(code: str) -> None:
    """Guards that tables which can't go on with their chunks (no key, history, append) are copied
    again within the run: its end would stop every other table too."""
    made = table_snapshots(Source(code))
    assert made.is_due(ROW.id)
    assert not made.copy(ROW)
    assert not made.is_due(ROW.id)


def test_a_copy_that_is_cut_off_again_and_again_is_given_up() -> None:
    """Guards `TableSnapshots._cut`: the copy was begun again every five seconds for ever."""
    store = MemoryStore([ROW.id])
    nothing: Any = None
    made = TableSnapshots(store, Source("source:snapshot-lost"), nothing, "r", patience=30.0)
    for tries in (1, 2):
        assert not made.copy(store.table(ROW.id))
        row = store.table(ROW.id)
        assert (row.failures, row.state) == (tries, TableState.WAITING)
    assert not made.copy(row)
    row = store.table(ROW.id)
    assert (row.state, row.error_code) == (TableState.FAILING, "source:snapshot-lost")
    assert row.is_given_up


def test_other_faults_of_a_copy_are_reported() -> None:
    """Guards the list `CUTS` in `TableSnapshots.copy`: a missing right taken for a cut would be
    tried again for ever, and nobody would hear of it."""
    with pytest.raises(ReplicationError):
        table_snapshots(Source("source:select-right")).copy(ROW)


def test_a_copy_without_a_view_at_a_stop_is_not_recorded() -> None:
    """Guards `TableSnapshots.copy` where a stop ended the wait for a view: recorded as done, the
    table would be followed without its rows."""
    assert not table_snapshots(Source()).copy(ROW)
