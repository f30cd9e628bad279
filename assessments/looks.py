"""Looks into sources and targets, in threads apart from those that answer requests. The number of
looks and the time of each are limited. A server that accepts the login and then stays silent delays
the look, never the pages. This module knows neither sources nor targets."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import lru_cache
from typing import TypeVar

from django.conf import settings

from replicators.connectors.limits import Limit, limited

T = TypeVar("T")
WAIT_SECONDS = 5


class TooManyLooks(Exception):
    """The limit of active looks is reached. `wait` is the number of seconds after which to ask
    again."""

    wait = WAIT_SECONDS

    def __init__(self) -> None:
        super().__init__(
            "Too many looks into sources and targets at once: other servers are still being "
            "asked. Try again in some seconds."
        )


class LookTimedOut(Exception):
    """The answer did not come in time."""


class Looks:
    """A fixed number of places, one for each look. A place becomes free when its look ends, which
    may be after the caller has left."""

    def __init__(self, most: int) -> None:
        self._free = threading.BoundedSemaphore(most)

    def ask(self, act: Callable[[], T], seconds: float) -> T:
        """Run `act` in its own thread; return its result or raise its exception. Raises
        `TooManyLooks` at once if no place is free, and `LookTimedOut` after `seconds`: then the
        connections that `act` opened are cut off."""
        if not self._free.acquire(blocking=False):
            raise TooManyLooks
        limit, answer = Limit(seconds), Future[T]()

        def look() -> None:
            try:
                with limited(limit):
                    found = act()
            except BaseException as err:  # noqa: BLE001 - whatever it is belongs to the one who asked
                self._free.release()
                answer.set_exception(err)
            else:
                self._free.release()
                answer.set_result(found)

        try:
            threading.Thread(target=look, name="look", daemon=True).start()
        except RuntimeError as err:  # the machine can't make more threads
            self._free.release()
            raise TooManyLooks from err
        try:
            return answer.result(timeout=seconds)
        except TimeoutError:
            if answer.done():  # the error of `act` itself
                raise
            raise LookTimedOut from None
        finally:
            limit.end()


@lru_cache(maxsize=1)
def _looks(most: int) -> Looks:
    return Looks(most)


def look(act: Callable[[], T], seconds: float | None = None) -> T:
    """See `Looks.ask`. All looks of this process share its places. Without `seconds`, the time
    limit is the setting's."""
    return _looks(settings.LOOKS).ask(act, settings.LOOK_SECONDS if seconds is None else seconds)
