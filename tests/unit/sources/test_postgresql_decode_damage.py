"""Damaged segments: cut and flipped bytes never crash the decoder and never read past a message."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicators.connectors.log import DecodedTable, Poison
from replicators.sources.postgresql.decode import decode
from tests.unit.sources.pgoutput_messages import (
    BOOL,
    INT4,
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

NUMBER = b"\0\2\0\0\0\0\0\2\0\x0c\x13\x88"
MIXED = FakeTable(
    7,
    "mixed",
    (
        Sent("id", INT4, is_key=True),
        Sent("text", TEXT),
        Sent("amount", NUMERIC, (12 << 16 | 2) + 4),
        Sent("free", NUMERIC),
        Sent("at", TIMESTAMPTZ),
        Sent("ok", BOOL),
        Sent("list", 1007),
        Sent("words", 1009),
        Sent("doc", 3802),
        Sent("uid", 2950),
        Sent("data", 17),
    ),
)
LIST = b"\0\0\0\1\0\0\0\0\0\0\0\x17\0\0\0\2\0\0\0\1\0\0\0\4\0\0\0\7\xff\xff\xff\xff"
BINARY = (int4(1), b"one", NUMBER, NUMBER, int8(5), b"\1", LIST, None, b"\1{}", bytes(16), b"\0\1")
TEXTS = (
    "1", "one", "12.50", "-100.50", "2024-02-29 01:02:03.5+00", "t", "{1,NULL}", '{a,"b,\\"c"}',
    "{}",
    "00000000-0000-0000-0000-000000000000", "\\x00ff",
)  # fmt: skip
GONE = (None,) * 10
MESSAGES = (
    begin(),
    MIXED.relation(),
    MIXED.insert(*BINARY),
    MIXED.insert(*TEXTS),
    MIXED.update(*BINARY[:1], UNSENT, *BINARY[2:], key=(int4(2), *GONE)),
    MIXED.delete(int4(1), *GONE),
    truncate(MIXED),
    commit(),
)
SEGMENT = body(*MESSAGES)
HEAD = head(MIXED, reported=())


def check(data: bytes) -> list[DecodedTable | Poison]:
    results = list(decode(HEAD, data, 1))
    for result in results:
        if isinstance(result, DecodedTable):
            result.changes.validate(full=True)
        else:
            assert result.table == MIXED.schema.id
            assert 0 <= result.offset <= len(data)
            assert result.code in ("log:segment-corrupt", "source:value-unsupported",
                "source:key-changed",
                                   "source:table-replaced")  # fmt: skip
    return results


def test_the_sound_segment_decodes():
    """Guards the other tests here: if the sound segment did not decode, every cut and flip of it
    would pass as damage."""
    (table,) = check(SEGMENT)
    assert table.changes["list"].to_pylist()[:2] == [[7, None], [1, None]]
    assert table.changes["words"].to_pylist()[1] == ["a", 'b,"c']
    assert str(table.changes["amount"][0]) == str(table.changes["amount"][1]) == "12.50"
    assert table.changes["free"].to_pylist()[0] == "12.50"


@pytest.mark.parametrize("kept", range(len(SEGMENT)))
def test_a_cut_segment_is_damage_or_ends_between_messages(kept):
    """Guards `kernels.scan`: a message that ends behind the segment must be damage; read on, it
    would bring bytes of nothing."""
    starts = {len(body(*MESSAGES[:i])) for i in range(len(MESSAGES))}
    results = check(SEGMENT[:kept])
    if kept not in starts:
        assert [r.code for r in results] == ["log:segment-corrupt"]


def test_no_flipped_bit_crashes():
    """Guards every length and count that the kernels take from the data: believed without a look,
    one flipped bit is a read beyond the buffer, which no test outlives."""
    for at in range(len(SEGMENT)):
        for bit in range(8):
            data = bytearray(SEGMENT)
            data[at] ^= 1 << bit
            check(bytes(data))


def test_no_byte_set_to_an_extreme_crashes():
    """Guards the same checks at 0, the largest positive and the negative: sizes of -1 and counts
    that overflow."""
    for at in range(len(SEGMENT)):
        for byte in (0, 0x7F, 0xFF):
            data = bytearray(SEGMENT)
            data[at] = byte
            check(bytes(data))


def test_nothing_is_read_behind_the_segment():
    """Guards the bounds within a message: one that is cut anywhere is damage at its own offset,
    with its frame intact."""
    for cut in range(4, len(MESSAGES[2])):
        message = MESSAGES[2][:cut]
        sound = body(MESSAGES[0], MESSAGES[1])
        (poison,) = check(sound + body(message))
        assert poison.code == "log:segment-corrupt"
        assert poison.offset == len(sound)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 2**32))
def test_random_bytes_after_random_messages_never_crash(noise, seed):
    """Guards the frame in `decode._read_rows` against noise within, behind and between sound
    messages."""
    source = random.Random(seed)
    messages = [source.choice(MESSAGES[2:7]) for _ in range(source.randrange(20))]
    at = source.randrange(len(messages) + 1)
    framed = body(*messages[:at]) + body(b"I\0\0\0\7N" + noise) + body(*messages[at:])
    check(body(MESSAGES[0], MESSAGES[1]) + framed + noise)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 10), st.booleans())
def test_random_values_of_any_type_never_crash(noise, column, is_text):
    """Guards each type's reader in `kernels` and `values` against a value that is none: a table or
    a Poison comes out, never both, and no crash."""
    values = list(BINARY)
    values[column] = noise
    message = MIXED.insert(*values)
    if is_text:
        start = message.index(b"b", 8) if column == 0 else None
        message = message if start is None else message[:start] + b"t" + message[start + 1 :]
    results = check(body(MESSAGES[0], MESSAGES[1], MESSAGES[2], message, MESSAGES[2]))
    assert len(results) == 1
