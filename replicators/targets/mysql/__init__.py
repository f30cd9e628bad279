"""MySQL and MariaDB as a target: each merge is one transaction. Importing this loads no driver."""

from __future__ import annotations

from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.model.modes import IN_COLUMNS
from replicators.connectors.target import Target, TargetChecks, TargetPlugin
from replicators.connectors.tasks import Tasks
from replicators.targets.mysql.messages import MESSAGES
from replicators.targets.mysql.params import MysqlTargetParams, places
from replicators.targets.mysql.setup import setup
from replicators.targets.mysql.types import fit, fit_column

__all__ = ["PLUGIN"]

MERGE_SECONDS = 1.0
"""A small merge makes and drops a staging table, which syncs files."""


def _checks(params: MysqlTargetParams) -> TargetChecks:
    from replicators.targets.mysql.checks import MysqlTargetChecks

    return MysqlTargetChecks(params)


def _writer(params: MysqlTargetParams, tasks: Tasks) -> Target:
    from replicators.targets.mysql.writer import writer

    return writer(params, tasks.folder)


PLUGIN = TargetPlugin(
    name="mysql",
    label="MySQL / MariaDB",
    summary="Tables of a MySQL or MariaDB server; each merge is one transaction.",
    params=MysqlTargetParams,
    capabilities=TargetCapabilities(
        delivery=Delivery.EXACTLY_ONCE,
        can_read_rows=True,
        merges_together=True,
        is_replaced_at_once=True,
        modes=IN_COLUMNS,
    ),
    fit=fit,
    fit_column=fit_column,
    checks=_checks,
    writer=_writer,
    merge_seconds=lambda _: MERGE_SECONDS,
    setup=setup,
    places=places,
    messages=MESSAGES,
)
