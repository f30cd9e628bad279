"""From where and to where a run copies, as the engine is told it; which tables, the store says.
Opens nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from replicators.connectors.schema.policy import SchemaPolicy
from replicators.connectors.source import SourcePlugin
from replicators.connectors.target import TargetPlugin


@dataclass(frozen=True, slots=True)
class JobOptions:
    """What the engine asks of a replicator's options; the rest is in its settings and in the
    tables' rows."""

    schema_changes: SchemaPolicy = SchemaPolicy.EVOLVE
    drops_vanished: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """Between what a run copies: `replicator` is its id for ever, `slot` the name of what it makes
    at the source."""

    replicator: str
    name: str
    slot: str
    source: SourcePlugin
    source_params: Any
    target: TargetPlugin
    target_params: Any
    options: JobOptions = JobOptions()
