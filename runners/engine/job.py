"""From where and to where a run copies, as the engine is told it; which tables, the store says. Opens nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from replicators.connectors.source import SourcePlugin
from replicators.connectors.target import TargetPlugin


@dataclass(frozen=True, slots=True)
class Job:
    """Between what a run copies: `replicator` is its id for ever, `slot` the name of what it makes at the source."""

    replicator: str
    name: str
    slot: str
    source: SourcePlugin
    source_params: Any
    target: TargetPlugin
    target_params: Any
    options: dict[str, Any] = field(default_factory=dict)
