"""Reading a target's rows back, for comparing them with the source's and for repairing them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa

from replicators.connectors.model.schema import TableSchema

if TYPE_CHECKING:
    from replicators.connectors.target import TargetTable


class CurrentRows(Protocol):
    """The current rows of one version of a target table.

    Current rows are those that the source has too: with soft delete the rows that are not deleted,
    with history the current versions. A table without a key gives a row as often as it holds it.
    Merges that come later are not seen. It can be pickled, so tasks may read parts side by side.

    Batches have the chosen columns in the order asked, in the neutral Arrow types of the table's
    schema (`TableSchema.arrow_schema()`), as the source's chunks have them. Rows come in any order.
    Errors are `ReplicationError`s.
    """

    def rows(
        self, columns: Sequence[str] = (), lower: Any = None, upper: Any = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows with these columns of the table's own (empty: all). `lower` and `upper` limit
        the first key column: `lower` <= value < `upper`, as Python values or Arrow scalars; text is
        ordered byte by byte. None: no limit. A few thousand rows a batch are in memory at a
        time."""
        ...

    def rows_by_keys(self, keys: pa.Table, columns: Sequence[str] = ()) -> pa.Table:
        """Those of the rows with these keys that exist. `keys` has the key's columns in their
        neutral types, and at most a few thousand rows."""
        ...


@runtime_checkable
class Divisible(Protocol):
    """`CurrentRows` that can be read in parts, in tasks side by side."""

    def parts(self, bytes_a_part: int) -> Sequence[CurrentRows]:
        """The same rows in parts of about so many bytes as the target stores them. Each row is in
        one part. At least one part."""
        ...


@runtime_checkable
class ReadsRows(Protocol):
    """A `MergeTarget` whose rows can be read back."""

    def open_rows(
        self, table: TargetTable, schema: TableSchema
    ) -> AbstractContextManager[CurrentRows]:
        """Fix the live table's present version, for as long as the context lasts. `schema`: the
        table's own columns as the target has them now. `target:table-missing` where there is no
        live table."""
        ...
