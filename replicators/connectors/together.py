"""Merges of several tables in one commit of the target, so that readers see all of them at one
moment of the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from replicators.connectors.target import FoldedBatch, TargetTable


@dataclass(frozen=True, slots=True)
class ReadyMerge:
    """A batch that is loaded beside its table. `steps`: what the commit does, as the target knows
    it."""

    table: TargetTable
    batch: FoldedBatch
    steps: Any


@runtime_checkable
class MergesTogether(Protocol):
    """A `MergeTarget` that can apply the batches of several tables in one commit."""

    def ready(self, table: TargetTable, batch: FoldedBatch) -> ReadyMerge | None:
        """Load a batch. None where the token shows that it is merged already. Thread safe for
        different tables. Errors as for `MergeTarget.merge`."""
        ...

    def merge_together(self, merges: Sequence[ReadyMerge]) -> None:
        """Apply the batches of different tables and their sequences in one commit. An error means
        that none of them was applied, unless the answer to the commit was lost: then `ready` says
        so. The error names the table whose statement failed. It names none where the fault is not
        one table's."""
        ...
