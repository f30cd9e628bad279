"""Snowflake as a target: each merge is one transaction. Importing this loads no driver."""

from __future__ import annotations

from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.model.modes import IN_COLUMNS
from replicators.connectors.target import Target, TargetChecks, TargetPlugin
from replicators.connectors.tasks import Tasks
from replicators.targets.snowflake.messages import MESSAGES
from replicators.targets.snowflake.params import MERGE_SECONDS, SnowflakeParams, places
from replicators.targets.snowflake.setup import setup
from replicators.targets.snowflake.types import fit

__all__ = ["PLUGIN"]


def _checks(params: SnowflakeParams) -> TargetChecks:
    from replicators.targets.snowflake.checks import SnowflakeChecks

    return SnowflakeChecks(params)


def _writer(params: SnowflakeParams, tasks: Tasks) -> Target:
    from replicators.targets.snowflake.writer import writer

    return writer(params, tasks.folder)


PLUGIN = TargetPlugin(
    name="snowflake",
    label="Snowflake",
    summary="Tables of Snowflake; each merge is one transaction. It was tested against an emulator "
    "(fakesnow) only, and never seen on the real service.",
    params=SnowflakeParams,
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
    modules=lambda _: ("snowflake.connector",),
    setup=setup,
    places=places,
    messages=MESSAGES,
    unseen="Whether the role may make schemas, tables and stages is seen when the first table is "
    "copied.",
)
