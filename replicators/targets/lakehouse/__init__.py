"""The lakehouse target: Iceberg or Delta tables written by Spark. Importing this loads no
driver."""

from __future__ import annotations

from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.model.modes import IN_COLUMNS
from replicators.connectors.target import MergeTarget, TargetChecks, TargetPlugin
from replicators.connectors.tasks import Tasks
from replicators.targets.lakehouse.conf import (
    driver_environment,
    driver_properties,
    jars,
    spark_conf,
)
from replicators.targets.lakehouse.messages import MESSAGES
from replicators.targets.lakehouse.params import LakehouseParams, places
from replicators.targets.lakehouse.setup import setup
from replicators.targets.lakehouse.types import fit
from replicators.targets.lakehouse.versions import apart_seconds

__all__ = ["PLUGIN"]


def _checks(params: LakehouseParams) -> TargetChecks:
    from replicators.targets.lakehouse.checks import LakehouseChecks

    return LakehouseChecks(params)


def _writer(params: LakehouseParams, tasks: Tasks) -> MergeTarget:
    from replicators.targets.lakehouse.writer import LakehouseWriter

    if tasks.spark is None:
        raise TypeError("the lakehouse is written through Spark")
    return LakehouseWriter(params, tasks.spark, tasks.folder)


def _rehearsals(folder: str) -> tuple[LakehouseParams, ...]:
    catalog = f"sqlite:///{folder}/catalog.db"
    return (
        LakehouseParams(warehouse=f"{folder}/iceberg", catalog_uri=catalog),
        LakehouseParams(warehouse=f"{folder}/delta", format="delta"),
    )


def _modules(params: LakehouseParams) -> tuple[str, ...]:
    """Modules that read the tables' state without Spark, and make statements. Importing them takes
    up to two seconds."""
    statements = "sqlglot.dialects.spark"
    if params.format == "delta":
        listed = ("pyiceberg.catalog.hive",) if params.is_listed else ()
        return ("deltalake", *listed, statements)
    if params.is_served:
        return (f"pyiceberg.catalog.{params.catalog}", "pyiceberg.io.pyarrow", statements)
    database = params.catalog_uri.partition(":")[0].partition("+")[0]
    return (
        "pyiceberg.catalog.sql",
        f"sqlalchemy.dialects.{database}",
        "pyiceberg.io.pyarrow",
        statements,
    )


PLUGIN = TargetPlugin(
    name="lakehouse",
    label="Lakehouse",
    rank=10,
    summary="Open tables in a folder or an object store: Apache Iceberg or Delta Lake.",
    params=LakehouseParams,
    unseen="Whether a bucket may be written, and what a REST catalog or Glue allows, is seen "
    "by the assessment; whether another object store may be written, when the replicator starts.",
    capabilities=TargetCapabilities(
        delivery=Delivery.EXACTLY_ONCE,
        can_read_rows=True,
        can_rewind=True,
        has_watermarks=True,
        is_replaced_at_once=True,
        modes=IN_COLUMNS,
    ),
    fit=fit,
    checks=_checks,
    writer=_writer,
    spark_conf=spark_conf,
    driver_properties=driver_properties,
    driver_environment=driver_environment,
    jars=jars,
    history_seconds=lambda params: 60.0 * params.history_minutes,
    apart_seconds=apart_seconds,
    setup=setup,
    rehearsals=_rehearsals,
    modules=_modules,
    places=places,
    messages=MESSAGES,
    icon="building-warehouse",
)
