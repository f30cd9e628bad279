"""Rows that are too large for the path: their values are left out and reported, before anything
else holds them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors.log import DecodedTable
from replicators.connectors.model.changes import FAULT_FIELDS, Op, OpCounts, change_schema
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Array, Bytes, Int, String
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import Chunk
from runners.engine import errors, sizes
from runners.engine.decode.job import DecodeTask, decode_segment
from runners.engine.sizes import NUL_REASON, Limits
from runners.engine.snapshot.unsupported import SupportedRows
from tests.unit.engine.changes import SCHEMA, Change, table_of

LIMIT = 1000
WIDE = TableSchema(
    TableId("shop", "wide"),
    (
        Column("id", Int(64), "bigint"),
        Column("text", String(), "text"),
        Column("raw", Bytes(), "bytea"),
        Column("words", Array(String()), "text[]"),
        Column("numbers", Array(Int(64)), "bigint[]"),
    ),
    key=("id",),
)


def rows(*values: dict[str, Any], schema: TableSchema = WIDE) -> pa.Table:
    """The rows of a snapshot, larger than the limit as a whole."""
    filled = [{"id": -n, "text": "x" * 100} for n in range(20)]
    return pa.Table.from_pylist([*filled, *values], schema=schema.arrow_schema())


def reported(found: pa.Table) -> list[str]:
    return found.column("_fault_reason").drop_null().to_pylist()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", "é" * 501),
        ("raw", b"x" * 1001),
        ("words", ["x" * 500, None, "y" * 501]),
        ("numbers", list(range(126))),
    ],
)
def test_a_value_that_is_too_large_is_left_out_and_reported(name: str, value: Any) -> None:
    found = sizes.of_limit(rows({"id": 7, name: value}, {"id": 8, "text": "z"}), WIDE, LIMIT)
    assert found.num_rows == 22
    assert [r["id"] for r in found.to_pylist() if r["_faulty"]] == [7]
    assert found.filter(found.column("_faulty").is_valid()).column(name)[0].as_py() is None
    assert found.column("text")[21].as_py() == "z"
    size = 1002 if name == "text" else 1008 if name == "numbers" else 1001
    assert reported(found) == [
        f"{name}: its row has {size:,} bytes, and rows of at most 1,000 are copied"
    ]


def test_a_row_of_many_values_loses_its_largest_until_the_rest_is_small_enough() -> None:
    """Guards rows that are too large though no value is: the path holds whole rows."""
    row = {"id": 7, "text": "x" * 300, "raw": b"x" * 500, "words": ["x" * 400]}
    found = sizes.of_limit(rows(row), WIDE, LIMIT).to_pylist()[-1]
    assert (found["text"], found["raw"], found["words"]) == ("x" * 300, None, ["x" * 400])


def test_rows_of_the_limit_are_untouched() -> None:
    given = rows({"id": 7, "text": "x" * 900, "raw": b"x" * 100})
    assert sizes.of_limit(given, WIDE, LIMIT) is given


@pytest.mark.parametrize(
    "schema", [replace(WIDE, key=()), replace(WIDE, key=("text",))], ids=["no key", "in the key"]
)
def test_a_row_that_can_not_wait_stops_its_table(schema: TableSchema) -> None:
    with pytest.raises(ReplicationError) as caught:
        sizes.of_limit(rows({"id": 7, "text": "x" * 1001}), schema, LIMIT)
    assert (caught.value.code, caught.value.table) == (sizes.CODE, schema.id)
    assert caught.value.facts["column"] == "text"


def test_what_a_row_was_before_is_held_no_more_than_what_it_is() -> None:
    """Guards updates and deletes of rows that are too large: their old image comes whole with
    REPLICA IDENTITY FULL."""
    schema = replace(WIDE, full_before=True)
    kinds = [Op.UPDATE, Op.DELETE, Op.INSERT]
    image = {"id": 7, "text": "x" * 2000, "raw": b"r"}
    meta = {"_committed_at": 0, "_transaction": 1, "_position": 1}
    given = pa.Table.from_pylist(
        [
            {**meta, "_sequence": n, "_op": int(op), "id": 7,
            "_before": None if op is Op.INSERT else image}
            for n, op in enumerate(kinds)
        ],
        schema=change_schema(schema),
    )  # fmt: skip
    found = sizes.of_limit(given, schema, LIMIT)
    blank = {**dict.fromkeys(schema.arrow_schema().names), "id": 7, "raw": b"r"}
    assert found.column("_before").to_pylist() == [blank, blank, None]
    assert found.schema == given.schema


def test_marks_that_are_there_stay() -> None:
    marked = rows({"id": 7, "raw": b"x" * 1001}, {"id": 8})
    bits = np.array([None] * 20 + [b"\2", b"\2"], object)
    reasons = [None] * 20 + ["text: NaN", "text: NaN"]
    for field, values in zip(FAULT_FIELDS, (bits, reasons), strict=True):
        marked = marked.append_column(field, pa.array(values, field.type))
    found = sizes.of_limit(marked, WIDE, LIMIT)
    assert found.column("_faulty").to_pylist()[20:] == [b"\6", b"\2"]
    assert reported(found)[0].startswith("text: NaN; raw: its row has 1,001 bytes")
    assert reported(found)[1] == "text: NaN"


def test_a_fault_of_size_has_a_code_of_its_own() -> None:
    found = sizes.of_limit(rows({"id": 7, "raw": b"x" * 1001}), WIDE, LIMIT)
    code, facts = errors.unsupported(reported(found)[0])
    assert (code, facts["column"]) == (sizes.CODE, "raw")
    assert errors.unsupported("at: infinity has no place")[0] == "source:value-unsupported"


def changes_of_a_large_row(head: Any, body: Any, segment: int) -> Any:
    """A decoder."""
    big = table_of(
        [Change(Op.INSERT, (1, "p"), ("a" * 2000, "b")), Change(Op.INSERT, (2, "p"), ("a", "b"))]
    )
    yield DecodedTable(SCHEMA, "v", big, OpCounts(inserts=2))  # fmt: skip
    keyless = replace(SCHEMA, id=TableId("shop", "keyless"), key=())
    without = big.drop_columns(["_before"])
    yield DecodedTable(keyless, "v", without, OpCounts(inserts=2))


def test_decoding_writes_no_row_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runners.engine.decode.job.read_segment", lambda *_: ({}, b""))
    task = DecodeTask(1, "", 0, str(tmp_path / "1"), Limits(LIMIT))
    done = decode_segment(task, f"{__name__}:changes_of_a_large_row")
    (file,) = done["files"]
    assert file["faults"] == 1
    assert pq.read_table(file["path"]).column("a").to_pylist() == [None, "a"]
    (poison,) = done["poisons"]
    assert (poison["table"], poison["code"]) == (["shop", "keyless"], sizes.CODE)
    assert poison["facts"]["column"] == "a"


def test_a_copy_parks_a_row_that_is_too_large_or_stops() -> None:
    def read(chunk: Chunk, schema: TableSchema) -> Any:
        yield from rows({"id": 7, "text": "x" * 1001}).to_batches()

    chunk = Chunk(WIDE.id, 0, "")
    supported = SupportedRows(read, quarantines=True, limits=Limits(LIMIT))
    (batch,) = supported(chunk, WIDE)
    assert batch.num_rows == 20
    assert supported.held is not None
    with pytest.raises(ReplicationError) as caught:
        list(SupportedRows(read, quarantines=False, limits=Limits(LIMIT))(chunk, WIDE))
    assert caught.value.code == sizes.CODE


NO_NUL = Limits(is_without_nul=True)


def test_a_text_with_a_nul_character_is_left_out_where_the_target_has_none() -> None:
    """Guards what PostgreSQL can't hold: the text, or one in a list, is marked with its row; bytes,
    slices and other rows are as they were."""
    given = rows(
        {"id": 7, "text": "a\0b", "raw": b"\0"},
        {"id": 8, "text": None, "words": ["x", None, "\0"]},
        {"id": 9, "text": "z", "words": []},
    )
    found = NO_NUL.held(given, WIDE).slice(20)
    assert [r["id"] for r in found.to_pylist() if r["_faulty"]] == [7, 8]
    assert reported(found) == [f"text: {NUL_REASON}", f"words: {NUL_REASON}"]
    assert found.column("text").to_pylist() == [None, None, "z"]
    assert found.column("raw").to_pylist() == [b"\0", None, None]
    clean = given.slice(22)
    assert NO_NUL.held(clean, WIDE) is clean
    assert Limits().held(given, WIDE) is given


@pytest.mark.parametrize("key", [("text",), ()])
def test_a_nul_character_without_a_key_beside_it_stops_the_table(key: tuple[str, ...]) -> None:
    """Guards rows that can't be quarantined: nothing names them."""
    with pytest.raises(ReplicationError) as caught:
        NO_NUL.held(rows({"id": 7, "text": "a\0b"}), replace(WIDE, key=key))
    assert (caught.value.code, caught.value.facts["column"]) == ("source:value-unsupported", "text")
    assert errors.unsupported(f"text: {NUL_REASON}")[0] == "source:value-unsupported"


def test_a_nul_character_in_an_old_row_does_not_mark_the_new_one() -> None:
    """Guards a row that was corrected: only its key is needed of the old one, unless that is in
    it."""
    schema = replace(SCHEMA, full_before=True)
    change = table_of([Change(Op.UPDATE, (1, "x"), ("a", "b"))]).to_pylist()[0]
    old = {"id": 1, "part": "x", "a": "a\0", "b": "b"}
    changes = pa.Table.from_pylist([{**change, "_before": old}], change_schema(schema))
    found = NO_NUL.held(changes, schema)
    assert "_faulty" not in found.column_names
    assert found.column("_before")[0].as_py() == {**old, "a": None}
    bad = pa.Table.from_pylist([{**change, "_before": {**old, "part": "\0"}}], changes.schema)
    with pytest.raises(ReplicationError):
        NO_NUL.held(bad, schema)
