"""Moments at which several tables of a target have reached the same position."""

from __future__ import annotations

from dataclasses import dataclass, field

from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId


@dataclass(frozen=True, slots=True)
class Watermark:
    """A commit sequence that tables of the target have reached exactly: they hold everything
    committed at the source up to `position`, and nothing after it. `versions` names each table's
    version in the target (Iceberg's snapshot, Delta's version). `left_out` names the copied tables
    that are not in the watermark, with the reason. `committed_at`: the source's time of it, in
    seconds since the epoch. Until `readable_until` the versions can be read (for the target's
    history); afterwards they may still be readable."""

    sequence: int
    position: Position
    committed_at: float
    readable_until: float
    versions: dict[TableId, str]
    left_out: dict[TableId, str] = field(default_factory=dict)
