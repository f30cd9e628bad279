"""The clock's faults as codes."""

from __future__ import annotations

from replicators.connectors.problems.errors import ReplicationError


def translate(err: BaseException) -> Exception:
    """Anything that a clock does not do is unexpected."""
    return ReplicationError("internal:unexpected", name_of_error=type(err).__name__)
