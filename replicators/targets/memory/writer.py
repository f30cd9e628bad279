"""The writer of the in-memory target. It keeps each table's token as long as the process lives, and
no rows."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa

from replicators.connectors.model.modes import stored
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import (
    FoldedBatch,
    MergeResult,
    SnapshotPlace,
    TargetTable,
    Token,
)
from replicators.targets.memory.params import MemoryParams

_TOKENS: dict[tuple[str, ...], Token] = {}


class MemoryTarget:
    """A `MergeTarget` without versions or files."""

    def __init__(self, params: MemoryParams) -> None:
        self._params = params

    def names(self, table: TableId) -> tuple[str, ...]:
        """The namespace in the parameters, and the table's name."""
        return self._params.namespace, table.name

    def token(self, table: TargetTable) -> Token | None:
        """The token of the last publication or merge."""
        return _TOKENS.get(self.names(table.source))

    def drop(self, table: TargetTable) -> None:
        """Forget the table's token."""
        token = self.token(table)
        if token is not None and token.replicator == table.replicator:
            del _TOKENS[self.names(table.source)]

    def begin_snapshot(self, table: TargetTable, schema: TableSchema) -> None:
        """Refuse a table that belongs to another replicator."""
        token = self.token(table)
        if token is not None and token.replicator != table.replicator:
            name = ".".join(self.names(table.source))
            raise ReplicationError("target:table-taken", table=table.source, target=name)

    def snapshot_place(self, table: TargetTable, schema: TableSchema) -> SnapshotPlace:
        """A temporary folder."""
        return SnapshotPlace(mkdtemp(), stored(schema, table.mode).arrow_schema())

    def snapshot_place_again(
        self, table: TargetTable, schema: TableSchema, folder: str
    ) -> SnapshotPlace | None:
        """None: nothing remains of an earlier attempt."""
        return None

    def load_snapshot_files(
        self, table: TargetTable, schema: TableSchema, paths: Sequence[str]
    ) -> None:
        """The rows are not kept."""

    def publish_snapshot(self, table: TargetTable, schema: TableSchema, sequence: int) -> str:
        """Store the token."""
        token = self.token(table)
        if token is None or token.generation != table.generation:
            own = token.table_uuid if token else str(uuid.uuid4())
            token = Token(table.replicator, table.generation, sequence, own)
            _TOKENS[self.names(table.source)] = token
        return token.table_uuid

    def merge(self, table: TargetTable, batch: FoldedBatch) -> MergeResult:
        """Advance the token."""
        token = self.token(table)
        if token is None:
            raise ReplicationError("target:table-missing", table=table.source)
        if (token.replicator, token.generation) != (table.replicator, table.generation):
            raise ReplicationError("target:table-replaced", table=table.source)
        if batch.is_known(token.sequence):
            return MergeResult(False, token.table_uuid)
        moved = Token(table.replicator, table.generation, batch.sequence, token.table_uuid)
        _TOKENS[self.names(table.source)] = moved
        return MergeResult(True, token.table_uuid)

    def missing_rows(self, table: TargetTable, batch: FoldedBatch) -> pa.Table:
        """No rows: nothing is looked up, so nothing is missing."""
        arrow = batch.schema.arrow_schema()
        return pa.schema([arrow.field(n) for n in batch.schema.key]).empty_table()

    def evolve(self, table: TargetTable, old: TableSchema, new: TableSchema) -> list[str]:
        """There is nothing to change."""
        return []

    def fill_column(self, table: TargetTable, column: Column, value: Any) -> None:
        """There are no rows."""
