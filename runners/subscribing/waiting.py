"""Waiting for changes. Many requests wait at the same time; one thread asks the database for all of
them. A request that waits holds a thread of the web process, but neither a connection nor the
processor."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import connection, connections
from django.db.models import Count, Q, Sum

from runners.models import Table

TICK_SECONDS = 0.2
Version = tuple[Any, ...]


def versions(replicators: list[Any]) -> dict[Any, Version]:
    """A value for each replicator that is another one whenever its tables have more changes."""
    rows = Table.objects.filter(replicator_id__in=replicators).order_by()
    found = rows.values("replicator_id").annotate(
        done=Count("pk", filter=Q(is_snapshot_done=True)),
        tables=Count("pk"),
        sequences=Sum("merged_sequence"),
        generations=Sum("generation"),
    )
    return {
        row["replicator_id"]: (row["done"], row["tables"], row["sequences"], row["generations"])
        for row in found
    }


class Waiter:
    """One thread that looks for changes as long as somebody waits. `look` gives the versions."""

    def __init__(self, look: Callable[[list[Any]], dict[Any, Version]] = versions) -> None:
        self._look = look
        self._changed = threading.Condition()
        self._waiting: dict[Any, int] = {}
        self._known: dict[Any, Version] = {}
        self._thread: threading.Thread | None = None
        self.looks = 0

    def wait(self, replicator: Any, seen: Version, seconds: float) -> bool:
        """Wait until the replicator's version is not `seen`; False where the time is over."""
        until = time.monotonic() + seconds
        with self._changed:
            self._waiting[replicator] = self._waiting.get(replicator, 0) + 1
            self._known.pop(replicator, None)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="waiter", daemon=True)
                self._thread.start()
            try:
                while (left := until - time.monotonic()) > 0:
                    if self._known.get(replicator, seen) != seen:
                        return True
                    self._changed.wait(left)
                return False
            finally:
                self._waiting[replicator] -= 1
                if not self._waiting[replicator]:
                    del self._waiting[replicator]

    def _watch(self) -> None:
        try:
            while self._tick():
                time.sleep(TICK_SECONDS)
        finally:
            connections.close_all()

    def _tick(self) -> bool:
        """Look once; False where nobody waits any more."""
        with self._changed:
            asked = list(self._waiting)
            if not asked:
                self._thread = None
                return False
        try:
            found = self._look(asked)
        except Exception:  # noqa: BLE001 - the database is away; those who wait ask again themselves
            connection.close()
            return True
        with self._changed:
            self.looks += 1
            is_new = any(self._known.get(pk) != v for pk, v in found.items())
            self._known.update(found)
            if is_new:
                self._changed.notify_all()
        return True


WAITER = Waiter()
_slots = threading.BoundedSemaphore(settings.WEB_WAITERS)


@contextmanager
def slot() -> Iterator[bool]:
    """A place to wait in; False where all are taken: then nobody may wait."""
    has = _slots.acquire(blocking=False)
    try:
        yield has
    finally:
        if has:
            _slots.release()


def let_go() -> None:
    """Give the connection back before waiting; the next query opens one."""
    if not connection.in_atomic_block:
        connection.close()
