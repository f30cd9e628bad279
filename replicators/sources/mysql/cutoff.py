"""Groups of events that a server's crash cut off. MariaDB leaves them at the end of the file, and
rolls their rows back."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from replicators.sources.mysql import kernels as k

ARTIFICIAL = 0x20


def ends_by_crash(rotate: bytes) -> bool:
    """Whether the server made a ROTATE event (with header) for its reader only. Then the file
    before has none, because the server crashed before closing it."""
    (flags,) = struct.unpack_from("<H", rotate, 17)
    return bool(flags & ARTIFICIAL)


def give_up(state: np.ndarray, buffer: np.ndarray, runs: np.ndarray) -> None:
    """End the open transaction, which was never committed. It is removed; if a part of it was
    handed out, it ends as rolled back. The buffer must have room for an event."""
    state[k.P_NUMBER] = 0
    if state[k.P_WAS_SENT]:
        event = np.frombuffer(_rollback(has_checksum=bool(state[k.P_HAS_CRC])), np.uint8)
        k.take_query(event, 0, len(event), state, buffer, runs, False, True)
    else:
        state[k.P_HAS_CONTENT] = 0
        k.close_transaction(state, runs)


def _rollback(*, has_checksum: bool) -> bytearray:
    """A ROLLBACK as a QUERY event."""
    body = bytes(13) + b"\0ROLLBACK"
    size = k.HEADER + len(body) + (k.CRC if has_checksum else 0)
    event = bytearray(struct.pack("<IBIIIH", 0, k.QUERY_EVENT, 0, size, 0, 0) + body)
    return event + struct.pack("<I", zlib.crc32(event)) if has_checksum else event
