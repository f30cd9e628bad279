"""Documents and ids: what rows become, without a server."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from replicators.connectors.contract.sink import Change, rows_of
from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Bytes, Decimal, Int, Json, String
from replicators.targets.elasticsearch.documents import beyond, cuts, documents
from replicators.targets.elasticsearch.naming import ids, name_fault

NOTES = TableSchema(
    TableId("s", "notes"),
    (Column("id", Int(64), "bigint", ordinal=1), Column("note", String(), "text", ordinal=2)),
    ("id",),
    ("id",),
)


def made(changes: list[Change]) -> Any:
    """The documents of changes."""
    (batch,) = rows_of(changes, NOTES).to_batches()
    return documents(beyond(batch, -1), NOTES, False)


def whole(changes: list[Change]) -> dict[str, tuple[int, str | None]]:
    """Id -> version and body."""
    writes = made(changes).whole
    bodies = zip(writes.version.tolist(), writes.body.to_pylist(), strict=True)
    return dict(zip(writes.id.to_pylist(), bodies, strict=True))


def test_only_the_last_version_of_a_document_is_sent() -> None:
    """Guards the folding of a piece: also a deletion, and a row that comes again after it."""
    changes = [
        Change(1, Op.INSERT, 1, "a"),
        Change(2, Op.UPDATE, 1, 'b "quoted"\n'),
        Change(3, Op.INSERT, 2, "c"),
        Change(4, Op.DELETE, 2),
        Change(5, Op.INSERT, 3, "d"),
        Change(6, Op.DELETE, 3),
        Change(7, Op.INSERT, 3, None),
    ]
    found = whole(changes)
    assert found["1"][0] == 2 and json.loads(found["1"][1] or "") == {
        "id": 1,
        "note": 'b "quoted"\n',
    }
    assert found["2"] == (4, None)
    assert found["3"] == (7, '{"id":3,"note":null}')


def test_a_changed_key_deletes_the_old_document() -> None:
    """Guards keys that change, also where another row takes the old key afterwards."""
    found = whole(
        [
            Change(1, Op.UPDATE, 2, "a", old_id=1),
            Change(2, Op.INSERT, 1, "b"),
            Change(3, Op.UPDATE, 4, "c", old_id=3),
        ]
    )
    assert {i: v[0] for i, v in found.items()} == {"2": 1, "1": 2, "4": 3, "3": 3}
    assert found["3"][1] is None and json.loads(found["1"][1] or "")["note"] == "b"


def test_an_unsent_value_comes_from_the_version_before_it_or_is_named() -> None:
    """Guards values that the source did not send: fails where they become NULL."""
    found = made(
        [
            Change(1, Op.INSERT, 1, "kept"),
            Change(2, Op.UPDATE, 1, unsent=True),
            Change(3, Op.UPDATE, 2, unsent=True),
            Change(4, Op.DELETE, 3),
        ]
    )
    writes = dict(zip(found.whole.id.to_pylist(), found.whole.body.to_pylist(), strict=True))
    assert writes == {"1": '{"id":1,"note":"kept"}', "3": None}
    assert found.whole.version.tolist() == [2, 4]
    assert found.partial.writes.body.to_pylist() == ['{"id":2}']
    assert found.partial.lacks == (("note",),) and found.partial.origin.to_pylist() == ["2"]


def test_a_moved_row_with_unsent_values_is_alone_and_its_old_document_goes_last() -> None:
    """Guards the order of a change of the key that lacks values."""
    changes = [
        Change(1, Op.INSERT, 1, "a"),
        Change(2, Op.UPDATE, 2, unsent=True, old_id=1),
        Change(3, Op.UPDATE, 2, unsent=True),
    ]
    (batch,) = rows_of(changes, NOTES).to_batches()
    parts = cuts(batch, NOTES)
    assert [p.num_rows for p in parts] == [1, 1, 1]
    found = documents(parts[1], NOTES, False)
    assert len(found.whole) == 0
    assert found.partial.origin.to_pylist() == ["1"]
    assert found.moved.id.to_pylist() == ["1"] and found.moved.version.tolist() == [2]


def test_rows_before_a_truncate_count_no_more() -> None:
    """Guards `beyond`."""
    changes = [
        Change(1, Op.INSERT, 1, "a"),
        Change(2, Op.TRUNCATE, 0),
        Change(3, Op.INSERT, 2, "b"),
    ]
    (batch,) = rows_of(changes, NOTES).to_batches()
    assert beyond(batch, 2).column("_sequence").to_pylist() == [3]
    assert beyond(batch, -1).column("_sequence").to_pylist() == [1, 3]


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (Int(32), [7, -1], ["7", "-1"]),
        (String(), ['a"b', '"', "sha"], ['a"b', '"', "sha"]),
        (Decimal(10, 2), ["1.50"], ["1.50"]),
        (Bytes(), [b"\x00\xff"], ["AP8="]),
    ],
    ids=["integers", "texts", "decimals", "bytes"],
)
def test_an_id_is_the_text_of_the_key(kind: Any, values: list[Any], expected: list[str]) -> None:
    """Guards ids of one column."""
    from decimal import Decimal as Number

    from replicators.connectors.model.types import arrow_type

    schema = TableSchema(TableId("s", "t"), (Column("k", kind, "x"),), ("k",), ("k",))
    raw = [Number(v) for v in values] if isinstance(kind, Decimal) else values
    assert ids([pa.array(raw, arrow_type(kind))], schema).to_pylist() == expected


def test_ids_of_several_columns_and_odd_ids_do_not_collide() -> None:
    """Guards composite keys, empty and long keys, and keys that look like a hash."""
    columns = (Column("a", String(), "text"), Column("b", String(), "text"))
    two = TableSchema(TableId("s", "t"), columns, ("a", "b"), ("a", "b"))
    pairs = [("a", "b,c"), ("a,b", "c"), ('a","b', "c"), ("", ""), ("é" * 300, "")]
    made = ids([pa.array([p[0] for p in pairs]), pa.array([p[1] for p in pairs])], two)
    found = made.to_pylist()
    assert len(set(found)) == len(pairs)
    assert found[0] == '["a","b,c"]' and found[4].startswith("sha256:")
    one = TableSchema(TableId("s", "t"), columns[:1], ("a",), ("a",))
    long = "x" * 513
    first = ids([pa.array([long, "", "x" * 512])], one).to_pylist()
    second = ids([pa.array([first[0], long])], one).to_pylist()
    assert all(i and len(i.encode()) <= 512 for i in [*first, *second])
    assert second[0] != first[0] and second[1] == first[0] and first[2] == "x" * 512


def test_documents_of_json_are_text_or_objects() -> None:
    """Guards the choice of the target's settings."""
    columns = (Column("id", Int(64), "bigint"), Column("doc", Json(), "jsonb"))
    schema = TableSchema(TableId("s", "t"), columns, ("id",), ("id",))
    plain = pa.Table.from_pylist(
        [{"_sequence": 1, "_op": 0, "_committed_at": 0, "_transaction": 1, "_position": 1,
          "id": 1, "doc": '{"a": 1.50}'}],
        schema=pa.schema([*rows_of([], NOTES).schema][:6]).append(pa.field("id", pa.int64()))
        .append(pa.field("doc", pa.string())),
    )  # fmt: skip
    (batch,) = plain.to_batches()
    assert documents(batch, schema, True).whole.body.to_pylist() == ['{"id":1,"doc":{"a": 1.50}}']
    text = documents(batch, schema, False).whole.body[0].as_py()
    assert json.loads(text)["doc"] == '{"a": 1.50}'


@pytest.mark.parametrize(
    "name", ["", "Upper", "a b", "a/b", "_a", "-a", ".a", "a#b", "x" * 201, "a,b"]
)
def test_names_that_no_index_can_have(name: str) -> None:
    """Guards the check of names."""
    assert name_fault(name)
    assert not name_fault("vehicles-2")
