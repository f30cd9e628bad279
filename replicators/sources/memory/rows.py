"""Rows of the in-memory source, read by key."""

from __future__ import annotations

import pyarrow as pa

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import TableSchema
from replicators.sources.memory.catalog import require_reachable
from replicators.sources.memory.database import database
from replicators.sources.memory.params import MemoryParams


class MemoryRows(Closing):
    """`RowReader` over the database's rows."""

    def __init__(self, params: MemoryParams) -> None:
        self._params = params

    def read(self, table: TableSchema, keys: pa.Table) -> tuple[pa.Table, int]:
        """The rows with these keys."""
        require_reachable(self._params)
        wanted = {tuple(k.values()) for k in keys.select(list(table.key)).to_pylist()}
        end, rows = database(self._params.host).view()
        found = [r for r in rows.get(table.id, []) if tuple(r[n] for n in table.key) in wanted]
        return pa.Table.from_pylist(found, schema=table.arrow_schema()), end

    def close(self) -> None:
        """Nothing is open."""
