"""What a run copies from and to, as the engine gets it. The store has the tables. Opens nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from replicators.connectors.schema.policy import SchemaPolicy
from replicators.connectors.source import SourcePlugin
from replicators.connectors.target import TargetPlugin


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The replicator's options that the engine reads. Other options are in its settings and in the
    tables' rows."""

    schema_changes: SchemaPolicy = SchemaPolicy.EVOLVE
    drops_vanished: bool = False
    copies_first: bool = True


@dataclass(frozen=True, slots=True)
class Job:
    """The source and target of a run. `replicator` is its permanent id; `slot` names what it
    creates at the source."""

    replicator: str
    name: str
    slot: str
    source: SourcePlugin
    source_params: Any
    target: TargetPlugin
    target_params: Any
    options: JobOptions = JobOptions()

    @property
    def skips_copy(self) -> bool:
        """Whether the tables of the first start are not copied."""
        return not self.options.copies_first and self.target.capabilities.takes_changes
