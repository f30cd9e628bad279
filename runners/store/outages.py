"""What happens while the program's own database can't be reached: wait a while, then an error of
the engine's."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from django.db import (
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
    transaction,
)

from replicators.connectors.problems.errors import ReplicationError

logger = logging.getLogger("replicator.run")

C = TypeVar("C", bound=type)
WAIT_SECONDS = 0.5
IMPATIENT = frozenset({"renew"})
"""What its caller tries again itself."""
LOST = (OperationalError, InterfaceError)


def _told(method: Callable[..., Any]) -> Callable[..., Any]:
    patient = method.__name__ not in IMPATIENT

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        deadline: float | None = None
        while True:
            try:
                return method(self, *args, **kwargs)
            except LOST as err:
                now = time.monotonic()
                if deadline is None:
                    deadline = now + (self.patience_seconds if patient else 0.0)
                    logger.warning("The program's own database does not answer: %s", err)
                if now >= deadline or connection.in_atomic_block:
                    raise ReplicationError("run:database-lost") from err
                connection.close()
            time.sleep(WAIT_SECONDS)

    return call


def database_errors_told(kind: C) -> C:
    """Where the database does not answer, every public method of the class is tried again for
    `patience_seconds`, then it raises `run:database-lost`: a driver's error could be taken for one
    of the source's. A method makes at most one transaction, by `written`, and nothing after it:
    only then may it be made again."""
    for name, method in list(vars(kind).items()):
        if not name.startswith("_") and callable(method):
            setattr(kind, name, _told(method))
    return kind


@contextmanager
def written() -> Iterator[None]:
    """A transaction. Where the database goes away at its commit nobody knows whether it was made:
    `run:database-lost` at once, and the next run reads what is there."""
    if not connection.in_atomic_block:
        close_old_connections()
    is_whole = False
    try:
        with transaction.atomic():
            yield
            is_whole = True
    except LOST as err:
        if is_whole:
            raise ReplicationError("run:database-lost") from err
        raise
