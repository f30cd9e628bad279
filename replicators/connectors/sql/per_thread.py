"""Connections to a database: one for each thread, opened when it is needed, and opened again after
it was lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """A driver's connection."""

    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


class PerThread(Generic[C]):
    """Lends each thread its connection. `connect` opens one; `is_open` says whether one was not
    lost or closed."""

    def __init__(self, connect: Callable[[], C], is_open: Callable[[C], bool]) -> None:
        self._connect = connect
        self._is_open = is_open
        self._own = threading.local()
        self._lock = threading.Lock()
        self._all: dict[int, C] = {}

    def get(self) -> C:
        """This thread's connection. A lost one is opened again."""
        known: C | None = getattr(self._own, "connection", None)
        if known is not None and self._is_open(known):
            return known
        made = self._connect()
        self._own.connection = made
        with self._lock:
            self._all[threading.get_ident()] = made
        return made

    def give_up(self) -> None:
        """Close this thread's connection, for example after an error that left it in doubt."""
        known: C | None = getattr(self._own, "connection", None)
        if known is not None:
            self._end(known)
            self._own.connection = None

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            while self._all:
                self._end(self._all.popitem()[1])

    def _end(self, made: C) -> None:
        if self._is_open(made):
            made.close()
