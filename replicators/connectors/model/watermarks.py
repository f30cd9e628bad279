"""Moments at which several tables of a target are level."""

from __future__ import annotations

from dataclasses import dataclass, field

from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId


@dataclass(frozen=True, slots=True)
class Watermark:
    """A commit sequence that tables of the target have reached exactly: everything committed at the
    source up to `position` and nothing after it. `versions` names each one's version in the target
    (Iceberg's snapshot, Delta's version), `left_out` the copied tables that are not in it, with the
    reason. `committed_at`: the source's time of it, in seconds since the epoch; until
    `readable_until` the versions are there (for the target's history), afterwards they may be."""

    sequence: int
    position: Position
    committed_at: float
    readable_until: float
    versions: dict[TableId, str]
    left_out: dict[TableId, str] = field(default_factory=dict)
