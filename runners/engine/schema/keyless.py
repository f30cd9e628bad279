"""Which changes of columns the copy of a table without a key can follow."""

from __future__ import annotations

import pyarrow as pa

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import arrow_type
from replicators.connectors.problems.errors import ReplicationError


def check_schema(old: TableSchema, new: TableSchema) -> None:
    """Raise `target:evolve` where a schema change alters the digests of rows that the copy already
    holds: every change but added columns and numbers that become wider."""
    for column in old.supported:
        now = next((c for c in new.supported if c.name == column.name), None)
        if now is None or not _is_alike(arrow_type(column.type), arrow_type(now.type)):
            change = f"column {column.name} {'dropped' if now is None else 'of another type'}"
            raise ReplicationError("target:evolve", table=new.id, change=change)


def _is_alike(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether values of both types have the same digests."""
    if pa.types.is_integer(old) or pa.types.is_floating(old):
        return (pa.types.is_integer(old), pa.types.is_floating(old)) == (
            pa.types.is_integer(new),
            pa.types.is_floating(new),
        )
    if pa.types.is_decimal(old):
        return pa.types.is_decimal(new) and bool(old.scale == new.scale)
    return bool(old == new)
