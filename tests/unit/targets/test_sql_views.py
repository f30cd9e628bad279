"""Views of a database without transactions for them, seen in DuckDB: what a crash between the steps
leaves is mended by the next process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors.contract.merging import at
from replicators.connectors.model.modes import Mode, snapshot_values
from replicators.connectors.sql.steps import Step
from replicators.connectors.sql.target import SqlMergeTarget
from replicators.connectors.target import FoldedBatch, TargetTable
from tests.local.duck import DuckClient, DuckParams, writer
from tests.unit.targets.test_sql_target import SCHEMA, Killed

NARROW = replace(SCHEMA, columns=SCHEMA.columns[:1])
FIRST = TargetTable(SCHEMA.id, "r1", 1, mode=Mode.SOFT_DELETE)
VIEW = ("shop", "items_current")


@pytest.fixture
def params(tmp_path: Path) -> Iterator[DuckParams]:
    path = str(tmp_path / "duck.db")
    with duckdb.connect(path):  # it stays open, so that each call opens it at once
        yield DuckParams(path, str(tmp_path / "files"), False, current_views=True)


def copy(target: SqlMergeTarget, table: TargetTable, number: int) -> TargetTable:
    """A snapshot of one row."""
    target.begin_snapshot(table, SCHEMA)
    place = target.snapshot_place(table, SCHEMA)
    row = {**snapshot_values(table.mode, at(0), 10), "id": number}
    found = [{n: row.get(n) for n in place.arrow.names}]
    pq.write_table(pa.Table.from_pylist(found, place.arrow), f"{place.folder}/1.parquet")
    target.load_snapshot_files(table, SCHEMA, [f"{place.folder}/1.parquet"])
    return replace(table, table_uuid=target.publish_snapshot(table, SCHEMA, 10))


PLACES = ["view_drop", "view_announce", "view", "view made", "view_record"]


def die_at(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is gone before the step of this name (`view made`: after the statement)."""
    real = DuckClient.run

    def run(self: DuckClient, steps: Sequence[Step], *, job: str) -> None:
        what = job.split("_", 2)[2].rsplit("_", 1)[0]
        if what == place:
            raise Killed(what)
        real(self, steps, job=job)
        if f"{what} made" == place:
            raise Killed(what)

    monkeypatch.setattr(DuckClient, "run", run)
    monkeypatch.setattr(DuckClient, "change", run)


def rows(params: DuckParams) -> list[dict[str, Any]]:
    """The view's rows."""
    return DuckClient(params.path).records(VIEW)


@pytest.mark.parametrize("act", ["copy", "evolve"])
@pytest.mark.parametrize("place", PLACES)
def test_a_view_that_died_is_made_by_the_next_process(
    params: DuckParams, monkeypatch: pytest.MonkeyPatch, place: str, act: str
) -> None:
    """Guards the announcement: without it, a view that was made just before a crash would look like
    somebody else's (`target:view-taken`) for good. Each step of a copy and of a changed column."""
    live = copy(writer(params), FIRST, 1)
    renamed = writer(replace(params, view_suffix="_now"))
    second = replace(live, generation=2) if act == "copy" else live

    def killed() -> None:
        if act == "copy":
            copy(renamed, second, 2)
        else:
            renamed.evolve(live, SCHEMA, NARROW)

    with monkeypatch.context() as patched:
        die_at(place, patched)
        with pytest.raises(Killed):
            killed()
    after, schema = writer(params), SCHEMA
    if act == "evolve":
        schema = NARROW
        after.evolve(live, SCHEMA, NARROW)
    moved = FoldedBatch(schema, (), 20, 0, mode=Mode.SOFT_DELETE)
    assert after.merge(second, moved).was_applied
    assert [list(row) for row in rows(params)] == [[c.name for c in schema.columns]]
    assert [row["id"] for row in rows(params)] == ([2] if act == "copy" else [1])
    assert DuckClient(params.path).table(("shop", "items_now")) is None
