"""PostgreSQL 14 and newer as a target: each merge is one transaction. Importing this loads no
driver."""

from __future__ import annotations

from collections.abc import Sequence

from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.conflicts import Conflict
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableId
from replicators.connectors.target import Target, TargetChecks, TargetPlugin
from replicators.connectors.tasks import Tasks
from replicators.targets.postgresql.messages import MESSAGES
from replicators.targets.postgresql.params import PostgresqlTargetParams, places
from replicators.targets.postgresql.setup import setup
from replicators.targets.postgresql.types import fit, fit_column

__all__ = ["PLUGIN"]

MERGE_SECONDS = 0.5
"""A small merge costs this target some hundredths of a second."""


def _checks(params: PostgresqlTargetParams) -> TargetChecks:
    from replicators.targets.postgresql.checks import PostgresqlTargetChecks

    return PostgresqlTargetChecks(params)


def _writer(params: PostgresqlTargetParams, tasks: Tasks) -> Target:
    from replicators.targets.postgresql.writer import writer

    return writer(params, tasks.folder)


def _conflicts(
    params: PostgresqlTargetParams, tables: Sequence[TableId], limit: int
) -> list[Conflict]:
    from replicators.targets.postgresql.conflicts import conflicts

    return conflicts(params, tables, limit)


PLUGIN = TargetPlugin(
    name="postgresql",
    label="PostgreSQL",
    summary="Tables of a PostgreSQL database; each merge is one transaction.",
    params=PostgresqlTargetParams,
    capabilities=TargetCapabilities(
        delivery=Delivery.EXACTLY_ONCE,
        can_read_rows=True,
        merges_together=True,
        can_take_over=True,
        is_replaced_at_once=True,
        has_nul=False,
        modes=tuple(Mode),
    ),
    fit=fit,
    fit_column=fit_column,
    task_modules=(
        "replicators.targets.postgresql.portions",
        "replicators.targets.postgresql.encoding",
    ),
    checks=_checks,
    writer=_writer,
    merge_seconds=lambda _: MERGE_SECONDS,
    setup=setup,
    settles=lambda params: bool(params.origin),
    conflicts=_conflicts,
    places=places,
    messages=MESSAGES,
)
