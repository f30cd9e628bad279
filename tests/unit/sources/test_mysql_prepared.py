"""Prepared transactions while they wait: their names, what a position keeps of them, and the bound
of their copies."""

from __future__ import annotations

import struct

import pytest

from replicators.connectors.model.positions import Position
from replicators.sources.mysql import prepared
from replicators.sources.mysql.offsets import Coordinates
from replicators.sources.mysql.prepared import (
    HEADER,
    Prepared,
    PreparedTransactions,
    is_one_phase,
    same_xid,
    xid_of,
)


def prepare_event(one_phase: int, number: int, first: bytes, second: bytes) -> bytes:
    """An XA_PREPARE event, with a header of zeros."""
    sizes = struct.pack("<biii", one_phase, number, len(first), len(second))
    return bytes(HEADER) + sizes + first + second


def test_an_event_and_a_statement_spell_an_xid_alike() -> None:
    """Guards the meeting of PREPARE and COMMIT."""
    event = prepare_event(0, 7, b"one\xff", b"")
    assert xid_of(event) == same_xid("X'6f6e65ff',X'',7") == same_xid("x'6F6E65FF', x'', 7")
    assert same_xid("X'61',X'',1 ONE PHASE") == same_xid("X'61',X'',1")
    assert not is_one_phase(event)
    assert is_one_phase(prepare_event(1, 1, b"a", b""))


@pytest.mark.parametrize("size", range(HEADER, HEADER + 16))
def test_a_cut_event_is_damage(size: int) -> None:
    """Guards the bounds in `prepared.xid_of` (CORRECTNESS 25): an XID read past the event's end
    would never meet its XA COMMIT, and its rows would wait for ever."""
    with pytest.raises(ValueError, match="XA PREPARE"):
        xid_of(prepare_event(0, 7, b"one", b"two")[:size])


def test_a_position_carries_those_that_wait() -> None:
    """Guards the durable half: after a restart the place of each group is known."""
    waiting = PreparedTransactions()
    waiting.add(Prepared("X'61',X'',1", "binlog.000003", 444, b"rows", 2))
    at = Coordinates("mysql", "u", "binlog.000004", 4, prepared=waiting.places())
    again = Coordinates.of(Position.from_json(at.position().to_json()))
    assert again == at
    found = PreparedTransactions(again.prepared).get("X'61',X'',1")
    assert found is not None
    assert (found.file, found.offset, found.data) == ("binlog.000003", 444, None)
    assert Coordinates.of(Coordinates("mysql", "u", "binlog.000004", 4).position()).prepared == ()


def test_copies_are_kept_up_to_a_bound_and_places_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards memory: thousands of prepared transactions are read again instead."""
    monkeypatch.setattr(prepared, "COPIES_BYTES", 10)
    waiting = PreparedTransactions()
    for number in range(3):
        waiting.add(Prepared(str(number), "binlog.000001", number, b"12345", 1))
    copies = [getattr(waiting.get(str(n)), "data", b"") for n in range(3)]
    assert copies == [b"12345", b"12345", None]
    assert len(waiting.places()) == 3
    waiting.forget_copies()
    assert getattr(waiting.get("0"), "data", b"") is None
    waiting.remove("0")
    assert waiting.get("0") is None
