"""How fast the change log grows, and so when it is at its limit."""

from __future__ import annotations

from collections import deque

SECONDS = 600.0
"""The growth is the mean of so many seconds."""
LEAST_SECONDS = 60.0
EVERY_SECONDS = 5.0


class Growth:
    """Measured sizes of the last minutes. `at`: seconds of a clock that never goes back."""

    def __init__(self) -> None:
        self._sizes: deque[tuple[float, int]] = deque()

    def measure(self, at: float, size: int) -> None:
        """A size. Those that follow too soon are left out."""
        if self._sizes and at - self._sizes[-1][0] < EVERY_SECONDS:
            return
        self._sizes.append((at, size))
        while at - self._sizes[0][0] > SECONDS:
            self._sizes.popleft()

    def hours_until(self, limit: int) -> float | None:
        """Hours until the size is at the limit; 0 where it is there. None where the log does not
        grow, or was measured for less than a minute."""
        if not self._sizes:
            return None
        (began, first), (ended, last) = self._sizes[0], self._sizes[-1]
        if last >= limit:
            return 0.0
        if ended - began < LEAST_SECONDS or last <= first:
            return None
        return (limit - last) / ((last - first) / (ended - began)) / 3600
