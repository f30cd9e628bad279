"""The time that a look into a server may take, told to the drivers that look. A run has none: its
steps have deadlines of their own.

A driver that waits for a server's answer can wait for ever, and a thread that waits can't be ended.
So every connection that is made during a look is named here, and the look's end shuts them: whoever
reads then reads an end.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar


class Limit:
    """The time of one look, and the sockets that it opened. For two threads: the one that looks,
    and the one that waits for it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends_at = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._is_over = False

    def left(self) -> float:
        """Seconds that are left, never less than one: drivers take zero for no limit."""
        return max(1.0, self._ends_at - time.monotonic())

    def watch(self, fileno: int) -> None:
        """This socket is shut when the look is over; at once where it is over already."""
        own = socket.socket(fileno=os.dup(fileno))
        with self._lock:
            self._sockets.append(own)
            if self._is_over:
                _shut(own)

    def end(self) -> None:
        """The look is over: whoever still waits for one of its servers is woken."""
        with self._lock:
            self._is_over = True
            for own in self._sockets:
                _shut(own)

    def close(self) -> None:
        """Nobody looks any more."""
        with self._lock:
            while self._sockets:
                self._sockets.pop().close()


def _shut(own: socket.socket) -> None:
    with suppress(OSError):
        own.shutdown(socket.SHUT_RDWR)


_CURRENT: ContextVar[Limit | None] = ContextVar("limit", default=None)


@contextmanager
def limited(limit: Limit) -> Iterator[None]:
    """What this thread opens inside is opened for this look."""
    token = _CURRENT.set(limit)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        limit.close()


def left(otherwise: float) -> float:
    """Seconds that a driver may wait for one answer: what is left of the look; at most `otherwise`,
    which holds alone for a run."""
    limit = _CURRENT.get()
    return otherwise if limit is None else min(otherwise, limit.left())


def statement_seconds() -> float | None:
    """After so many seconds the server itself ends a statement of a look; None for a run. Later
    than the look's own end, so that the look says which time is over."""
    limit = _CURRENT.get()
    return None if limit is None else limit.left() + 1.0


def watch(fileno: int) -> None:
    """See `Limit.watch`; nothing to do in a run."""
    limit = _CURRENT.get()
    if limit is not None:
        limit.watch(fileno)
