"""A `SqlMergeTarget` that merges several tables in one transaction (`MergesTogether`).

The order of writes: each batch is loaded into its staging table, in transactions of their own. Then
one transaction changes all tables and their progress rows, table by table in the order of their
names. So two such transactions never wait for each other in a circle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from replicators.connectors import failpoints
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql.client import SqlClient
from replicators.connectors.sql.evolve import Types
from replicators.connectors.sql.steps import Step
from replicators.connectors.sql.target import SqlMergeTarget, SqlPlaces
from replicators.connectors.target import FoldedBatch, TargetTable
from replicators.connectors.together import ReadyMerge


class StepsOfTables(Sequence[Step]):
    """The steps of several tables, one table after the other. `table`: whose step the client took
    last; None before the first step, and once all of them are done."""

    def __init__(self, before: Sequence[Step], merges: Sequence[ReadyMerge]) -> None:
        self._steps: list[tuple[Step, TargetTable | None]] = [(step, None) for step in before]
        self._steps += [(step, merge.table) for merge in merges for step in merge.steps]
        self.table: TargetTable | None = None

    def __iter__(self) -> Iterator[Step]:
        for step, table in self._steps:
            self.table = table
            yield step
        self.table = None

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, at: int) -> Step: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Step]: ...
    def __getitem__(self, at: int | slice) -> Step | Sequence[Step]:
        if isinstance(at, slice):
            return [step for step, _ in self._steps[at]]
        return self._steps[at][0]


class TogetherTarget(SqlMergeTarget):
    """`before`: what its transactions of several tables begin with."""

    def __init__(
        self, client: SqlClient, places: SqlPlaces, types: Types, before: Sequence[Step] = ()
    ) -> None:
        super().__init__(client, places, types)
        self._before = before

    def ready(self, table: TargetTable, batch: FoldedBatch) -> ReadyMerge | None:
        """See `MergesTogether`."""
        with self._of(table), self._late(table):
            _, steps = self._prepared(table, batch)
            return ReadyMerge(table, batch, steps) if steps else None

    def merge_together(self, merges: Sequence[ReadyMerge]) -> None:
        """See `MergesTogether`."""
        ordered = sorted(merges, key=lambda merge: self.names(merge.table.source))
        steps = StepsOfTables(self._before, ordered)
        try:
            self._client.run(steps, job=self._job("merge"))
        except ReplicationError as err:
            if steps.table is None:
                raise
            with self._of(steps.table), self._late(steps.table):
                raise err
        failpoints.hit("batch_merged")
        for merge in ordered:
            self._done(merge.table, merge.batch)
