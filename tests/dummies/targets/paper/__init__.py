"""Paper as a target: every change is written down, one below the other."""

from __future__ import annotations

from typing import Any

from replicators.targets.paper.checks import PaperChecks
from replicators.targets.paper.messages import MESSAGES
from replicators.targets.paper.params import PaperParams
from replicators.targets.paper.types import fit

from replicators.connectors.addresses import Place
from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.model.modes import Mode
from replicators.connectors.target import TargetPlugin
from replicators.connectors.tasks import Tasks

__all__ = ["PLUGIN"]


def _writer(params: PaperParams, tasks: Tasks) -> Any:
    from replicators.targets.paper.writer import PaperTarget

    return PaperTarget(params)


def _places(params: PaperParams) -> tuple[Place, ...]:
    return (Place("folder", params.drawer, "Drawer"),)


PLUGIN = TargetPlugin(
    name="paper",
    label="Paper",
    summary="Every change, written down by hand.",
    params=PaperParams,
    capabilities=TargetCapabilities(delivery=Delivery.AT_LEAST_ONCE, modes=(Mode.APPEND,)),
    fit=fit,
    checks=PaperChecks,
    writer=_writer,
    places=_places,
    messages=MESSAGES,
    icon="quill-that-nobody-vendored",
)
