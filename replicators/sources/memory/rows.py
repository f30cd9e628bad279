"""Rows of the in-memory source, read by key."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.sources.memory.catalog import require_reachable
from replicators.sources.memory.params import MemoryParams

ROWS: dict[TableId, list[dict[str, Any]]] = {}
END = 0


class MemoryRows(Closing):
    """`RowReader` over `ROWS`, which tests fill; nothing moves, so the position is `END`."""

    def __init__(self, params: MemoryParams) -> None:
        self._params = params

    def read(self, table: TableSchema, keys: pa.Table) -> tuple[pa.Table, int]:
        """The rows with these keys."""
        require_reachable(self._params)
        wanted = {tuple(k.values()) for k in keys.select(list(table.key)).to_pylist()}
        found = [r for r in ROWS.get(table.id, []) if tuple(r[n] for n in table.key) in wanted]
        return pa.Table.from_pylist(found, schema=table.arrow_schema()), END

    def close(self) -> None:
        """Nothing is open."""
