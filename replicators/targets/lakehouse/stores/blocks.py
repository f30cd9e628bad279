"""Files of a store as streams: read by ranges, and written in blocks."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

_BLOCK = 8 << 20
_BUFFER = 256 << 10


def reader(fetch: Callable[[int, int], bytes], size: int) -> io.BufferedReader:
    """A file of `size` bytes. `fetch` gives so many from a place."""
    return io.BufferedReader(_Reader(fetch, size), _BUFFER)


class _Reader(io.RawIOBase):
    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        self._fetch, self._size, self._at = fetch, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, target: Any) -> int:
        wanted = min(len(target), self._size - self._at)
        if wanted <= 0:
            return 0
        data = self._fetch(self._at, wanted)
        if len(data) != wanted:
            raise OSError(f"{wanted} bytes were asked for, and {len(data)} came")
        target[:wanted] = data
        self._at += wanted
        return wanted


class Writer(io.RawIOBase):
    """A new file. `send` takes the number of a block and its bytes; `end` takes how many blocks
    there were, none for an empty file. After an error nothing more is sent."""

    def __init__(self, send: Callable[[int, bytes], None], end: Callable[[int], None]) -> None:
        self._send, self._end = send, end
        self._held = bytearray()
        self._blocks = 0
        self._at = 0
        self._is_whole = True

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        self._held += data
        self._at += len(data)
        if len(self._held) >= _BLOCK:
            self._give()
        return len(data)

    def _give(self) -> None:
        self._is_whole = False
        self._send(self._blocks, bytes(self._held))
        self._is_whole = True
        self._blocks += 1
        self._held.clear()

    def close(self) -> None:
        if self.closed:
            return
        try:
            if self._is_whole:
                if self._held:
                    self._give()
                self._end(self._blocks)
        finally:
            super().close()
