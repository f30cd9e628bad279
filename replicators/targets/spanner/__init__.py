"""Google Cloud Spanner as a target: rows by key, and the progress in the same commit. Importing
this loads no driver."""

from __future__ import annotations

from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.model.modes import IN_COLUMNS
from replicators.connectors.target import Target, TargetChecks, TargetPlugin
from replicators.connectors.tasks import Tasks
from replicators.targets.spanner.messages import MESSAGES
from replicators.targets.spanner.params import MERGE_SECONDS, SpannerParams, places
from replicators.targets.spanner.setup import setup
from replicators.targets.spanner.types import fit

__all__ = ["PLUGIN"]


def _checks(params: SpannerParams) -> TargetChecks:
    from replicators.targets.spanner.checks import SpannerChecks

    return SpannerChecks(params)


def _writer(params: SpannerParams, tasks: Tasks) -> Target:
    from replicators.targets.spanner.writer import writer

    return writer(params, tasks)


PLUGIN = TargetPlugin(
    name="spanner",
    label="Spanner",
    summary="Tables of Google Cloud Spanner, written by key. It was tested against a small server "
    "of its protocol's messages only: it was not tested on the real service.",
    params=SpannerParams,
    capabilities=TargetCapabilities(
        delivery=Delivery.EXACTLY_ONCE,
        can_read_rows=True,
        is_replaced_at_once=True,
        modes=IN_COLUMNS,
    ),
    fit=fit,
    checks=_checks,
    writer=_writer,
    merge_seconds=lambda _: MERGE_SECONDS,
    setup=setup,
    places=places,
    messages=MESSAGES,
    task_modules=("replicators.targets.spanner.client",),
    unseen="Whether the account may make and rename tables is seen when the first table is copied.",
)
