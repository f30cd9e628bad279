"""Limits the time of a look into a server, and tells this limit to the drivers. A run has no such
limit: its steps have deadlines of their own.

A driver that waits for a server's answer can wait for ever, and a waiting thread can't be ended. So
each connection that is made during a look is registered here. The end of the look shuts these
connections: whoever is reading gets an end of file.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

LATER = 1.0
"""Seconds by which drivers and servers wait longer than the look, so that it ends first."""


class Limit:
    """The time of one look, and the sockets that it opened. Two threads use it: one looks, and one
    waits for it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends_at = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._is_over = False

    def left(self) -> float:
        """The seconds that are left, never less than one, since drivers take zero as no limit."""
        return max(1.0, self._ends_at - time.monotonic())

    def watch(self, fileno: int) -> None:
        """Shut this socket when the look is over; at once if it is over already."""
        own = socket.socket(fileno=os.dup(fileno))
        with self._lock:
            self._sockets.append(own)
            if self._is_over:
                _shut(own)

    def end(self) -> None:
        """The look is over: wake whoever still waits for one of its servers."""
        with self._lock:
            self._is_over = True
            for own in self._sockets:
                _shut(own)

    def close(self) -> None:
        """The look has finished: nothing waits any more."""
        with self._lock:
            while self._sockets:
                self._sockets.pop().close()


def _shut(own: socket.socket) -> None:
    with suppress(OSError):
        own.shutdown(socket.SHUT_RDWR)


_CURRENT: ContextVar[Limit | None] = ContextVar("limit", default=None)


@contextmanager
def limited(limit: Limit) -> Iterator[None]:
    """Connections that this thread opens inside belong to this look."""
    token = _CURRENT.set(limit)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        limit.close()


def left(otherwise: float) -> float:
    """The seconds that a driver may wait for one answer: a little more than what is left of the
    look, and at most `otherwise`. In a run it is `otherwise`."""
    limit = _CURRENT.get()
    return otherwise if limit is None else min(otherwise, limit.left() + LATER)


def statement_seconds() -> float | None:
    """The seconds after which the server itself ends a statement of a look; None for a run. This is
    later than the look's own end, so that the look says which time is over."""
    limit = _CURRENT.get()
    return None if limit is None else limit.left() + LATER


def watch(fileno: int) -> None:
    """See `Limit.watch`; nothing to do in a run."""
    limit = _CURRENT.get()
    if limit is not None:
        limit.watch(fileno)
