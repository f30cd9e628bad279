"""Transactions that were prepared (XA) and wait for their COMMIT or ROLLBACK; knows no connection
(CORRECTNESS 25).

The server logs their rows at PREPARE, under a place in the log where they may still be undone. So a
prepared group leaves the stream, and comes back at its XA COMMIT. What is kept durably, within each
position, is where in the server's log the group begins; its bytes are a copy in memory, read again
from there after a restart or a change of the chosen tables.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from replicators.sources.mysql import kernels as k
from replicators.sources.mysql.tablemaps import HEADER

HELD_BYTES = 64 << 20
COPIES_BYTES = 256 << 20
LOST = -1
PREPARED_XA = 64


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared transaction: the file and offset where its group begins (`LOST`: its rows could
    not be taken out of the stream, its tables were told), and its messages without the GTID event,
    where they are at hand."""

    xid: str
    file: str
    offset: int
    data: bytes | None = None
    messages: int = 0
    has_checksums: bool = True

    def place(self) -> tuple[str, str, int]:
        """What a position keeps of it."""
        return self.xid, self.file, self.offset


class PreparedTransactions:
    """Those that wait, by the server's own spelling of their XID."""

    def __init__(self, places: Iterable[tuple[str, str, int]] = ()) -> None:
        self._waiting = {xid: Prepared(xid, file, offset) for xid, file, offset in places}

    def places(self) -> tuple[tuple[str, str, int], ...]:
        """For a position."""
        return tuple(p.place() for p in self._waiting.values())

    def add(self, prepared: Prepared) -> None:
        """One is prepared. Copies past a limit are left out: such a group is read again when it is
        committed."""
        held = sum(len(p.data or b"") for p in self._waiting.values())
        if held + len(prepared.data or b"") > COPIES_BYTES:
            prepared = replace(prepared, data=None)
        self._waiting[prepared.xid] = prepared

    def get(self, xid: str) -> Prepared | None:
        """The one that waits under this XID."""
        return self._waiting.get(xid)

    def remove(self, xid: str) -> None:
        """It came to its end."""
        self._waiting.pop(xid, None)

    def forget_copies(self) -> None:
        """Other tables are followed from now on: the copies lack them."""
        self._waiting = {x: replace(p, data=None) for x, p in self._waiting.items()}


def is_one_phase(event: bytes) -> bool:
    """Whether an XA_PREPARE event (with header, without checksum) is in truth a COMMIT in one
    phase."""
    return len(event) > HEADER and event[HEADER] == 1


def xid_of(event: bytes) -> str:
    """The XID in an XA_PREPARE event (with header, without checksum), as statements spell it;
    ValueError where it is damaged."""
    try:
        number, size, more = struct.unpack_from("<iii", event, HEADER + 1)
    except struct.error as err:
        raise ValueError("an event of XA PREPARE that is too short") from err
    first, end = HEADER + 13, HEADER + 13 + size + more
    if not (0 <= size <= 64 and 0 <= more <= 64 and end <= len(event)):
        raise ValueError("an event of XA PREPARE with a damaged XID")
    return same_xid(
        f"X'{event[first : first + size].hex()}',X'{event[first + size : end].hex()}',{number}"
    )


def is_prepared_here(event: bytes, is_mariadb: bool) -> bool:
    """Whether a GTID event (with header) begins a group that ends prepared; MySQL says so by a
    statement only."""
    return is_mariadb and len(event) > HEADER + 12 and bool(event[HEADER + 12] & PREPARED_XA)


def open_group(xid: str, file: str, state: np.ndarray, buffer: np.ndarray) -> Prepared:
    """The open transaction of a stream (`kernels.P_*` in `state`) as it is kept; without content,
    only its place."""
    if state[k.P_WAS_SENT]:
        return Prepared(xid, file, LOST)
    offset, has_checksums = int(state[k.P_CLOSED_OFFSET]), bool(state[k.P_HAS_CRC])
    if not state[k.P_HAS_CONTENT]:
        return Prepared(xid, file, offset, b"", 0, has_checksums)
    first = int(state[k.P_OPEN_AT] + state[k.P_BEGIN_SIZE])
    data = buffer[first : int(state[k.P_USED])].tobytes()
    messages = int(state[k.P_MESSAGES] - state[k.P_OPEN_MESSAGES]) - 1
    return Prepared(xid, file, offset, data, messages, has_checksums)


def same_xid(text: str) -> str:
    """An XID as statements spell it, without what varies: blanks, case, and words that follow
    it."""
    return "".join(text.upper().removesuffix("ONE PHASE").split())
