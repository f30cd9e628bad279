"""Rows with values that have no neutral form, told from the others."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicators.connectors.log import DecodedTable
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Date, Int, String
from replicators.sources.mysql.decode import decode
from replicators.sources.mysql.forms import NOT_TEXT, finish
from replicators.sources.mysql.unsupported import Place, fitting, read_with_unsupported
from replicators.sources.mysql.values import NO_DAY, TOO_LARGE, UNSUPPORTED, Images, ValueFault
from tests.unit.sources.binlog_events import TABLE_MAP, WRITE_ROWS, Fed, Log

TEXT = Column("v", String(), "varchar(20)", wire="text:utf8mb4")
DAY = Column("d", Date(), "date", wire="date_fail")
ID = Column("id", Int(32), "int", wire="int")
GOOD, BAD = b"gr\xc3\xbc\xc3\x9fe", b"\xff\xfe"


@settings(deadline=None)
@given(st.lists(st.sampled_from([GOOD, BAD, None]), min_size=1, max_size=40))
def test_texts_that_are_none_are_found_and_the_others_stay(values: list[bytes | None]) -> None:
    """Guards the halving: each such value is reported once, and no other is lost."""
    found, faults = fitting(pa.array(values, pa.binary()), TEXT, finish)
    assert found.to_pylist() == ["grüße" if v == GOOD else None for v in values]
    assert sorted(faults) == [(i, NOT_TEXT) for i, v in enumerate(values) if v == BAD]


class Read:
    """Stands for `read_images` of three rows: the first has a text that is none, the second a day
    that is none, the third a NULL."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, after: Any, before: Any, raw: frozenset[str] = frozenset()) -> Images:
        self.asked.append([c.wire for c, _ in after])
        arrays = [self._array(c, raw) for c, _ in after]
        old = pa.StructArray.from_arrays(
            [self._array(c, raw) for c, _ in before], [c.name for c, _ in before]
        )
        return Images(np.zeros(3, np.int8), np.zeros(3, np.int32), arrays, old)

    def _array(self, column: Column, raw: frozenset[str]) -> pa.Array:
        match column.wire:
            case "int":
                return pa.array([1, 2, 3], pa.int32())
            case "date_fail":
                raise ValueFault(1, column.name, "no such day", UNSUPPORTED)
            case "date_any":
                return pa.array([19000, None, None], pa.int32()).view(pa.date32())
            case "date_text":
                return pa.array(["2022-01-08", "0000-00-00", None])
            case _ if column.name in raw:
                return pa.array([BAD, GOOD, None], pa.binary())
            case _:
                raise ValueFault(-1, column.name, NOT_TEXT, UNSUPPORTED)


PLACES: list[Place] = [(ID, 0), (TEXT, 1), (DAY, 2)]


def test_a_row_is_marked_for_each_of_its_columns_and_a_null_is_no_unsupported_value() -> None:
    """Guards the telling of a day that does not exist from a NULL, that moments asked for as text
    do not stay in the rows, and that before images lose only what does not fit."""
    images, reported = read_with_unsupported(Read(), PLACES, PLACES, ["id"])
    assert [a.to_pylist() for a in images.after[:2]] == [[1, 2, 3], [None, "grüße", None]]
    assert len(images.after) == len(PLACES)
    assert images.after[2].null_count == 2
    assert reported.marks.to_pylist() == [b"\x02", b"\x04", None]
    assert images.before is not None
    assert images.before.field(0).to_pylist() == [1, 2, 3]
    assert images.before.field(1).to_pylist() == [None, "grüße", None]
    assert images.before.field(2).to_pylist() == images.after[2].to_pylist()
    assert images.before.field(2).null_count == 2


@pytest.mark.parametrize("key", [["v"], ["d"]])
def test_a_value_of_a_key_and_what_is_damaged_are_not_marked_but_raised(key: list[str]) -> None:
    """Guards `unsupported._without`: a key that became NULL could not be quarantined by its key
    (CORRECTNESS 30), and damage marked as an unsupported value would hide it."""
    with pytest.raises(ValueFault) as caught:
        read_with_unsupported(Read(), PLACES, PLACES, key)
    assert caught.value.column == key[0]
    assert not ValueFault(0, "v").is_of_row
    assert not ValueFault(0, "v", TOO_LARGE, UNSUPPORTED).is_of_row


def rows_with_days(*days: tuple[int, int, int] | None) -> pa.Table:
    """The changes of a table `t (id int PRIMARY KEY, d date)` with these days, as decoded with
    `zero_dates = null`."""
    fed, log = Fed("t"), Log()
    begin, head = log.begin(), (7).to_bytes(6, "little") + b"\1\0"
    schema = log.event(TABLE_MAP, head + b"\4shop\0\1t\0\2\3\x0a\0\2\4\5\2id\1d")
    rows = [
        bytes([2 * (day is None)])
        + n.to_bytes(4, "little")
        + (b"" if day is None else (day[0] << 9 | day[1] << 5 | day[2]).to_bytes(3, "little"))
        for n, day in enumerate(days)
    ]
    written = log.event(WRITE_ROWS, head + b"\2\xff" + b"".join(rows))
    (block,) = fed.feed([begin, schema, written, log.commit()])
    columns = (ID, Column("d", Date(), "date", wire="date"))
    table = TableSchema(TableId("shop", "t"), columns, ("id",)).to_json()
    body = np.frombuffer(bytearray(block.data), np.uint8)
    (found,) = decode({"context": block.context, "tables": [table]}, body, 1)
    assert isinstance(found, DecodedTable), found
    return found.changes


def test_only_days_without_month_or_day_become_null_in_silence() -> None:
    """Guards what the choice `null` promises: the like of 2021-02-31, and days of the year 0, which
    no target holds, are reported."""
    zero = [(0, 0, 0), (2024, 0, 7), (2024, 5, 0), (0, 0, 1)]
    rows = rows_with_days(*zero, (2024, 2, 29), None)
    assert "_faulty" not in rows.column_names
    assert rows["d"].to_pylist() == [None] * 4 + [dt.date(2024, 2, 29), None]
    rows = rows_with_days(*zero, (2021, 2, 31), (0, 1, 1), (2023, 2, 29), None, (1, 1, 1))
    assert rows["_faulty"].to_pylist() == [None] * 4 + [b"\x02"] * 3 + [None] * 2
    assert rows["d"].to_pylist() == [None] * 8 + [dt.date(1, 1, 1)]
    assert set(rows["_fault_reason"].drop_null().to_pylist()) == {"d: " + NO_DAY}
