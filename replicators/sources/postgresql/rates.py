"""How fast the server writes its log, smoothed: a short burst says nothing about the next hours.
Pure."""

from __future__ import annotations

import math

SAMPLE_SECONDS = 10.0
LEAST_SECONDS = 60.0
WINDOW_SECONDS = 600.0


class LogRate:
    """A running mean over about `WINDOW_SECONDS`; until that time has passed, a mean over all
    samples."""

    def __init__(self) -> None:
        self._begun: float | None = None
        self._last = (0.0, 0)
        self._mean = 0.0

    def add(self, clock: float, end: int) -> None:
        """The log ended at byte `end` when the server's clock was `clock`, in seconds."""
        at, before = self._last
        if self._begun is None or clock < at:
            self._begun, self._last, self._mean = clock, (clock, end), 0.0
            return
        passed = clock - at
        if passed < SAMPLE_SECONDS:
            return
        seen = min(clock - self._begun, WINDOW_SECONDS)
        weight = passed / seen if seen < WINDOW_SECONDS else -math.expm1(-passed / seen)
        self._mean += weight * ((end - before) / passed - self._mean)
        self._last = (clock, end)

    @property
    def bytes_per_second(self) -> float | None:
        """The rate; None until samples cover `LEAST_SECONDS`."""
        if self._begun is None or self._last[0] - self._begun < LEAST_SECONDS:
            return None
        return self._mean
