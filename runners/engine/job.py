"""What a run copies from and to, as the engine gets it. The store has the tables. Opens nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from replicators.connectors.model.positions import Position
from replicators.connectors.schema.policy import SchemaPolicy
from replicators.connectors.source import RowReader, SourcePlugin
from replicators.connectors.target import TargetPlugin
from runners.engine.holding import Holding


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The replicator's options that the engine reads. Other options are in its settings and in the
    tables' rows."""

    schema_changes: SchemaPolicy = SchemaPolicy.EVOLVE
    drops_vanished: bool = False
    copies_first: bool = True
    takes_over: bool = False
    consistent: bool = False
    holding: Holding = Holding()
    source_limit_bytes: int = 0


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
        can = self.target.capabilities
        if self.options.takes_over:
            return can.can_take_over
        return not self.options.copies_first and can.takes_changes

    @property
    def verify_slot(self) -> str:
        """The name of what a verification opens at the source, beside a run."""
        return f"{self.slot}_v"

    def row_reader(
        self, name: str, position: Callable[[], Position | None]
    ) -> Callable[[], RowReader] | None:
        """What makes a reader of the source's rows by key; None where there is none. `name` is that
        of its connection: two that are open at one time need two. `position`: what the log is
        captured up to, from which some sources count the positions of what is read."""
        reader, again = self.source.row_reader, self.source.repair_reader
        params = self.source_params
        if again is not None:
            return lambda: again(params, name, position())
        return (lambda: reader(params)) if reader is not None else None
