"""Transactions that were prepared (XA) and wait for their COMMIT or ROLLBACK; knows no connection
(CORRECTNESS 25).

The server logs their rows at PREPARE, at a place in the log where they may still be rolled back. So
a prepared group leaves the stream, and comes back at its XA COMMIT. Each position durably keeps the
place in the server's log where the group begins. The group's bytes are only a copy in memory; they
are read again from that place after a restart or a change of the chosen tables.
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
    """A prepared transaction. `file` and `offset`: where its group begins; `LOST` means that its
    rows could not be taken out of the stream, and its tables got an error. `data`: its messages
    without the GTID event, if they are in memory."""

    xid: str
    file: str
    offset: int
    data: bytes | None = None
    messages: int = 0
    has_checksums: bool = True

    def place(self) -> tuple[str, str, int]:
        """The part that a position keeps."""
        return self.xid, self.file, self.offset


class PreparedTransactions:
    """The waiting transactions, by the server's own spelling of their XID."""

    def __init__(self, places: Iterable[tuple[str, str, int]] = ()) -> None:
        self._waiting = {xid: Prepared(xid, file, offset) for xid, file, offset in places}

    def places(self) -> tuple[tuple[str, str, int], ...]:
        """Their places, for a position."""
        return tuple(p.place() for p in self._waiting.values())

    def add(self, prepared: Prepared) -> None:
        """Add a prepared transaction. Copies past a limit are dropped: such a group is read again
        at its commit."""
        held = sum(len(p.data or b"") for p in self._waiting.values())
        if held + len(prepared.data or b"") > COPIES_BYTES:
            prepared = replace(prepared, data=None)
        self._waiting[prepared.xid] = prepared

    def get(self, xid: str) -> Prepared | None:
        """The transaction that waits under this XID."""
        return self._waiting.get(xid)

    def remove(self, xid: str) -> None:
        """Remove a transaction that ended."""
        self._waiting.pop(xid, None)

    def forget_copies(self) -> None:
        """Drop the copies: the followed tables change, and the copies lack the new ones."""
        self._waiting = {x: replace(p, data=None) for x, p in self._waiting.items()}


def is_one_phase(event: bytes) -> bool:
    """Whether an XA_PREPARE event (with header, without checksum) is in fact a COMMIT in one
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
    """Whether a GTID event (with header) begins a group that ends prepared. MySQL tells this by a
    statement only."""
    return is_mariadb and len(event) > HEADER + 12 and bool(event[HEADER + 12] & PREPARED_XA)


def open_group(xid: str, file: str, state: np.ndarray, buffer: np.ndarray) -> Prepared:
    """The stream's open transaction (`kernels.P_*` in `state`) as a `Prepared`. Without content it
    keeps only its place. It is `LOST` if a part of it was handed out."""
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
    """An XID in one spelling: without blanks, case, and the words that follow it in a statement."""
    return "".join(text.upper().removesuffix("ONE PHASE").split())
