"""Keeps the reading of the source below a rate."""

from __future__ import annotations

import time
from collections.abc import Callable

SLICE_SECONDS = 0.5
SECONDS_A_CHUNK = 5


class Throttle:
    """After each chunk, `pause` waits as long as the rates ask. A stop ends the wait. No rates: no
    wait."""

    def __init__(
        self,
        rows_a_second: float,
        bytes_a_second: float,
        should_stop: Callable[[], bool],
        *,
        timer: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rates = rows_a_second, bytes_a_second
        self._should_stop = should_stop
        self._timer = timer
        self._sleep = sleep
        self._due = timer()

    @property
    def is_on(self) -> bool:
        """Whether there is a limit."""
        return any(self._rates)

    def rows_a_chunk(self, most: int) -> int:
        """How large chunks are, so that none takes much longer than some seconds."""
        rows = self._rates[0]
        return most if not rows else max(1, min(most, int(rows * SECONDS_A_CHUNK)))

    def pause(self, rows: int, size_bytes: int) -> None:
        """Call it after each chunk, with what was read."""
        needs = [n / rate for n, rate in zip((rows, size_bytes), self._rates, strict=True) if rate]
        self._due = max(self._due, self._timer() - SECONDS_A_CHUNK) + max(needs, default=0.0)
        while (left := self._due - self._timer()) > 0 and not self._should_stop():
            self._sleep(min(left, SLICE_SECONDS))
