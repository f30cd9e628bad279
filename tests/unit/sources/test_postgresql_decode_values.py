"""Any value of a type, in both forms, comes out as it went in."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicators.connectors.log import DecodedTable
from replicators.sources.postgresql import kernels as k
from replicators.sources.postgresql.decode import decode
from tests.unit.sources.pgoutput_messages import FakeTable, Sent, begin, body, head, int4, int8

EPOCH = dt.datetime(2000, 1, 1)
MICROSECOND = dt.timedelta(microseconds=1)
SCALE = 9
COLUMNS = (
    Sent("id", is_key=True),
    Sent("decimal", 1700, (38 << 16 | SCALE) + 4),
    Sent("number", 1700),
    Sent("at", 1114),
    Sent("day", 1082),
    Sent("uid", 2950),
    Sent("float", 701),
    Sent("words", 1009),
)
TABLE = FakeTable(7, "values", COLUMNS)


def numeric(value: Decimal, scale: int) -> bytes:
    """numeric_send's form."""
    digits = int("".join(map(str, value.as_tuple().digits)))
    whole, part = divmod(digits, 10**scale)
    width = -(-scale // 4) * 4
    fraction = str(part).rjust(scale, "0").ljust(width, "0") if scale else ""
    text = str(whole).rjust(-(-len(str(whole)) // 4) * 4, "0") + fraction
    groups = [int(text[i : i + 4]) for i in range(0, len(text), 4)]
    weight = len(groups) - width // 4 - 1
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    if not groups:
        weight = 0
    sign = 0x4000 if value < 0 else 0
    return struct.pack(f">HhHH{len(groups)}H", len(groups), weight, sign, scale, *groups)


def array(words: list[str | None]) -> bytes:
    """array_send's form."""
    if not words:
        return struct.pack(">iii", 0, 0, 25)
    items = [
        b"\xff\xff\xff\xff" if w is None else struct.pack(">i", len(w.encode())) + w.encode()
        for w in words
    ]
    return struct.pack(">iiiii", 1, None in words, 25, len(words), 1) + b"".join(items)


def array_text(words: list[str | None]) -> str:
    """array_out's form, every item quoted."""
    quoted = (
        "NULL" if w is None else '"' + w.replace("\\", "\\\\").replace('"', '\\"') + '"'
        for w in words
    )
    return "{" + ",".join(quoted) + "}"


DECIMALS = st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-(10**12), 10**12)
WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5)
ROWS = st.lists(
    st.tuples(
        st.none() | DECIMALS.map(lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -SCALE))),
        st.tuples(st.integers(-(10**30), 10**30), st.integers(0, 30)).map(
            lambda p: Decimal((p[0] < 0, tuple(map(int, str(abs(p[0])))), -p[1]))
        ),
        st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
        st.none() | st.dates(),
        st.uuids(),
        st.floats(allow_nan=False),
        st.none() | st.lists(st.none() | WORDS, max_size=4),
    ),
    max_size=12,
)


def spelled(number: Decimal) -> str:
    text = f"{number:f}"
    return text[1:] if text.startswith("-") and not number else text


def binary(row: tuple) -> tuple:
    decimal, number, at, day, uid, real, words = row
    return (
        decimal if decimal is None else numeric(decimal, SCALE),
        numeric(number, -number.as_tuple().exponent),
        int8((at - EPOCH) // MICROSECOND),
        day if day is None else int4((day - EPOCH.date()).days),
        uid.bytes,
        struct.pack(">d", real),
        words if words is None else array(words),
    )


def text(row: tuple) -> tuple:
    decimal, number, at, day, uid, real, words = row
    return (
        decimal if decimal is None else spelled(decimal),
        spelled(number),
        at.isoformat(" "),
        day if day is None else day.isoformat(),
        str(uid),
        {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(real, repr(real)),
        words if words is None else array_text(words),
    )


def expected(row: tuple) -> tuple:
    decimal, number, at, day, uid, real, words = row
    return decimal, spelled(number), at, day, str(uuid.UUID(bytes=uid.bytes)), real, words


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_random_rows_come_out_as_they_went_in(rows):
    """Guards the readers of `numeric`, times, uuid, floats and arrays in both forms (CORRECTNESS
    22): one that is off by a digit group or an epoch gives wrong values that no later step can
    see."""
    for form in (binary, text):
        segment = body(begin(), *(TABLE.insert(int4(i), *form(row)) for i, row in enumerate(rows)))
        results = list(decode(head(TABLE), segment, 1))
        assert len(results) == bool(rows)
        for result in results:
            assert isinstance(result, DecodedTable), result
            names = [c.name for c in COLUMNS[1:]]
            assert [tuple(r[n] for n in names) for r in result.changes.to_pylist()] == [
                expected(row) for row in rows
            ]


@pytest.mark.parametrize("text", ["0001-02-29 BC", "0001-02-29 12:00:00 BC", "0044-03-15 BC"])
def test_a_day_before_our_era_is_out_of_range_and_no_damage(text: str) -> None:
    """Guards the calendar of years BC, in which 1 BC is a leap year: damage stops the table, a
    value that has no place quarantines its row."""
    data = np.frombuffer(text.encode(), np.uint8)
    assert k.parse_date(data, 0, len(data))[0] == k.YEAR
