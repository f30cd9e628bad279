"""Looks into sources and targets, apart from the threads that answer requests: so many at once, and
each for so long. A server that signs in and then stays silent holds up the look, never the pages.
Knows neither sources nor targets."""

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
    """As many looks go on as may at once; `wait` in so many seconds is a good time to ask again."""

    wait = WAIT_SECONDS

    def __init__(self) -> None:
        super().__init__(
            "Too many looks into sources and targets at once: other servers are still being "
            "asked. Try again in some seconds."
        )


class LookTimedOut(Exception):
    """There was no answer in time."""


class Looks:
    """So many places, one for each look; a place is free again when its look has ended, which may
    be after its asker went."""

    def __init__(self, most: int) -> None:
        self._free = threading.BoundedSemaphore(most)

    def ask(self, act: Callable[[], T], seconds: float) -> T:
        """What `act` returns or raises, in a thread of its own. `TooManyLooks` at once where no
        place is free, `LookTimedOut` after that time: the connections that `act` opened are cut off
        then."""
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
        except RuntimeError as err:  # the machine makes no more threads
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
    """See `Looks.ask`; all looks of this process share its places. Without `seconds`: the
    setting's."""
    return _looks(settings.LOOKS).ask(act, settings.LOOK_SECONDS if seconds is None else seconds)
