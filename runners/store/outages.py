"""Handles an outage of the program's own database: wait a while, then raise an error of the
engine's."""

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
"""Methods whose caller tries again itself."""
LOST = (OperationalError, InterfaceError)


def _reported(method: Callable[..., Any]) -> Callable[..., Any]:
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


def database_errors_reported(kind: C) -> C:
    """Try every public method of the class again while the database does not answer, for
    `patience_seconds`; then raise `run:database-lost`. A driver's error could be mistaken for one
    of the source's. A method makes at most one transaction, by `written`, and does nothing after
    it: only then is it safe to call again."""
    for name, method in list(vars(kind).items()):
        if not name.startswith("_") and callable(method):
            setattr(kind, name, _reported(method))
    return kind


@contextmanager
def written() -> Iterator[None]:
    """A transaction. If the database is lost during the commit, nobody knows whether it was
    committed. It raises `run:database-lost` at once, and the next run reads what is there."""
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
