"""Raw segments into change tables: operations, images, relations, transactions."""

from __future__ import annotations

import datetime as dt
import json
import struct
from dataclasses import replace

import pyarrow as pa
import pytest

from replicators.connectors.log import DecodedTable, PassedOver, Poison
from replicators.connectors.model.changes import (
    Op,
    OpCounts,
    change_schema,
    faulty_schema,
    first_sequence,
)
from replicators.connectors.model.types import Array, Enum
from replicators.sources.postgresql.decode import decode
from replicators.sources.postgresql.types import NativeType
from tests.unit.sources.pgoutput_messages import (
    DATE,
    INT4,
    INT8,
    NUMERIC,
    TEXT,
    TIMESTAMPTZ,
    UNSENT,
    FakeTable,
    Sent,
    begin,
    body,
    commit,
    head,
    int4,
    int8,
    truncate,
)

ITEMS = FakeTable(
    7, "items", (Sent("id", INT4, is_key=True), Sent("name", TEXT), Sent("count", INT8))
)
NOTES = FakeTable(8, "notes", (Sent("id", INT4, is_key=True), Sent("text", TEXT)))
LOGGED = replace(ITEMS, oid=9, name="logged", identity="f")
SECOND = 1_000_000


def only(results) -> DecodedTable:
    (table,) = list(results)
    assert isinstance(table, DecodedTable), table
    assert table.changes.schema == change_schema(table.schema)
    table.changes.validate(full=True)
    assert table.counts.rows == table.changes.num_rows
    return table


def images(table: DecodedTable) -> list[tuple]:
    names = [c.name for c in table.schema.columns]
    return [tuple(r[n] for n in names) for r in table.changes.to_pylist()]


def test_every_operation_has_its_images():
    """Guards `decode` as a whole, each kind of message once: operation, images, sequence, position,
    commit time and counts."""
    segment = body(
        begin(500, 3 * SECOND, 77),
        ITEMS.insert(int4(1), b"one", int8(10)),
        ITEMS.insert(int4(2), None, None),
        ITEMS.update(int4(1), b"uno", int8(11)),
        ITEMS.update(int4(3), b"drei", int8(12), key=(int4(1), None, None)),
        ITEMS.delete(int4(2), None, None),
        truncate(ITEMS),
        commit(500, 3 * SECOND),
    )
    table = only(decode(head(ITEMS), segment, 3))
    assert images(table) == [
        (1, "one", 10), (2, None, None), (1, "uno", 11), (3, "drei", 12), (2, None, None),
        (None, None, None),
    ]  # fmt: skip
    changes = table.changes.to_pydict()
    assert changes["_op"] == [
        Op.INSERT, Op.INSERT, Op.UPDATE, Op.UPDATE, Op.DELETE, Op.TRUNCATE,
    ]  # fmt: skip
    assert changes["_before"] == [None, None, None, {"id": 1}, {"id": 2}, None]
    assert changes["_unchanged"] == [None] * 6
    assert changes["_sequence"] == [first_sequence(3) + i for i in range(6)]
    assert set(changes["_transaction"]) == {77}
    assert set(changes["_position"]) == {500}
    assert changes["_committed_at"][0] == dt.datetime(2000, 1, 1, 0, 0, 3, tzinfo=dt.UTC)
    assert table.counts == OpCounts(inserts=2, updates=2, deletes=1, truncates=1)


def test_an_unsent_column_is_marked_and_null():
    """Guards the mark of an unchanged TOAST value (CORRECTNESS 9): without it NULL would overwrite
    the value in the target."""
    segment = body(begin(), ITEMS.update(int4(1), UNSENT, int8(5)), commit())
    table = only(decode(head(ITEMS), segment, 1))
    assert images(table) == [(1, None, 5)]
    assert table.changes["_unchanged"].to_pylist() == [bytes([0b010])]


def test_the_bit_of_an_unsent_column_is_its_index_among_the_chosen_columns():
    """Guards `_unchanged` where columns are left out: counted by the message's columns, the bit
    would protect another column than the one that was not sent."""
    wide = FakeTable(
        7, "wide", tuple(Sent(f"c{i}", TEXT, is_key=i == 0) for i in range(12)),
        chosen=("c0", *(f"c{i}" for i in range(2, 12))),
    )  # fmt: skip
    values = [b"x"] * 12
    values[1] = values[11] = UNSENT
    segment = body(begin(), wide.update(*values), wide.insert(*[b"y"] * 12), commit())
    table = only(decode(head(wide), segment, 1))
    assert table.changes["_unchanged"].to_pylist() == [bytes([0, 0b100]), None]
    assert len(table.schema.columns) == 11


def test_with_full_identity_the_old_row_is_kept_and_fills_what_was_not_sent():
    """Guards the first step of CORRECTNESS 9: REPLICA IDENTITY FULL carries the old row, so nothing
    stays unsent though the new one lacked a value."""
    segment = body(
        begin(),
        LOGGED.update(int4(1), UNSENT, int8(5), old=(int4(1), b"long text", int8(4))),
        LOGGED.update(int4(2), b"x", int8(5), old=(int4(2), None, int8(4))),
        LOGGED.delete(int4(1), b"long text", int8(5), tag=b"O"),
        commit(),
    )
    schema = replace(LOGGED.schema, key=("id",))
    given = head(LOGGED)
    given["tables"] = [schema.to_json()]
    table = only(decode(given, segment, 1))
    assert images(table) == [(1, "long text", 5), (2, "x", 5), (1, None, None)]
    assert table.changes["_unchanged"].to_pylist() == [None, None, None]
    assert table.changes["_before"].to_pylist() == [
        {"id": 1, "name": "long text", "count": 4},
        {"id": 2, "name": None, "count": 4},
        {"id": 1, "name": "long text", "count": 5},
    ]


def test_a_key_that_comes_as_a_whole_row_fills_nothing_else() -> None:
    """A partition that is known by its key sends that as its root's whole row. Guards against NULL
    over a large value."""
    segment = body(
        begin(), LOGGED.update(int4(2), UNSENT, int8(5), old=(int4(1), None, None)), commit()
    )
    schema = replace(LOGGED.schema, key=("id",), full_before=False)
    table = only(decode({**head(LOGGED), "tables": [schema.to_json()]}, segment, 1))
    assert images(table) == [(2, None, 5)]
    assert table.changes["_unchanged"].to_pylist() == [bytes([0b010])]
    assert table.changes["_before"].to_pylist() == [{"id": 1}]


def test_an_unsent_key_is_filled_from_the_old_key():
    """Guards keys that were not sent since they are long and unchanged: left NULL, the row would be
    merged under no key."""
    table = FakeTable(7, "t", (Sent("k", TEXT, is_key=True), Sent("v", TEXT)))
    segment = body(begin(), table.update(UNSENT, b"v", key=(b"long key", None)), commit())
    assert images(only(decode(head(table), segment, 1))) == [("long key", "v")]


def test_row_numbers_count_the_rows_of_all_relations():
    """Guards CORRECTNESS 3: numbers that depend on the selection would change when a segment is
    decoded again; what is passed over is reported with its last position."""
    segment = body(
        begin(),
        ITEMS.insert(int4(1), b"a", int8(1)),
        NOTES.insert(int4(1), b"n"),
        LOGGED.insert(int4(1), b"skipped", int8(1)),
        truncate(NOTES, LOGGED, ITEMS),
        ITEMS.insert(int4(2), b"b", int8(2)),
        commit(),
    )
    reported = (ITEMS, NOTES, LOGGED)
    items, notes, passed = decode(head(ITEMS, NOTES, reported=reported), segment, 2)
    assert passed == PassedOver(LOGGED.oid, 2, 100)
    base = first_sequence(2)
    assert [s - base for s in items.changes["_sequence"].to_pylist()] == [0, 5, 6]
    assert [s - base for s in notes.changes["_sequence"].to_pylist()] == [1, 3]
    alone, *passed = decode(head(NOTES, reported=reported), segment, 2)
    assert alone.changes.equals(notes.changes)
    assert passed == [PassedOver(ITEMS.oid, 3, 100), PassedOver(LOGGED.oid, 2, 100)]


def test_rows_that_are_passed_over_are_reported_with_their_last_position():
    """Guards the look for holes: a row of a table that the segment does not name leaves none in any
    file."""
    segment = body(
        begin(100), LOGGED.insert(int4(1), b"a", int8(1)), commit(100),
        begin(300), LOGGED.insert(int4(2), b"b", int8(1)), commit(300),
        begin(400), NOTES.insert(int4(1), b"n"), commit(400),
    )  # fmt: skip
    reported = (ITEMS, NOTES, LOGGED)
    found = list(decode(head(ITEMS, reported=reported), segment, 2))
    assert found == [PassedOver(NOTES.oid, 1, 400), PassedOver(LOGGED.oid, 2, 300)]
    assert list(decode(head(ITEMS, reported=reported), body(begin(), commit()), 2)) == []


def test_a_new_relation_gives_a_table_of_another_version():
    """Guards CORRECTNESS 5: ALTER and INSERT in one transaction give a file for each schema; read
    by the first one, values would stand in other columns."""
    later = replace(ITEMS, columns=(*ITEMS.columns, Sent("extra", TEXT)))
    segment = body(
        begin(),
        ITEMS.insert(int4(1), b"a", int8(1)),
        later.relation(),
        later.insert(int4(2), b"b", int8(2), b"new"),
        replace(ITEMS, columns=ITEMS.columns[:2]).relation(),
        replace(ITEMS, columns=ITEMS.columns[:2]).insert(int4(3), b"c"),
        ITEMS.relation(),
        ITEMS.insert(int4(4), b"d", int8(4)),
        commit(),
    )
    first, second, third = decode(head(ITEMS), segment, 1)
    assert images(first) == [(1, "a", 1), (4, "d", 4)]
    assert images(second) == [(2, "b", 2)]
    assert images(third) == [(3, "c")]
    assert [c.name for c in third.schema.columns] == ["id", "name"]
    assert len({first.version, second.version, third.version}) == 3


def test_a_column_whose_type_changed_is_decoded_by_its_new_type():
    """Guards `relations._as_sent`: by the described type, eight bytes of a bigint would be read as
    an integer's four."""
    wider = replace(ITEMS, columns=(Sent("id", INT8, is_key=True), *ITEMS.columns[1:]))
    segment = body(begin(), wider.insert(int8(2**40), b"a", int8(1)), commit())
    table = only(decode(head(ITEMS, reported=(wider,)), segment, 1))
    assert images(table) == [(2**40, "a", 1)]
    assert table.changes.schema.field("id").type == pa.int64()


def test_values_that_an_enum_was_not_described_with_widen_its_type():
    """Guards `labels`: only so does a look into the catalog find out later that the value was
    renamed; and a table of another type is of another version, so that the copy follows it."""
    mood = NativeType(70_000, "mood", -1, "e", labels=("calm", "busy"))
    moods = NativeType(70_001, "_mood", -1, "b", element=mood)
    table = FakeTable(
        7,
        "moods",
        (
            Sent("id", INT4, is_key=True),
            Sent("now", 70_000, native=mood),
            Sent("all", 70_001, native=moods),
        ),
    )
    known = body(begin(), table.insert(int4(1), "calm", "{busy}"), commit())
    strange = body(
        begin(),
        table.insert(int4(1), "old", None),
        table.insert(int4(2), None, "{older,NULL,calm}"),
        commit(),
    )
    first = only(decode(head(table), known, 1))
    second = only(decode(head(table), strange, 2))
    assert first.schema.column("now").type == Enum(("calm", "busy"))
    assert second.schema.column("now").type == Enum(("calm", "busy", "old"))
    assert second.schema.column("all").type == Array(Enum(("calm", "busy", "older")))
    assert first.version != second.version
    assert second.version == only(decode(head(table), strange, 3)).version


def test_the_open_transaction_comes_from_the_head():
    """Guards `decode._open_transaction`: rows of a segment that begins within a transaction would
    have no position, and be left out as older than the table's copy."""
    segment = body(ITEMS.insert(int4(1), b"a", int8(1)), commit())
    table = only(decode(head(ITEMS, transaction=begin(41, 0, 12)), segment, 1))
    assert table.changes["_transaction"].to_pylist() == [12]
    assert table.changes["_position"].to_pylist() == [41]


def test_a_row_outside_of_a_transaction_is_damage():
    """Guards `kernels.index`: given to the transaction before it, the row would have a commit time
    and a position that are not its own."""
    segment = body(begin(), commit(), ITEMS.insert(int4(1), b"a", int8(1)))
    (poison,) = decode(head(ITEMS), segment, 4)
    assert isinstance(poison, Poison)
    assert (poison.code, poison.offset) == ("log:segment-corrupt", len(body(begin(), commit())))


def test_other_messages_are_passed_over():
    """Guards `kernels.scan` for Origin, Type and logical messages: taken for rows or for damage,
    they would stop every table."""
    segment = body(
        b"O" + bytes(8) + b"origin\0", begin(), b"Y\0\0\0\1a\0b\0", b"M\0" + bytes(12), commit()
    )
    assert list(decode(head(ITEMS), segment, 1)) == []
    assert list(decode(head(ITEMS), b"", 1)) == []


def test_a_bad_value_poisons_its_table_only():
    """Guards CORRECTNESS 2: a value that can't be read stops its own table, named with its place;
    the others' files are listed."""
    segment = body(
        begin(),
        ITEMS.insert(int4(1), b"a", int8(1)),
        NOTES.insert(int4(1), b"n"),
        ITEMS.insert(b"\0", b"a", int8(1)),
        commit(),
    )
    poison, notes = decode(head(ITEMS, NOTES), segment, 4)
    start = len(body(begin(), ITEMS.insert(int4(1), b"a", int8(1)), NOTES.insert(int4(1), b"n")))
    assert poison == Poison(
        ITEMS.schema.id, start, "log:segment-corrupt",
        {"table": "public.items", "segment": "4", "offset": str(start)},
    )  # fmt: skip
    assert images(notes) == [(1, "n")]


def test_text_that_is_not_utf8_names_column_and_row():
    """Guards `read_images_with_unsupported` (CORRECTNESS 30): the one bad value is marked with its
    reason, and the rows around it are decoded."""
    rows = [ITEMS.insert(int4(i), b"ok", int8(i)) for i in range(5)]
    bad = ITEMS.insert(int4(9), b"\xff\xfe", int8(9))
    (table,) = decode(head(ITEMS), body(begin(), *rows, bad, *rows), 1)
    assert table.changes.schema == faulty_schema(table.schema)
    assert table.changes["_faulty"].to_pylist() == [None] * 5 + [bytes([0b010])] + [None] * 5
    assert table.changes["_fault_reason"][5].as_py() == "name: the text is not valid UTF-8"
    assert images(table)[5] == (9, None, 9)


KEYLESS = FakeTable(7, "views", (Sent("at", INT8), Sent("page", TEXT)), identity="n")


def test_a_table_without_key_stops_at_a_value_that_does_not_fit():
    """Nothing could tell later which of its rows was left out."""
    bad = KEYLESS.insert(int8(1), b"\xff")
    (poison,) = decode(head(KEYLESS), body(begin(), bad), 1)
    assert (poison.code, poison.facts["column"]) == ("source:value-unsupported", "page")
    assert poison.offset == len(body(begin()))


def test_a_key_that_does_not_fit_stops_the_table():
    """Without its key nobody knows which row waits."""
    days = FakeTable(7, "days", (Sent("day", DATE, is_key=True), Sent("v", TEXT)))
    (poison,) = decode(head(days), body(begin(), days.insert(int4(2**31 - 1), b"v")), 1)
    assert (poison.code, poison.facts["column"]) == ("source:value-unsupported", "day")


TIMES = FakeTable(
    7, "times", (Sent("id", INT4, is_key=True), Sent("day", DATE), Sent("at", TIMESTAMPTZ),
    Sent("n", NUMERIC, (9 << 16) + 4))
)  # fmt: skip
INFINITE = 2**63 - 1
NAN = struct.pack(">HhHH", 0, 0, 0xC000, 0)


@pytest.mark.parametrize("rows", [1, 7, 3000])
def test_of_many_rows_those_that_do_not_fit_are_reported_with_every_column_that_does_not(rows):
    """Guards rule 30: one value that does not fit must cost neither its neighbours nor the row's
    other values."""
    days = [2**31 - 1 if i % 3 == 0 else i for i in range(rows)]
    ats = [INFINITE if i % 5 == 0 else i * SECOND for i in range(rows)]
    ends = [NAN if i % 1000 == 2 else None for i in range(rows)]
    sent = [
        TIMES.insert(int4(i), int4(day), int8(at), end)
        for i, (day, at, end) in enumerate(zip(days, ats, ends, strict=True))
    ]
    (table,) = decode(head(TIMES), body(begin(), *sent, commit()), 1)
    table.changes.validate(full=True)
    start = dt.date(2000, 1, 1)
    moment = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
    assert images(table) == [
        (
            i,
            None if i % 3 == 0 else start + dt.timedelta(i),
            None if i % 5 == 0 else moment + dt.timedelta(seconds=i),
            None,
        )
        for i in range(rows)
    ]
    bits = [(i % 3 == 0) << 1 | (i % 5 == 0) << 2 | (i % 1000 == 2) << 3 for i in range(rows)]
    assert table.changes["_faulty"].to_pylist() == [bytes([b]) if b else None for b in bits]
    assert table.changes["_fault_reason"][0].as_py() == (
        "day: infinity has no place in a date or timestamp; "
        "at: infinity has no place in a date or timestamp"
    )


def test_a_row_that_does_not_fit_keeps_its_unsent_columns_and_its_old_key():
    """Guards what quarantine needs of a marked row (CORRECTNESS 9 and 30): read the slow way, it
    must say the same of unsent columns and old keys."""
    segment = body(
        begin(),
        TIMES.update(int4(2), UNSENT, int8(INFINITE), None, key=(int4(1), None, None, None)),
        TIMES.delete(int4(5), None, None, None),
        commit(),
    )
    (table,) = decode(head(TIMES), segment, 1)
    assert table.changes["_unchanged"].to_pylist() == [bytes([0b010]), None]
    assert table.changes["_faulty"].to_pylist() == [bytes([0b100]), None]
    assert table.changes["_before"].to_pylist() == [{"id": 1}, {"id": 5}]


@pytest.mark.parametrize(
    ("reported", "code"),
    [
        (replace(ITEMS, oid=70), "source:table-replaced"),
        (replace(ITEMS, columns=ITEMS.columns[1:]), "source:key-changed"),
        (replace(ITEMS, columns=(*ITEMS.columns[:2], Sent("count", INT8, is_key=True))),
        "source:key-changed"),
    ],
)  # fmt: skip
def test_a_table_of_another_identity_is_not_decoded(reported, code):
    """Guards `relations._fault` (CORRECTNESS 10 and 21): rows of a table made anew under the same
    name, or under another key, would be merged into the old copy."""
    values = [int4(1), b"a", int8(1)][-len(reported.columns) :]
    (poison,) = decode(
        head(ITEMS, reported=(reported,)), body(begin(), reported.insert(*values)), 1
    )
    assert (poison.code, poison.table) == (code, ITEMS.schema.id)


def test_the_same_segment_gives_the_same_tables_and_versions():
    """Guards CORRECTNESS 3: decoded again after a crash, from a head that was JSON, a segment gives
    the same numbers, rows and versions."""
    segment = body(begin(), ITEMS.update(int4(1), UNSENT, int8(5)), commit())
    given = head(ITEMS)
    once = only(decode(given, segment, 1))
    again = only(decode(json.loads(json.dumps(given)), memoryview(segment), 1))
    assert once.version == again.version
    assert once.schema == again.schema
    assert once.changes.equals(again.changes)


def test_a_table_without_key_has_inserts_and_no_before_image():
    """Guards `change_schema` for tables without a key: there is no old key to tell, so `_before` is
    left out, and inserts and truncates stay."""
    views = KEYLESS
    segment = body(begin(), views.insert(int8(1), b"p"), truncate(views), commit())
    table = only(decode(head(views), segment, 1))
    assert "_before" not in table.changes.column_names
    assert images(table) == [(1, "p"), (None, None)]
