"""A table as the target's plugin knows it."""

from __future__ import annotations

from replicators.connectors.target import TargetTable
from runners.engine.store.protocol import TableRow


def target_table(replicator: str, row: TableRow) -> TargetTable:
    """The table as the target's writer wants it named."""
    return TargetTable(row.id, replicator, row.generation, row.table_uuid, row.mode)
