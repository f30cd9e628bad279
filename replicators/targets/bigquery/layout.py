"""How BigQuery lays a copy out: clustered by its key, so that a merge reads only the blocks that
its key ranges cover, and partitioned where that is asked for. Text only."""

from __future__ import annotations

from replicators.connectors.model.schema import Column, TableSchema
from replicators.targets.bigquery import types
from replicators.targets.bigquery.params import BigQueryParams

MOST_CLUSTERED = 4
"""So many columns can cluster a table."""


def clustered(schema: TableSchema) -> tuple[str, ...]:
    """The first columns of the key, as far as they can cluster a table."""
    found: list[str] = []
    for name in schema.key[:MOST_CLUSTERED]:
        if not types.can_cluster(schema.column(name)):
            break
        found.append(name)
    return tuple(found)


def partitioned(schema: TableSchema, params: BigQueryParams) -> Column | None:
    """The column by which the table is partitioned; None where it has no such column."""
    wanted = params.partition_column.casefold()
    found = [c for c in schema.supported if c.name.casefold() == wanted and wanted]
    return found[0] if found and types.can_partition(found[0]) else None


def clause(schema: TableSchema, params: BigQueryParams) -> str:
    """PARTITION BY and CLUSTER BY of a table with BigQuery's column names."""
    from replicators.targets.bigquery import dialect  # sqlglot: not for pages, which list plugins

    column, cluster, made = partitioned(schema, params), clustered(schema), ""
    if column is not None:
        made = f" PARTITION BY {_unit(dialect.quoted((column.name,)), column, params)}"
    return made + (f" CLUSTER BY {dialect.columns(cluster)}" if cluster else "")


def _unit(name: str, column: Column, params: BigQueryParams) -> str:
    kind, unit = types.native(column), params.partition_unit
    if kind == "DATE" and unit == "day":
        return name
    return f"{kind}_TRUNC({name}, {unit.upper()})"
