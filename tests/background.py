"""Something that goes on in a thread beside a test."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager


class Background(ABC):
    """Works in a thread of its own between `begin` and `end`."""

    end_seconds = 30.0

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def _go(self) -> None:
        """The work, until `_stop` is set."""

    def begin(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._go, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop; what was begun is done."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(self.end_seconds)
            assert not self._thread.is_alive()
            self._thread = None

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Work while the block runs."""
        self.begin()
        try:
            yield
        finally:
            self.end()
