"""Two databases that replicate into each other: changes that lost against a later one on the other
side, and what a target provides that settles these conflicts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from replicators.connectors.model.schema import TableId


@dataclass(frozen=True, slots=True)
class Conflict:
    """A change of the source that was not applied. `key`: the key's values as the target writes
    them. `kept`: the row that the target has; None: it was deleted there. `lost`: the source's row,
    without values that the log did not carry; None: a delete."""

    table: TableId
    key: str
    kept: dict[str, Any] | None
    kept_at: datetime
    lost: dict[str, Any] | None
    lost_at: datetime
    found_at: datetime


@runtime_checkable
class Settles(Protocol):
    """A `MergeTarget` that others write to as well. It settles conflicts by the times of the
    changes."""

    @property
    def settles(self) -> bool:
        """Whether its batches have to be `FoldedBatch.timed`."""
        ...
