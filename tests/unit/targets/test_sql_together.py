"""Several tables in one transaction of a SQL target, seen in DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors import failpoints
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql.steps import Statement
from replicators.connectors.sql.together import StepsOfTables, TogetherTarget
from replicators.connectors.target import TargetTable
from replicators.connectors.together import MergesTogether, ReadyMerge
from replicators.targets.mysql import PLUGIN as MYSQL
from replicators.targets.postgresql import PLUGIN as POSTGRESQL
from replicators.targets.postgresql.writer import DEFERRED
from tests.local.duck import DuckClient, DuckParams, writer
from tests.unit.targets.test_sql_target import FIRST, SCHEMA, Killed, appended

ITEMS, ORDERS = FIRST, replace(FIRST, source=TableId("shop", "orders"))


@pytest.fixture
def params(tmp_path: Path) -> Iterator[DuckParams]:
    path = str(tmp_path / "duck.db")
    with duckdb.connect(path):  # it stays open, so that each call opens it at once
        yield DuckParams(path, str(tmp_path / "files"))


def copied(target: TogetherTarget) -> tuple[TargetTable, TargetTable]:
    """Both tables, copied with one row."""
    found = []
    for table in (ITEMS, ORDERS):
        schema = replace(SCHEMA, id=table.source)
        target.begin_snapshot(table, schema)
        place = target.snapshot_place(table, schema)
        path = f"{place.folder}/1.parquet"
        pq.write_table(pa.Table.from_pylist([{"id": 1, "note": "first"}], place.arrow), path)
        target.load_snapshot_files(table, schema, [path])
        found.append(replace(table, table_uuid=target.publish_snapshot(table, schema, 10)))
    return found[0], found[1]


def ready(target: TogetherTarget, table: TargetTable, folder: Path) -> ReadyMerge:
    """A batch with one more row, loaded."""
    made = target.ready(table, appended(folder, 20, 2))
    assert made is not None
    return made


def rows(params: DuckParams) -> dict[str, list[int]]:
    """The numbers in each table."""
    client = DuckClient(params.path)
    return {n: [r["id"] for r in client.records(("shop", n))] for n in ("items", "orders")}


def sequences(params: DuckParams) -> list[int]:
    """The progress rows'."""
    client = DuckClient(params.path)
    return [r["sequence"] for r in client.records(("shop", "_replicator_progress"))]


def test_all_tables_and_their_progress_change_in_one_transaction(
    params: DuckParams, tmp_path: Path
) -> None:
    """Guards `TogetherTarget.merge_together` (CORRECTNESS 13, 35)."""
    target = writer(params)
    items, orders = copied(target)
    merges = [ready(target, t, tmp_path) for t in (orders, items)]
    assert rows(params) == {"items": [1], "orders": [1]}
    target.merge_together(merges)
    assert rows(params) == {"items": [1, 2], "orders": [1, 2]}
    assert sequences(params) == [20, 20]
    assert target.ready(items, appended(tmp_path, 20, 2)) is None, "it would come twice"
    assert DuckClient(params.path).tables(("shop",), "_replicator_") == ("_replicator_progress",)


def test_nothing_is_merged_where_one_table_can_not_be(params: DuckParams, tmp_path: Path) -> None:
    """Guards the one transaction, and the name of the table whose fault it is: without it, all
    tables would fail for one."""
    target = writer(params)
    items, orders = copied(target)
    merges = [ready(target, t, tmp_path) for t in (items, orders)]
    other = writer(params)
    other.token(orders)
    other.merge(orders, appended(tmp_path, 15, 9))
    with pytest.raises(ReplicationError) as caught:
        target.merge_together(merges)
    assert (caught.value.code, caught.value.table) == ("target:conflict", orders.source)
    assert rows(params) == {"items": [1], "orders": [1, 9]}
    assert sorted(sequences(params)) == [10, 15]


def test_a_run_that_died_after_the_commit_has_merged_all_tables(
    params: DuckParams, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the order of writes: the tokens say what was merged, for each table by itself."""
    target = writer(params)
    tables = copied(target)
    merges = [ready(target, t, tmp_path) for t in tables]

    def hit(name: str) -> None:
        if name == "batch_merged":
            raise Killed(name)

    monkeypatch.setattr(failpoints, "hit", hit)
    with pytest.raises(Killed):
        target.merge_together(merges)
    after = writer(params)
    for table in tables:
        token = after.token(table)
        assert token is not None and token.sequence == 20
        assert after.ready(table, appended(tmp_path, 20, 2)) is None
    assert rows(params) == {"items": [1, 2], "orders": [1, 2]}


def test_a_fault_of_no_table_names_none() -> None:
    """Guards `StepsOfTables`: a constraint that is checked at the commit, or a connection that is
    lost there, is no table's whose statement came last."""
    steps = StepsOfTables([DEFERRED], [ReadyMerge(t, Any, [DEFERRED]) for t in (ITEMS, ORDERS)])
    seen = [(isinstance(step, Statement), steps.table) for step in steps]
    assert seen == [(True, None), (True, ITEMS), (True, ORDERS)]
    assert steps.table is None and len(steps) == 3 and steps[0] is DEFERRED


def test_a_target_that_says_so_merges_together(params: DuckParams) -> None:
    """Guards `merges_together`."""
    assert isinstance(writer(params), MergesTogether)
    assert POSTGRESQL.capabilities.merges_together and MYSQL.capabilities.merges_together
    assert DEFERRED.tree.sql() == "SET CONSTRAINTS ALL DEFERRED"
