"""Faults of a definition's fields, shown where the statement says the field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from drafts.statements.errors import StatementError
from replicators.config import InvalidConfig
from replicators.connectors.problems.errors import ReplicationError


@contextmanager
def placed(text: str, places: Mapping[str, int]) -> Iterator[None]:
    """Faults of fields as a `StatementError` at the place where the statement says the field."""
    try:
        yield
    except (InvalidConfig, ReplicationError) as err:
        errors = getattr(err, "errors", {})
        if not errors:
            raise
        name, reason = min(errors.items(), key=lambda e: _place(e[0], places))
        at, sentence = _place(name, places), _sentence(name, reason)
        raise StatementError(f"{sentence.rstrip('.')}.", text, at) from err


def _sentence(field: str, reason: str) -> str:
    """A fault of a field as a sentence."""
    if reason[:1].isupper():
        return reason
    if field in ("name", "tables"):
        return f"The {field}: {reason}" if field == "tables" else f"The name {reason}"
    return f"`{field.rpartition('.')[2]}` {reason}"


def _place(name: str, places: Mapping[str, int]) -> int:
    """Where a field is said; for one that is not, where its connector is."""
    return places.get(name, places.get(name.partition(".")[0], 0))
