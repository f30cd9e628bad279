"""Writes BigQuery: `SqlMergeTarget` with BigQuery's names, job ids and layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql.client import Names
from replicators.connectors.sql.evolve import Types
from replicators.connectors.sql.places import one_per_table
from replicators.connectors.sql.taken import row_of
from replicators.connectors.sql.target import SqlMergeTarget, SqlPlaces
from replicators.connectors.target import (
    CurrentRows,
    FoldedBatch,
    MergeResult,
    SnapshotPlace,
    TargetTable,
    Token,
)
from replicators.targets.bigquery import naming, types
from replicators.targets.bigquery.client import BigQueryClient
from replicators.targets.bigquery.connection import open_client
from replicators.targets.bigquery.cost import Estimates, Used, cost_of
from replicators.targets.bigquery.errors import translate
from replicators.targets.bigquery.jobs import work_of
from replicators.targets.bigquery.params import BigQueryParams


class BigQueryWriter:
    """A `MergeTarget`. Thread safe for different tables; one thread at a time for each table.

    Its tables have BigQuery's column names, so schemas are renamed on their way in, and keys on
    their way out. Files keep the source's names (`client.source_names`).
    """

    def __init__(self, params: BigQueryParams, folder: str) -> None:
        self._params = params
        try:
            opened = open_client(params)
        except Exception as err:
            raise translate(err, params.project) from err
        self.client = BigQueryClient(opened, params)
        self._staged: dict[TableId, Names | None] = {}
        self._estimates = Estimates()
        places = SqlPlaces(
            lambda table: naming.names(params, table),
            folder,
            one_per_table,
            lambda names: naming.view(params, names),
            frozenset({naming.SEQUENCE}) if params.sequence_column else frozenset(),
        )
        self._inner = SqlMergeTarget(self.client, places, Types(types.native, types.is_wider))

    @contextmanager
    def _work(self, table: TargetTable, sequence: int | str = "") -> Iterator[Used]:
        of = work_of(table.replicator, self.names(table.source))
        detail = "_".join(str(p) for p in (table.generation, sequence) if p)
        self.client.number(int(sequence or 0))
        with self.client.jobs.work(of, detail) as used:
            yield used

    def names(self, table: TableId) -> tuple[str, ...]:
        """Project, dataset and table."""
        return naming.names(self._params, table)

    def token(self, table: TargetTable) -> Token | None:
        """See `MergeTarget.token`."""
        with self._work(table):
            return self._inner.token(table)

    def begin_snapshot(self, table: TargetTable, schema: TableSchema) -> None:
        """See `MergeTarget.begin_snapshot`. `target:bigquery-columns`."""
        refuse_shared(self._params, schema)
        with self._work(table):
            try:
                self._inner.begin_snapshot(table, self._shown(schema))
            except ReplicationError as err:
                if err.code != "target:table-taken" or not self._may_remove(table):
                    raise
                self.client.remove(self.names(table.source))
                self._inner.begin_snapshot(table, self._shown(schema))

    def _may_remove(self, table: TargetTable) -> bool:
        """Whether a table that no replicator made gives way to a copy."""
        if self._params.existing_tables != "replace":
            return False
        return row_of(self.client, self.names(table.source)) is None

    def _shown(self, schema: TableSchema) -> TableSchema:
        return naming.shown(self._params, schema)

    def snapshot_place(self, table: TargetTable, schema: TableSchema) -> SnapshotPlace:
        """See `MergeTarget.snapshot_place`. The files have the source's names."""
        return self._inner.snapshot_place(table, schema)

    def snapshot_place_again(
        self, table: TargetTable, schema: TableSchema, folder: str
    ) -> SnapshotPlace | None:
        """See `MergeTarget.snapshot_place_again`."""
        return self._inner.snapshot_place_again(table, schema, folder)

    def load_snapshot_files(
        self, table: TargetTable, schema: TableSchema, paths: Sequence[str]
    ) -> None:
        """See `MergeTarget.load_snapshot_files`."""
        with self._work(table):
            self._inner.load_snapshot_files(table, self._shown(schema), paths)

    def publish_snapshot(self, table: TargetTable, schema: TableSchema, sequence: int) -> str:
        """See `MergeTarget.publish_snapshot`."""
        with self._work(table, sequence):
            return self._inner.publish_snapshot(table, self._shown(schema), sequence)

    def merge(self, table: TargetTable, batch: FoldedBatch) -> MergeResult:
        """See `MergeTarget.merge`."""
        renamed = self._renamed(batch)
        with self._work(table, batch.sequence) as used:
            used.wants_estimate = bool(batch.rows) and self._estimates.is_due(table.source)
            done = self._inner.merge(table, renamed)
            self._staged[table.source] = self.client.last_loaded
            if done.was_applied and self._params.keep_staging and batch.paths and batch.rows:
                self.client.keep(self.names(table.source), job="keep")
        if used.estimate is not None:
            self._estimates.made(table.source)
        return replace(done, cost=cost_of(used, renamed)) if done.was_applied else done

    def missing_rows(self, table: TargetTable, batch: FoldedBatch) -> pa.Table:
        """See `MergeTarget.missing_rows`."""
        with self._work(table, batch.sequence):
            found = self._inner.missing_rows(table, self._renamed(batch))
        return found.rename_columns(list(batch.schema.key))

    @contextmanager
    def open_rows(self, table: TargetTable, schema: TableSchema) -> Iterator[CurrentRows]:
        """See `ReadsRows.open_rows`."""
        with self._work(table), self._inner.open_rows(table, schema) as rows:
            yield rows

    def evolve(self, table: TargetTable, old: TableSchema, new: TableSchema) -> list[str]:
        """See `MergeTarget.evolve`. `target:bigquery-columns`."""
        refuse_shared(self._params, new)
        with self._work(table):
            return self._inner.evolve(table, self._shown(old), self._shown(new))

    def fill_column(self, table: TargetTable, column: Column, value: Any) -> None:
        """See `MergeTarget.fill_column`."""
        with self._work(table):
            shown = replace(column, name=naming.column(column.name))
            self._inner.fill_column(table, shown, value)

    def drop(self, table: TargetTable) -> None:
        """See `Target.drop`."""
        names = self.names(table.source)
        with self._work(table):
            if staged := self._staged.pop(table.source, None):
                self.client.remove(staged)
            self._inner.drop(table)
            if row_of(self.client, names) is None:
                self.client.remove(naming.staging_names(names))
            if not self._params.dataset:
                self.client.remove_dataset(names[:-1])

    def _renamed(self, batch: FoldedBatch) -> FoldedBatch:
        schema = self._shown(batch.schema)
        if schema is batch.schema:
            return batch
        return replace(batch, schema=schema, unsent=tuple(naming.column(n) for n in batch.unsent))

    def close(self) -> None:
        """Remove this process's staging tables and close the connections."""
        self._inner.close()


def refuse_shared(params: BigQueryParams, schema: TableSchema) -> None:
    """`target:bigquery-columns` where two columns would become one."""
    for column, other in naming.shared(params, schema):
        raise ReplicationError(
            "target:bigquery-columns", table=schema.id, column=column, other=other
        )
