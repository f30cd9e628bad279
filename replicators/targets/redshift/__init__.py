"""Amazon Redshift as a target: each merge is one transaction. Importing this loads no driver."""

from __future__ import annotations

from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.model.modes import IN_COLUMNS
from replicators.connectors.target import Target, TargetChecks, TargetPlugin
from replicators.connectors.tasks import Tasks
from replicators.targets.redshift.messages import MESSAGES
from replicators.targets.redshift.params import MERGE_SECONDS, RedshiftParams, places
from replicators.targets.redshift.setup import setup
from replicators.targets.redshift.types import fit

__all__ = ["PLUGIN"]


def _checks(params: RedshiftParams) -> TargetChecks:
    from replicators.targets.redshift.checks import RedshiftChecks

    return RedshiftChecks(params)


def _writer(params: RedshiftParams, tasks: Tasks) -> Target:
    from replicators.targets.redshift.writer import writer

    return writer(params, tasks.folder)


PLUGIN = TargetPlugin(
    name="redshift",
    label="Redshift",
    summary="Tables of Redshift; each merge is one transaction. It was tested against a PostgreSQL "
    "server that plays Redshift and an S3 server only, and never seen on the real service.",
    params=RedshiftParams,
    capabilities=TargetCapabilities(
        delivery=Delivery.EXACTLY_ONCE,
        can_read_rows=True,
        is_replaced_at_once=True,
        has_nul=False,
        modes=IN_COLUMNS,
    ),
    fit=fit,
    checks=_checks,
    writer=_writer,
    merge_seconds=lambda _: MERGE_SECONDS,
    setup=setup,
    places=places,
    messages=MESSAGES,
    unseen="Whether the user may make temporary tables, and whether Redshift may read what this "
    "program writes into the folder, is seen when the first table is copied.",
)
