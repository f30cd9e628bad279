"""One block of memory for all buffers of some Arrow columns. Compiled loops fill it. It knows no
source."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

ALIGNMENT = 64


class Arena:
    """Lays out buffers in one zeroed block, so that rows without values cost no memory. `tail`
    bytes follow the last buffer, for loops that write a whole word at a time."""

    def __init__(self, tail: int = 0) -> None:
        self.size = 0
        self.block = np.zeros(0, np.uint8)
        self._tail = tail

    def place(self, size: int) -> int:
        """Reserve a buffer of so many bytes; returns where it begins."""
        at = self.size
        self.size += -(-size // ALIGNMENT) * ALIGNMENT
        return at

    def open(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The block as 1, 2, 4 and 8 byte integers. Call this once all buffers have their place."""
        raw = np.zeros(self.size + self._tail + ALIGNMENT, np.uint8)
        start = -raw.ctypes.data % ALIGNMENT
        self.block = raw[start : start + self.size + self._tail]
        view = self.block.view
        return self.block, view(np.int16), view(np.int32), view(np.int64)

    def buffer(self, at: int, size: int) -> pa.Buffer | None:
        """The bytes of a buffer, without a copy; None for a place of -1."""
        return None if at < 0 else pa.py_buffer(self.block[at : at + size])
