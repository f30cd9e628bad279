"""What a target provides that can take over tables which hold the source's rows already: those of a
dump, or of another tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.problem import Problem
from replicators.connectors.target import TargetTable


@runtime_checkable
class TakesOver(Protocol):
    """A `MergeTarget` that can begin with rows that somebody else wrote."""

    def take_over(self, table: TargetTable, schema: TableSchema, sequence: int) -> str:
        """Record that the existing table is this replicator's, and holds the rows up to `sequence`.
        No row is written. Returns the table's UUID; a repeat changes nothing.

        Raises `target:take-over-missing`, `target:take-over-columns`, and `target:table-taken`
        where the table is another replicator's.
        """
        ...


@runtime_checkable
class TakeOverChecks(Protocol):
    """`TargetChecks` of a target that can take over tables."""

    def take_over(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        """Tables that can't be taken over, and what of theirs may refuse changes. It answers for
        `target:table-taken` too, in the place of `tables`. Makes and changes nothing."""
        ...
