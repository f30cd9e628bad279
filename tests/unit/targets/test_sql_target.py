"""The order of a SQL target's writes, seen in DuckDB: what a crash between two steps leaves, and
that the next process goes on from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors import failpoints
from replicators.connectors.contract.merging import digest
from replicators.connectors.contract.source import code_of
from replicators.connectors.model.modes import OCCURRENCE, ROW_HASH, Mode
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.sql.steps import Statement
from replicators.connectors.sql.target import SqlMergeTarget
from replicators.connectors.target import FoldedBatch, TargetTable
from tests.local.duck import DuckClient, DuckParams, writer

SCHEMA = TableSchema(
    TableId("shop", "items"),
    (
        Column("id", Int(64), "bigint", nullable=False, ordinal=1),
        Column("note", String(), "text", ordinal=2),
    ),
    ("id",),
    ("id",),
)
KEYLESS = replace(SCHEMA, key=(), primary_key=(), full_before=True)
FIRST = TargetTable(SCHEMA.id, "r1", 1)


class Killed(BaseException):
    """In place of SIGKILL: what is in the database then is what is durable."""


@pytest.fixture(params=[True, False], ids=["at once", "in two steps"])
def params(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DuckParams]:
    path = str(tmp_path / "duck.db")
    with duckdb.connect(path):  # it stays open, so that each call opens it at once
        yield DuckParams(path, str(tmp_path / "files"), request.param)


@pytest.fixture
def dies(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """The next time that a place is reached, the process is gone."""

    def armed(name: str) -> None:
        assert name in failpoints.NAMES

        def hit(reached: str) -> None:
            if reached == name:
                monkeypatch.setattr(failpoints, "hit", lambda _: None)
                raise Killed(name)

        monkeypatch.setattr(failpoints, "hit", hit)

    return armed


def copy(target: SqlMergeTarget, table: TargetTable, rows: list[dict[str, Any]]) -> str:
    """A snapshot as the engine makes it; the UUID."""
    schema = KEYLESS if table.mode is Mode.MULTISET else SCHEMA
    target.begin_snapshot(table, schema)
    place = target.snapshot_place(table, schema)
    path = f"{place.folder}/1.parquet"
    full = [{n: row.get(n) for n in place.arrow.names} for row in rows]
    pq.write_table(pa.Table.from_pylist(full, place.arrow), path)
    target.load_snapshot_files(table, schema, [path])
    return target.publish_snapshot(table, schema, 10)


def appended(folder: Path, sequence: int, *numbers: int) -> FoldedBatch:
    """A batch of new rows without a key: whatever comes twice shows."""
    arrow = pa.schema([*SCHEMA.arrow_schema(), pa.field("_delete", pa.bool_())])
    rows = [{"id": n, "note": "new", "_delete": False} for n in numbers]
    path = str(folder / f"{sequence}.parquet")
    pq.write_table(pa.Table.from_pylist(rows, arrow), path)
    keyless = replace(SCHEMA, key=(), primary_key=())
    return FoldedBatch(keyless, (path,), sequence, len(rows), append_only=True)


def rows_of(params: DuckParams) -> list[int]:
    """The numbers in the live table."""
    client = DuckClient(params.path)
    return [row["id"] for row in client.records(("shop", "items"))]


def tables_of(params: DuckParams) -> list[str]:
    """All tables of the namespace."""
    return sorted(DuckClient(params.path).tables(("shop",), ""))


def files_of(params: DuckParams) -> list[Path]:
    """What lies in the folder of snapshot files."""
    return [p for p in Path(params.folder).rglob("*") if p.is_file()]


@pytest.mark.parametrize("place", ["batch_staged", "batch_merged"])
def test_a_merge_that_died_is_applied_once(
    params: DuckParams, dies: Callable[[str], None], tmp_path: Path, place: str
) -> None:
    """Guards the one transaction of rows and progress (CORRECTNESS 13), with rows that show if they
    come twice. What the dead process staged is removed by the next one."""
    live = replace(FIRST, table_uuid=copy(writer(params), FIRST, [{"id": 1}]))
    batch = appended(tmp_path, 20, 2, 3)
    dies(place)
    with pytest.raises(Killed):
        writer(params).merge(live, batch)
    assert rows_of(params) == ([1] if place == "batch_staged" else [1, 2, 3])
    assert len(tables_of(params)) == 3, "the dead process left its staging table"
    after = writer(params)
    token = after.token(live)
    assert token is not None and token.sequence == (10 if place == "batch_staged" else 20)
    assert after.merge(live, batch).was_applied is (place == "batch_staged")
    assert rows_of(params) == [1, 2, 3]
    assert after.merge(live, appended(tmp_path, 30, 4)).was_applied
    assert tables_of(params) == ["_replicator_progress", "items"]


@pytest.mark.parametrize("is_resync", [False, True], ids=["first copy", "re-sync"])
@pytest.mark.parametrize("place", ["copy_announced", "copy_swapped"])
def test_a_publication_that_died_is_the_replicators_own_and_is_done_again(
    params: DuckParams, dies: Callable[[str], None], place: str, is_resync: bool
) -> None:
    """Guards the announcement: without it, the table that was made just before the crash would look
    like somebody else's (`target:table-taken`). A crash before the step leaves the old rows."""
    if params.publishes_at_once and place == "copy_announced":
        pytest.skip("there is nothing to announce")
    if is_resync:
        copy(writer(params), FIRST, [{"id": 1}])
    dies(place)
    with pytest.raises(Killed):
        copy(writer(params), replace(FIRST, generation=2), [{"id": 2}])
    is_seen = place == "copy_swapped" and not params.publishes_at_once
    if is_seen or is_resync:
        assert rows_of(params) == ([2] if is_seen else [1])
    else:
        assert "items" not in tables_of(params)
    third = replace(FIRST, generation=3)
    after = writer(params)
    uuid = copy(after, third, [{"id": 3}])
    assert after.publish_snapshot(third, SCHEMA, 10) == uuid
    assert rows_of(params) == [3]
    assert tables_of(params) == ["_replicator_progress", "items"]
    assert not files_of(params)
    token = after.token(third)
    assert token is not None and (token.generation, token.sequence) == (3, 10)


def test_numbering_that_died_begins_again(params: DuckParams, dies: Callable[[str], None]) -> None:
    """Guards the copy of a table without a key, which has one step more."""
    table = replace(FIRST, mode=Mode.MULTISET)
    rows = [{"id": 7, ROW_HASH: digest(7)}] * 2
    dies("copy_numbered")
    with pytest.raises(Killed):
        copy(writer(params), table, rows)
    copy(writer(params), replace(table, generation=2), rows)
    found = DuckClient(params.path).records(("shop", "items"))
    assert [row[OCCURRENCE] for row in found] == [1, 2]
    assert tables_of(params) == ["_replicator_progress", "items"]


def test_a_snapshot_goes_on_in_another_process(params: DuckParams) -> None:
    """Guards `snapshot_place_again` (CORRECTNESS 17): the files are kept by their folder, and the
    staging table is made by the process that loads them."""
    before = writer(params)
    before.begin_snapshot(FIRST, SCHEMA)
    place = before.snapshot_place(FIRST, SCHEMA)
    path = f"{place.folder}/1.parquet"
    pq.write_table(pa.Table.from_pylist([{"id": 5, "note": "kept"}], place.arrow), path)
    after = writer(params)
    again = after.snapshot_place_again(FIRST, SCHEMA, place.folder)
    assert again == place
    assert after.snapshot_place_again(replace(FIRST, generation=2), SCHEMA, place.folder) is None
    after.load_snapshot_files(FIRST, SCHEMA, [path])
    after.publish_snapshot(FIRST, SCHEMA, 10)
    assert rows_of(params) == [5]
    assert after.snapshot_place_again(FIRST, SCHEMA, place.folder) is None
    assert tables_of(params) == ["_replicator_progress", "items"]


def test_a_publication_that_another_run_overtook_changes_nothing(params: DuckParams) -> None:
    """Guards CORRECTNESS 29 for snapshots: a run whose lease ended publishes late."""
    copy(writer(params), FIRST, [{"id": 1}])
    late, second = writer(params), replace(FIRST, generation=2)
    late.begin_snapshot(second, SCHEMA)
    copy(writer(params), replace(FIRST, generation=3), [{"id": 3}])
    assert code_of(lambda: late.publish_snapshot(second, SCHEMA, 40)) == "target:table-ahead"
    assert code_of(lambda: late.begin_snapshot(second, SCHEMA)) == "target:table-ahead"
    assert rows_of(params) == [3]


@pytest.mark.parametrize("when", ["before", "within"])
def test_a_merge_of_a_dead_process_that_ends_late_is_adopted(
    params: DuckParams, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Guards `SqlMergeTarget._late`: a statement that a dead process had sent ends after the next
    process has read the token. The table would need a fresh copy, though the token is ours."""
    live = replace(FIRST, table_uuid=copy(writer(params), FIRST, [{"id": 1}]))
    dead, after = writer(params), writer(params)
    tokens = [w.token(live) for w in (dead, after)]
    assert [t.sequence for t in tokens if t] == [10, 10]
    both = appended(tmp_path, 30, 2, 3)
    client: Any = after._client
    own = client.run

    def overtaken(steps: Any, *, job: str) -> None:
        monkeypatch.setattr(client, "run", own)
        assert dead.merge(live, appended(tmp_path, 20, 2)).was_applied
        own(steps, job=job)

    if when == "before":
        assert dead.merge(live, appended(tmp_path, 20, 2)).was_applied
    else:
        monkeypatch.setattr(client, "run", overtaken)
    assert code_of(lambda: after.merge(live, both)) == "target:conflict"
    assert rows_of(params) == [1, 2]
    token = after.token(live)
    assert token is not None and token.sequence == 20
    assert after.merge(live, appended(tmp_path, 30, 3)).was_applied
    assert code_of(lambda: dead.merge(live, appended(tmp_path, 40, 4))) == "target:table-ahead"
    assert rows_of(params) == [1, 2, 3]


def test_a_newer_generation_is_not_adopted_by_a_merge(params: DuckParams, tmp_path: Path) -> None:
    """Guards `SqlMergeTarget._late`: another run copied the table afresh."""
    live = replace(FIRST, table_uuid=copy(writer(params), FIRST, [{"id": 1}]))
    late = writer(params)
    assert late.token(live) is not None
    copy(writer(params), replace(FIRST, generation=2), [{"id": 5}])
    assert code_of(lambda: late.merge(live, appended(tmp_path, 20, 2))) == "target:table-ahead"
    assert rows_of(params) == [5]


@pytest.mark.parametrize("act", ["evolve", "fill"])
def test_a_change_of_columns_that_another_run_overtook_leaves_nothing(
    params: DuckParams, act: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Guards the fence of statements that carry no sequence. The other run merges after the row was
    read."""
    live = replace(FIRST, table_uuid=copy(writer(params), FIRST, [{"id": 1, "note": "a"}]))
    late = writer(params)
    client: Any = late._client
    word = "change" if act == "evolve" else "run"
    own = getattr(client, word)

    def overtaken(steps: Any, *, job: str) -> None:
        assert writer(params).merge(live, appended(tmp_path, 20, 2)).was_applied
        own(steps, job=job)

    monkeypatch.setattr(client, word, overtaken)
    more = replace(SCHEMA, columns=(*SCHEMA.columns, Column("n", Int(32), "integer", ordinal=3)))
    acts = {
        "evolve": lambda: late.evolve(live, SCHEMA, more),
        "fill": lambda: late.fill_column(live, SCHEMA.column("note"), "b"),
    }
    assert code_of(acts[act]) == "target:table-ahead"
    found = DuckClient(params.path).records(("shop", "items"))
    assert found == [{"id": 1, "note": "a"}, {"id": 2, "note": "new"}]


def test_a_table_of_somebody_else_is_not_taken_for_the_progress_table(params: DuckParams) -> None:
    """Guards `target:progress-columns` and `target:name-reserved`: nothing is written to such a
    table, and no source's table is copied over ours."""
    client = DuckClient(params.path)
    client.make_namespace(("shop",))
    client.make(("shop", "_replicator_progress"), SCHEMA, job="by hand")
    begin = writer(params).begin_snapshot
    assert code_of(lambda: begin(FIRST, SCHEMA)) == "target:progress-columns"
    taken = replace(SCHEMA, id=TableId("other", "_replicator_progress"))
    table = replace(FIRST, source=taken.id)
    assert code_of(lambda: begin(table, taken)) == "target:name-reserved"


def test_two_replicators_copy_under_one_name_until_the_first_publishes(params: DuckParams) -> None:
    """Guards the staging names: nobody's staged rows get into another's table."""
    ours, theirs = FIRST, replace(FIRST, replicator="r2")
    one, two = writer(params), writer(params)
    one.begin_snapshot(ours, SCHEMA)
    copy(two, theirs, [{"id": 2}])
    assert code_of(lambda: one.publish_snapshot(ours, SCHEMA, 10)) == "target:table-taken"
    one.drop(ours)
    assert rows_of(params) == [2]
    assert tables_of(params) == ["_replicator_progress", "items"]


def test_a_dropped_table_leaves_nothing_of_its_own(params: DuckParams) -> None:
    """Guards `drop`: progress row, staging tables and files go too; another may take the name."""
    target = writer(params)
    copy(target, FIRST, [{"id": 1}])
    target.begin_snapshot(replace(FIRST, generation=2), SCHEMA)
    target.snapshot_place(replace(FIRST, generation=2), SCHEMA)
    target.drop(FIRST)
    assert tables_of(params) == ["_replicator_progress"]
    assert DuckClient(params.path).records(("shop", "_replicator_progress")) == []
    copy(writer(params), replace(FIRST, replicator="r2"), [{"id": 2}])
    assert rows_of(params) == [2]


def test_the_first_step_of_every_transaction_is_the_fence(
    params: DuckParams, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Guards the order within a transaction: the progress row is locked before any row changes, so
    that a second run waits or fails before it has read the table."""
    target = writer(params)
    live = replace(FIRST, table_uuid=copy(target, FIRST, [{"id": 1}]))
    client: Any = target._client
    seen: list[str] = []
    own = client.run

    def run(steps: Any, *, job: str) -> None:
        first = steps[0]
        assert isinstance(first, Statement)
        seen.append(client.dialect.sql(first.tree))
        own(steps, job=job)

    monkeypatch.setattr(client, "run", run)
    target.merge(live, appended(tmp_path, 20, 2))
    target.fill_column(live, SCHEMA.column("note"), "b")
    assert len(seen) == 2
    assert all(text.startswith('UPDATE "shop"."_replicator_progress" SET ') for text in seen)


@pytest.mark.parametrize("done", range(12))
def test_a_change_of_columns_that_died_goes_on_where_it_stopped(
    params: DuckParams, done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the column numbers in the progress row, where DDL takes no part in a transaction: two
    columns that swap their names, and one that is made again, after a crash behind any step."""
    live = replace(FIRST, table_uuid=copy(writer(params), FIRST, [{"id": 1, "note": "a"}]))
    key, note = SCHEMA.columns
    other = Column("other", String(), "text", ordinal=3)
    wide = replace(SCHEMA, columns=(key, note, other))
    before = writer(params)
    before.evolve(live, SCHEMA, wide)
    before.fill_column(live, other, "b")
    crossed = (key, replace(note, name="other"), replace(other, name="note"))
    new = replace(wide, columns=(*crossed, Column("more", Int(32), "integer", ordinal=4)))
    target = writer(params)
    client: Any = target._client
    own = client.change

    def one_by_one(steps: Any, *, job: str) -> None:
        for step in steps[:done]:
            own([step], job=job)
        if done < len(steps):
            raise Killed(job)

    monkeypatch.setattr(client, "change", one_by_one)
    with suppress(Killed):
        target.evolve(live, wide, new)
    after = writer(params)
    after.evolve(live, wide, new)
    assert after.evolve(live, wide, new) == []
    found = DuckClient(params.path).records(("shop", "items"))
    assert found == [{"id": 1, "note": "b", "other": "a", "more": None}]
