"""Rows of a prepared statement, from bytes made here: whatever the pieces they come in, and damaged
ones are refused."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pymysql
import pytest
from pymysql.constants import FIELD_TYPE, FLAG

from replicators.sources.mysql import kernels as k
from replicators.sources.mysql import results
from replicators.sources.mysql.results import ResultRows

COLUMNS = (
    (FIELD_TYPE.LONGLONG, 0),
    (FIELD_TYPE.TINY, FLAG.UNSIGNED),
    (FIELD_TYPE.DOUBLE, 0),
    (FIELD_TYPE.VAR_STRING, 0),
    (FIELD_TYPE.DATETIME, 0),
    (FIELD_TYPE.DATE, 0),
)
ENDED = b"\xfe\0\0\x02\0"
MOMENT = datetime.datetime(2026, 2, 28, 23, 59, 58, 700001)


def packet(payload: bytes) -> bytes:
    """With its head; of 16 MiB and more in several packets."""
    most = results.MAX_PACKET
    parts = [payload[n : n + most] for n in range(0, len(payload) + 1, most)]
    return b"".join(len(p).to_bytes(3, "little") + b"\0" + p for p in parts)


def long(text: bytes) -> bytes:
    """With its length before it."""
    size = len(text)
    head = (
        bytes([size])
        if size < 251
        else (
            b"\xfd" + size.to_bytes(3, "little")
            if size < 1 << 24
            else b"\xfe" + struct.pack("<Q", size)
        )
    )
    return head + text


def moment(value: datetime.datetime | None) -> bytes:
    """A DATETIME; None: zeros."""
    if value is None:
        return b"\0"
    return b"\x0b" + struct.pack(
        "<HBBBBBI",
        value.year,
        value.month,
        value.day,
        value.hour,
        value.minute,
        value.second,
        value.microsecond,
    )


def row(values: Sequence[bytes | None]) -> bytes:
    """A row of values that are spelled already; None: NULL."""
    bits = sum(1 << (n + 2) for n, v in enumerate(values) if v is None)
    nulls = bits.to_bytes((len(values) + 9) // 8, "little")
    return b"\0" + nulls + b"".join(v for v in values if v is not None)


def rows_of(count: int) -> list[bytes]:
    """Rows whose values say which they are."""
    day = b"\x04" + struct.pack("<HBB", 2024, 2, 29)
    return [
        row(
            [
                struct.pack("<q", -n),
                bytes([n % 256]),
                struct.pack("<d", n / 2),
                None if n % 3 == 0 else long(b"x" * n),
                moment(MOMENT),
                day,
            ]
        )
        for n in range(count)
    ]


class Server:
    """What `ResultRows` asks of a connection: the answers before the rows, and the rows' bytes in
    pieces."""

    def __init__(self, data: bytes, piece: int) -> None:
        self._data, self._piece, self._at = data, piece, 0
        head = [
            SimpleNamespace(
                get_all_data=lambda: struct.pack("<BIHHBH", 0, 7, len(COLUMNS), 0, 0, 0)
            )
        ]
        columns: list[Any] = [SimpleNamespace(type_code=t, flags=f) for t, f in COLUMNS]
        count = SimpleNamespace(read_length_encoded_integer=lambda: len(COLUMNS))
        self._answers = [*head, *columns, None, count, *columns, None]
        self._rfile = self

    def _execute_command(self, command: int, text: Any) -> None:
        pass

    def _read_packet(self, kind: Any = None) -> Any:
        return self._answers.pop(0)

    def read1(self, most: int) -> bytes:
        """The next piece; nothing at the end."""
        part = self._data[self._at : self._at + min(self._piece, most)]
        self._at += len(part)
        return part


def read(payloads: Sequence[bytes], piece: int = 1 << 20) -> pa.Table:
    """All blocks as a table."""
    data = b"".join(packet(p) for p in payloads)
    connection: Any = Server(data, piece)
    blocks = list(ResultRows(connection, "SELECT"))
    names = [str(n) for n in range(len(COLUMNS))]
    return pa.concat_tables([pa.table(b.arrays, names) for b in blocks])


@pytest.mark.parametrize("piece", [1, 7, 16384, 1 << 20])
def test_rows_are_the_same_whatever_pieces_they_come_in(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the noting of rows over several reads: places lie in one buffer until they are handed
    out."""
    monkeypatch.setattr(results, "ROWS", 37)
    found = read([*rows_of(100), ENDED], piece)
    assert found.column("0").to_pylist() == [-n for n in range(100)]
    assert found.column("1").to_pylist() == list(range(100))
    assert found.column("2").to_pylist() == [n / 2 for n in range(100)]
    assert found.column("3").to_pylist() == [None if n % 3 == 0 else b"x" * n for n in range(100)]
    assert set(found.column("4").to_pylist()) == {MOMENT}
    assert set(found.column("5").to_pylist()) == {datetime.date(2024, 2, 29)}


def test_a_buffer_that_is_full_is_handed_out_and_one_row_may_be_larger_than_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards the growth of the buffer, and the hand-out before all rows of a block are there."""
    monkeypatch.setattr(results, "INPUT_BYTES", 256)
    found = read([*rows_of(90), *rows_of(600)[590:], ENDED], 100)
    assert found.column("0").to_pylist() == [-n for n in (*range(90), *range(590, 600))]
    assert found.column("3").to_pylist()[-1] == b"x" * 599


def test_a_row_of_several_packets_is_joined() -> None:
    """Guards the joining: the server cuts what is larger than 16 MiB."""
    large = b"y" * (results.MAX_PACKET + 5)
    big = row(
        [struct.pack("<q", 5), b"\x01", struct.pack("<d", 1.5), long(large), moment(None), None]
    )
    found = read([*rows_of(3), big, *rows_of(2), ENDED])
    assert found.column("0").to_pylist() == [0, -1, -2, 5, 0, -1]
    assert found.column("3").to_pylist()[3] == large
    assert found.column("5").to_pylist()[3] is None


def test_days_that_the_calendar_does_not_have_are_reported() -> None:
    """Guards what a policy for zero dates goes by: they are NULL, beside NULLs that are none, and a
    day that is merely wrong is told from one that is zero."""
    odd = b"\x04" + struct.pack("<HBB", 2023, 2, 29)
    values = [struct.pack("<q", 1), b"\x01", struct.pack("<d", 1.5), None, moment(None), odd]
    null = [*values[:4], None, None]
    connection: Any = Server(b"".join(map(packet, [row(values), row(null), ENDED])), 64)
    (block,) = ResultRows(connection, "SELECT")
    assert [days if days is None else days.tolist() for days in block.no_days] == [
        *[None] * 4, [k.ZERO_DATE, 0], [k.NO_DATE, 0],
    ]  # fmt: skip
    assert block.arrays[4].null_count == block.arrays[5].null_count == 2


@pytest.mark.parametrize("cut", [1, 3, 12])
def test_a_damaged_row_is_refused(cut: int) -> None:
    """Guards the checks of each value's length against the row's end."""
    whole = rows_of(20)[-1]
    with pytest.raises(pymysql.err.OperationalError, match="Malformed"):
        read([whole, whole[:-cut], ENDED])


def test_an_error_among_the_rows_is_raised_and_an_early_end_too() -> None:
    """Guards against a copy that is shorter than its table: only the server's own end ends it."""
    error = b"\xff" + struct.pack("<H", 1317) + b"#70100Query execution was interrupted"
    with pytest.raises(pymysql.err.Error, match="interrupted"):
        read([*rows_of(5), error])
    with pytest.raises(pymysql.err.OperationalError, match="Lost connection"):
        read(rows_of(5))
