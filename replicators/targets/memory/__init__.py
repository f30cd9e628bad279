"""A target in memory, for tests of the wizard, REST and supervision. It is hidden elsewhere, and it
keeps no rows."""

from __future__ import annotations

from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.model.modes import CHOICES
from replicators.connectors.target import MergeTarget, TargetPlugin
from replicators.connectors.tasks import Tasks
from replicators.targets.memory.checks import MemoryChecks
from replicators.targets.memory.params import MemoryParams
from replicators.targets.memory.types import fit

__all__ = ["PLUGIN"]


def _writer(params: MemoryParams, tasks: Tasks) -> MergeTarget:
    from replicators.targets.memory.writer import MemoryTarget

    return MemoryTarget(params)


PLUGIN = TargetPlugin(
    name="memory",
    label="Memory",
    summary="Nowhere, for tests.",
    params=MemoryParams,
    capabilities=TargetCapabilities(delivery=Delivery.EXACTLY_ONCE, modes=CHOICES),
    fit=fit,
    checks=MemoryChecks,
    writer=_writer,
    is_hidden=True,
)
