"""What the program's own database does when it can't be reached, as an error of the engine's."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from django.db import InterfaceError, OperationalError

from replicators.connectors.errors import ReplicationError

C = TypeVar("C", bound=type)


def _told(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except (OperationalError, InterfaceError) as err:
            raise ReplicationError("run:database-lost") from err

    return call


def database_errors_told(kind: C) -> C:
    """Every public method of the class raises `run:database-lost` where the database does not answer: a driver's error could
    be taken for one of the source's, and whether a write was made is not known then."""
    for name, method in list(vars(kind).items()):
        if not name.startswith("_") and callable(method):
            setattr(kind, name, _told(method))
    return kind
