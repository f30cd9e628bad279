"""What every object of the clock is: opened, and closed without doing anything."""

from __future__ import annotations

from typing import Self


class Opened:
    """A context manager with nothing to close."""

    def close(self) -> None:
        """Nothing is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
