"""A target in memory, for tests of the wizard, of REST and of supervision; hidden elsewhere. It stores nothing."""

from __future__ import annotations

from typing import Any, NoReturn

from replicators.connectors.capabilities import TargetCapabilities
from replicators.connectors.model.modes import CHOICES
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import TargetPlugin
from replicators.targets.memory.checks import MemoryChecks
from replicators.targets.memory.params import MemoryParams
from replicators.targets.memory.types import fit

__all__ = ["PLUGIN"]


def _no_writer(*_: Any) -> NoReturn:
    raise ReplicationError("target:unreachable")


PLUGIN = TargetPlugin(
    name="memory",
    label="Memory",
    summary="Nowhere, for tests.",
    params=MemoryParams,
    capabilities=TargetCapabilities(modes=CHOICES),
    fit=fit,
    checks=MemoryChecks,
    writer=_no_writer,
    spark_conf=lambda _: {},
    jars=lambda _: (),
    is_hidden=True,
)
