"""What is loaded into a staging table: plain columns made of a batch's files."""

from __future__ import annotations

import datetime as dt
import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Array, Int, String, Time, arrow_type
from replicators.connectors.sql.relation import relation
from replicators.connectors.sql.staged import StagedFiles, _bit, staged_batch, staged_snapshot
from replicators.connectors.target import FoldedBatch

SCHEMA = TableSchema(
    TableId("shop", "items"),
    (
        Column("id", Int(64), "bigint", nullable=False),
        *(Column(f"c{n}", String(), "text") for n in range(9)),
        Column("at", Time(), "time"),
        Column("all_at", Array(Time()), "time[]"),
    ),
    ("id",),
    ("id",),
)
NOON = dt.time(12, 30, 0, 7)


def own(column: Column) -> pa.DataType:
    """The neutral type's own Arrow type."""
    return arrow_type(column.type)


def as_text(column: Column) -> pa.DataType:
    """Times of day as text."""
    match column.type:
        case Time():
            return pa.string()
        case Array(of=Time()):
            return pa.list_(pa.string())
    return own(column)


def batch(folder: Path, *, has_origins: bool = True) -> FoldedBatch:
    """Three rows: one whole, one that lacks two values, and one from another key that lacks one."""
    key = pa.struct([("id", pa.int64())])
    arrow = pa.schema(
        [
            *SCHEMA.arrow_schema(),
            pa.field("_delete", pa.bool_()),
            pa.field("_unsent", pa.binary()),
            pa.field("_origin", key),
        ]
    )
    whole = {"id": 1, "c0": "a", "at": NOON, "all_at": [NOON, None], "_delete": False}
    lacks = {"id": 2, "_delete": False, "_unsent": (1 << 1 | 1 << 9).to_bytes(2, "little")}
    moved = {"id": 3, "_delete": False, "_unsent": (1 << 9).to_bytes(2, "little")}
    moved["_origin"] = {"id": 7} if has_origins else None
    path = str(folder / "batch.parquet")
    pq.write_table(pa.Table.from_pylist([whole, lacks, moved], arrow), path, row_group_size=2)
    return FoldedBatch(SCHEMA, (path,), 20, 3, ("c0", "c8"), has_origins)


def test_flags_and_origins_are_plain_columns(tmp_path: Path) -> None:
    """Guards the columns that every dialect's statements read: a flag is never NULL, and a key
    column of an origin is NULL where there is none."""
    made = staged_batch(batch(tmp_path), own)
    found = pa.Table.from_batches(made.read()).to_pylist()
    assert [c.name for c in made.columns] == [c.name for c in relation(batch(tmp_path)).columns]
    names = ("_unsent_1", "_unsent_9", "_is_moved", "_origin_0")
    assert [tuple(row[n] for n in names) for row in found] == [
        (False, False, False, None),
        (True, True, False, None),
        (False, True, True, 7),
    ]
    assert found[0]["at"] == NOON and found[0]["c0"] == "a"


def test_times_of_day_become_what_the_client_wants(tmp_path: Path) -> None:
    """Guards engines without a type for them, in lists too."""
    made = staged_batch(batch(tmp_path), as_text)
    found = pa.Table.from_batches(made.read()).to_pylist()[0]
    assert found["at"] == "12:30:00.000007"
    assert found["all_at"] == ["12:30:00.000007", None]


def test_a_file_is_read_in_small_parts(tmp_path: Path) -> None:
    """Guards the bound on memory: never a whole file at once."""
    path = str(tmp_path / "rows.parquet")
    rows = pa.table({"id": pa.array(range(1000), pa.int64())})
    pq.write_table(rows, path, row_group_size=100)
    schema = replace(SCHEMA, columns=SCHEMA.columns[:1])
    made = staged_snapshot(schema, [path, path], own)
    sizes = [b.num_rows for b in made.read(rows_at_once=100)]
    assert sum(sizes) == 2000 and max(sizes) <= 100
    assert made.is_plain and not staged_batch(batch(tmp_path), own).is_plain
    copied: StagedFiles = pickle.loads(pickle.dumps(made))  # noqa: S301 - our own bytes
    assert copied == made


def test_a_column_that_the_files_lack_is_null(tmp_path: Path) -> None:
    """Guards batches whose origins are all empty, and a copy that numbers its rows later."""
    plain = batch(tmp_path, has_origins=False)
    assert not any(n.startswith("_origin") for n in staged_batch(plain, own).arrow.names)
    path = str(tmp_path / "ids.parquet")
    pq.write_table(pa.table({"id": pa.array([1], pa.int64())}), path)
    (row,) = pa.Table.from_batches(staged_snapshot(SCHEMA, [path], own).read()).to_pylist()
    assert row == {**dict.fromkeys(SCHEMA.arrow_schema().names), "id": 1}


def test_the_modes_own_columns_are_taken_as_they_are(tmp_path: Path) -> None:
    """Guards soft delete's time of deletion, which only deleted rows have."""
    at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    moment = pa.timestamp("us", tz="UTC")
    rows = pa.table(
        {"id": [1, 2], "_delete": [True, False], "_deleted_at": pa.array([at, None], moment)}
    )
    path = str(tmp_path / "soft.parquet")
    pq.write_table(rows, path)
    soft = FoldedBatch(SCHEMA, (path,), 20, 2, mode=Mode.SOFT_DELETE)
    found = pa.Table.from_batches(staged_batch(soft, own).read())
    assert found.column("_deleted_at").to_pylist() == [at, None]
    assert found.column("_delete").to_pylist() == [True, False]


@given(
    values=st.lists(st.one_of(st.none(), st.binary(max_size=3)), max_size=30),
    bit=st.integers(0, 30),
    skipped=st.integers(0, 5),
)
def test_a_bit_is_read_as_a_loop_would(values: list[bytes | None], bit: int, skipped: int) -> None:
    """Guards the reading of offsets by hand, in parts of arrays too."""
    made = pa.array(values, pa.binary()).slice(skipped)
    assert _bit(made, bit).to_pylist() == [
        bool(v) and int.from_bytes(v or b"", "little") >> bit & 1 == 1 for v in values[skipped:]
    ]
