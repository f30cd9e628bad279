"""The BigQuery target: tables of a dataset, filled by load jobs and MERGE. Importing this loads no
driver."""

from __future__ import annotations

from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.model.modes import IN_COLUMNS
from replicators.connectors.target import MergeTarget, TargetChecks, TargetPlugin
from replicators.connectors.tasks import Tasks
from replicators.targets.bigquery.cost import BUDGET
from replicators.targets.bigquery.messages import MESSAGES
from replicators.targets.bigquery.params import MERGE_SECONDS, BigQueryParams, places
from replicators.targets.bigquery.setup import setup
from replicators.targets.bigquery.types import fit

__all__ = ["PLUGIN"]


def _checks(params: BigQueryParams) -> TargetChecks:
    from replicators.targets.bigquery.checks import BigQueryChecks

    return BigQueryChecks(params)


def _writer(params: BigQueryParams, tasks: Tasks) -> MergeTarget:
    from replicators.targets.bigquery.writer import BigQueryWriter

    return BigQueryWriter(params, tasks.folder)


PLUGIN = TargetPlugin(
    name="bigquery",
    label="BigQuery",
    rank=20,
    summary="Tables of Google BigQuery, filled by load jobs and one MERGE for each batch.",
    params=BigQueryParams,
    capabilities=TargetCapabilities(
        delivery=Delivery.EXACTLY_ONCE, is_replaced_at_once=True, modes=IN_COLUMNS
    ),
    fit=fit,
    checks=_checks,
    writer=_writer,
    setup=setup,
    merge_seconds=lambda params: MERGE_SECONDS,
    budget=BUDGET,
    places=places,
    messages=MESSAGES,
    icon="database",
)
