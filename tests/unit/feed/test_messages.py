"""A change becomes the message that docs/feeds.md shows."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal as D
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicators.connectors.feed.messages import Encoder, encoder, resolved_value
from replicators.connectors.feed.options import (
    ENVELOPES,
    RECORDS,
    FeedOptions,
    InvalidOptions,
    Origin,
)
from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Array, Decimal, Int, Json, String
from tests.feeds import Change, Told, batch, expected

ORIGIN = Origin("postgresql", "shop", "d")


def table(*, full: bool, key: tuple[str, ...] = ("id", "part")) -> TableSchema:
    """A table of five columns, its key of two of them."""
    columns = (
        Column("id", Int(64), "int8"),
        Column("part", String(), "text"),
        Column("name", String(), "text"),
        Column("notes", String(), "text"),
        Column("size", Int(32), "int4"),
    )
    return TableSchema(TableId("s", "t"), columns, key, key, full_before=full)


def told(made: Encoder, changes: list[Change]) -> list[Told]:
    """The encoder's messages, read by Python's JSON."""
    found = []
    for row in made.encode(batch(made.schema, changes)).to_pylist():
        value = row["value"]
        found.append(
            Told(
                Op(row["_op"]),
                None if row["key"] is None else json.loads(row["key"]),
                value if not value else json.loads(value),
                row["_sequence"],
                row["_part"],
            )
        )
    return found


def valid_options() -> list[FeedOptions]:
    """Every envelope with every record that goes with it."""
    found = []
    for envelope in ENVELOPES:
        for record in RECORDS:
            try:
                found.append(FeedOptions(envelope, record))
            except InvalidOptions:
                assert envelope == "key_only"
    return found


NAMES = st.sampled_from([None, "", "a", 'q"\\', "\u2028\x00\n", "\U0001f600"])
ROWS = st.fixed_dictionaries(
    {
        "id": st.integers(1, 3),
        "part": st.sampled_from(["x", 'y"']),
        "name": NAMES,
        "notes": NAMES,
        "size": st.sampled_from([None, 0, -5]),
    }
)


@st.composite
def histories(draw: st.DrawFn, *, full: bool) -> list[Change]:
    """Changes that a source with or without whole old rows can report."""
    made = []
    transaction = 1
    for _ in range(draw(st.integers(0, 8))):
        transaction += draw(st.integers(0, 1))
        op = draw(st.sampled_from(list(Op)))
        row, old = draw(ROWS), draw(ROWS)
        before: dict[str, Any] | None = None
        unsent: tuple[str, ...] = ()
        key = {n: old[n] for n in ("id", "part")}
        if op == Op.UPDATE:
            before = draw(st.sampled_from([None, old if full else key]))
            unsent = draw(st.sampled_from([(), ("name",), ("name", "notes")]))
            row |= dict.fromkeys(unsent)
        if op == Op.DELETE:
            before = draw(st.sampled_from([None, old if full else key]))
            row = {n: row[n] for n in ("id", "part")}
        if op == Op.TRUNCATE:
            row = {}
        alone = int(op == Op.READ)  # the first copy's rows are of no transaction of the log
        made.append(Change(op, row, before, unsent, transaction + alone))
        transaction += 2 * alone
    return made


@pytest.mark.parametrize("full", [False, True], ids=["old-keys", "old-rows"])
@pytest.mark.parametrize("options", valid_options(), ids=lambda o: f"{o.envelope}-{o.record}")
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_history_gives_the_messages_that_are_written_down(
    full: bool, options: FeedOptions, data: st.DataObject
) -> None:
    """Guards every envelope and record against a second writing of the rules, row by row."""
    whole = data.draw(
        st.builds(
            FeedOptions,
            envelope=st.just(options.envelope),
            record=st.just(options.record),
            tombstones=st.booleans(),
            last_only=st.booleans(),
            updated=st.booleans(),
            truncates=st.just("skip") if options.envelope == "key_only"
            else st.sampled_from(["skip", "message"]),
        )
    )  # fmt: skip
    schema = table(full=full)
    changes = data.draw(histories(full=full))
    made: Encoder = pickle.loads(pickle.dumps(encoder(schema, whole, ORIGIN)))
    found = told(made, changes)
    assert found == expected(schema, whole, changes)
    order = [(t.sequence, t.part) for t in found]
    assert order == sorted(set(order))


def _golden(options: FeedOptions, changes: list[Change], *, full: bool = True) -> list[Any]:
    made = encoder(table(full=full), options, ORIGIN).encode(batch(table(full=full), changes))
    return [
        (r["key"] and r["key"].decode(), r["value"] if not r["value"] else r["value"].decode())
        for r in made.to_pylist()
    ]


OLD = {"id": 1, "part": "x", "name": "Ann", "notes": "long", "size": 5}
NEW = {"id": 1, "part": "x", "name": "Ann", "notes": None, "size": 6}
GONE = Change(Op.DELETE, {"id": 1, "part": "x"}, OLD, (), 3)
UPDATED = Change(Op.UPDATE, NEW, OLD, ("notes",), 2)


def test_the_bytes_of_the_plain_envelope() -> None:
    """Guards the key as a JSON array, the new row, and no value for a deletion."""
    assert _golden(FeedOptions(), [UPDATED, GONE]) == [
        ('[1,"x"]', '{"id":1,"part":"x","name":"Ann","notes":"long","size":6}'),
        ('[1,"x"]', None),
    ]


def test_the_bytes_of_changed_values_only() -> None:
    """Guards CHANGE: the key and what differs from the old row; without one, all that was sent."""
    options = FeedOptions(record="CHANGE")
    assert _golden(options, [UPDATED]) == [('[1,"x"]', '{"id":1,"part":"x","size":6}')]
    change = Change(Op.UPDATE, NEW, None, ("notes",), 2)
    assert _golden(options, [change], full=False) == [
        ('[1,"x"]', '{"id":1,"part":"x","name":"Ann","size":6}'),
    ]


def test_an_unsent_value_is_named_and_is_no_null() -> None:
    """Guards `_unsent`."""
    change = Change(Op.UPDATE, NEW, None, ("notes",), 2)
    assert _golden(FeedOptions(), [change], full=False) == [
        ('[1,"x"]', '{"id":1,"part":"x","name":"Ann","size":6,"_unsent":["notes"]}'),
    ]


def test_the_bytes_of_old_and_new_rows() -> None:
    """Guards diff, ALL as its other name, and tombstones."""
    value = (
        '{"after":{"id":1,"part":"x","name":"Ann","notes":"long","size":6},'
        '"before":{"id":1,"part":"x","name":"Ann","notes":"long","size":5}}'
    )
    gone = '{"after":null,"before":{"id":1,"part":"x","name":"Ann","notes":"long","size":5}}'
    for options in (FeedOptions("diff"), FeedOptions(record="ALL")):
        assert _golden(options, [UPDATED, GONE]) == [
            ('[1,"x"]', value),
            ('[1,"x"]', gone),
            ('[1,"x"]', None),
        ]


def test_the_bytes_of_keys_only() -> None:
    """Guards key_only: a row that exists has an empty value, so compaction keeps its key."""
    assert _golden(FeedOptions("key_only"), [UPDATED, GONE]) == [
        ('[1,"x"]', b""),
        ('[1,"x"]', None),
    ]


def test_a_commit_time_before_a_resolved_one_counts_as_that() -> None:
    """Guards the promise of a resolved time where a source's clock was set back."""
    made = encoder(table(full=True), FeedOptions(updated=True))
    found = made.encode(batch(made.schema, [UPDATED]), resolved_at=1_900_000_000.5).to_pylist()
    assert found[0]["_committed_at"].timestamp() == 1_900_000_000.5
    assert json.loads(found[0]["value"])["_updated"] == "2030-03-17T17:46:40.500000Z"
    assert resolved_value(1_900_000_000.5) == b'{"resolved": "2030-03-17T17:46:40.500000Z"}'


def test_a_large_batch_is_written_in_parts_with_the_same_messages() -> None:
    """Guards the slices: a part of an array has an offset."""
    schema = table(full=False)
    changes = [Change(Op.INSERT, {**NEW, "id": i, "notes": "n" * (i % 7)}) for i in range(70_000)]
    made = encoder(schema, FeedOptions())
    parts = list(made.encode_slices(batch(schema, changes)))
    assert len(parts) > 1
    rows = [json.loads(v) for p in parts for v in p.column("value").to_pylist()]
    assert rows == [c.row for c in changes]


def test_options_that_contradict_each_other_are_refused() -> None:
    """Guards the words and the pairs."""
    with pytest.raises(InvalidOptions) as found:
        FeedOptions("row", "SOME", "xml", truncates="stop", decimals="float")
    assert set(found.value.faults) == {"envelope", "record", "format", "truncates", "decimals"}
    with pytest.raises(InvalidOptions) as found:
        FeedOptions("key_only", "ALL", truncates="message")
    assert set(found.value.faults) == {"record", "truncates"}


def test_a_table_without_a_key_has_no_key_in_its_messages() -> None:
    """Guards keyless tables: no key, no tombstone, every change a message."""
    schema = table(full=True, key=())
    options = FeedOptions("diff", last_only=True)
    changes = [Change(Op.INSERT, OLD), Change(Op.INSERT, OLD), Change(Op.DELETE, {}, OLD)]
    assert told(encoder(schema, options), changes) == expected(schema, options, changes)
    assert len(told(encoder(schema, options), changes)) == 3


def test_the_examples_of_the_page_are_what_is_written() -> None:
    """Guards docs/feeds.md."""
    columns = (
        Column("id", Int(64), "int8"),
        Column("name", String(), "text"),
        Column("price", Decimal(10, 2), "numeric(10,2)"),
        Column("tags", Json(), "jsonb"),
    )
    old = {"id": 1, "name": "pen", "price": D("2.50"), "tags": '[\n"new"]'}
    new = {**old, "price": D("2.75")}
    changed = Change(Op.UPDATE, new, old)
    lacking = Change(Op.UPDATE, {**new, "tags": None}, None, ("tags",))
    page = (Path(__file__).parents[3] / "docs" / "feeds.md").read_text()
    for options, change in (
        (FeedOptions(), changed),
        (FeedOptions(record="CHANGE"), changed),
        (FeedOptions(), lacking),
        (FeedOptions(truncates="message"), Change(Op.TRUNCATE, {})),
    ):
        schema = TableSchema(
            TableId("public", "items"), columns, ("id",), ("id",), full_before=bool(change.before)
        )
        made = encoder(schema, options, ORIGIN).encode(batch(schema, [change]))
        text = made.column("value")[0].as_py().decode().replace('[ "new"]', '["new"]')
        assert f"`{text}`" in page


def test_exact_numbers_are_numbers_where_that_is_wanted() -> None:
    """Guards `decimals`, also of numbers that are carried as text."""
    columns = (
        Column("a", Decimal(38, 10), "numeric(38,10)"),
        Column("b", String(), "numeric"),
        Column("c", Array(Decimal(5, 1)), "numeric(5,1)[]"),
    )
    schema = TableSchema(TableId("s", "t"), columns)
    row = {"a": D("0.0000000001"), "b": "123456789.123456789123456789", "c": [D("0.5"), None]}
    rows = batch(schema, [Change(Op.INSERT, row), Change(Op.INSERT, {**row, "b": "NaN"})])
    found = encoder(schema, FeedOptions(decimals="number")).encode(rows).column("value")
    assert found[0].as_py() == b'{"a":0.0000000001,"b":123456789.123456789123456789,"c":[0.5,null]}'
    assert json.loads(found[1].as_py())["b"] == "NaN"
    found = encoder(schema, FeedOptions()).encode(rows).column("value")
    assert found[0].as_py() == (
        b'{"a":"0.0000000001","b":"123456789.123456789123456789","c":["0.5",null]}'
    )
