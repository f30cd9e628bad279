"""The files target: it writes every change to Parquet or JSON lines, in folders by table and time.
Importing this loads no driver."""

from __future__ import annotations

from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.model.modes import Mode
from replicators.connectors.target import ChangeSink, TargetChecks, TargetPlugin
from replicators.connectors.tasks import Tasks
from replicators.targets.files.messages import MESSAGES
from replicators.targets.files.params import FilesParams, places
from replicators.targets.files.types import fit

__all__ = ["PLUGIN"]


def _checks(params: FilesParams) -> TargetChecks:
    from replicators.targets.files.checks import FilesChecks

    return FilesChecks(params)


def _writer(params: FilesParams, tasks: Tasks) -> ChangeSink:
    from replicators.targets.files.writer import FilesSink

    return FilesSink(params, tasks)


PLUGIN = TargetPlugin(
    name="files",
    label="Parquet or JSON files",
    summary="Every change in Parquet or JSON lines, in folders by table and time; closed folders "
    "are ready to load.",
    params=FilesParams,
    unseen="Whether an object store may be written is seen by the assessment.",
    capabilities=TargetCapabilities(delivery=Delivery.EXACTLY_ONCE, modes=(Mode.APPEND,)),
    fit=fit,
    checks=_checks,
    writer=_writer,
    task_modules=("replicators.targets.files.lanes",),
    places=places,
    merge_seconds=lambda params: params.merge_seconds,
    messages=MESSAGES,
)
