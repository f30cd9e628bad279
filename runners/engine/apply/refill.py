"""The last resort for values that the log did not carry and the target does not have: reads the
source's row by its key (CORRECTNESS 9).

Why that is right. The rows are read at a moment whose log position P is known. They are used only
when the log is decoded up to P. So every change that they may show is either folded into this merge
or follows in a later one:
- a change of a value after this merge's end was sent: it follows, and sets the value again;
- a row that is gone at P is left out: its delete, or its update under another key, is folded or
  follows, and an update that lacks values comes back here;
- the row under that key is the same row, unless rows changed their keys in between without sending
  all values: then what was read is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors import files
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.source import RowReader
from replicators.connectors.target import FoldedBatch, MergeTarget, TargetTable
from runners.engine.fold.mirror import key_codes, unsent_matrix
from runners.engine.sizes import NO_LIMITS, Limits
from runners.engine.store.protocol import ChangeFileRow


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read: the rows for these keys, at `position`, for a merge that ended at
    `sequence`."""

    keys: pa.Table
    rows: pa.Table
    position: int
    sequence: int


class Filler:
    """Remembers what it read until the log has reached that position. One thread at a time for each
    table."""

    def __init__(
        self,
        writer: MergeTarget,
        reader: Callable[[], RowReader] | None,
        limits: Limits = NO_LIMITS,
    ) -> None:
        self._writer = writer
        self._limits = limits
        self._reader = reader
        self._read: dict[tuple[TableId, int], _Read] = {}

    def fill(
        self,
        table: TargetTable,
        batch: FoldedBatch,
        files: Sequence[ChangeFileRow],
        position: int,
        also: pa.Table | None = None,
        *,
        is_cut: bool = False,
    ) -> FoldedBatch | None:
        """The batch with its missing values. None means: not yet; fold again when more of the log
        is decoded. `files` are all files of the table that wait for a merge; the log is decoded up
        to `position`. `target:row-missing` where the source can't help. `also`: keys of further
        rows whose values are wanted. `is_cut`: whether the batch ends before the frontier, so that
        it will not grow however much of the log is decoded."""
        if self._reader is None:
            raise ReplicationError("target:row-missing", table=table.source)
        missing = _joined(self._writer.missing_rows(table, batch), also)
        place = table.source, table.generation
        read = self._read.pop(place, None)
        if read is not None and _moved(read, files):
            if batch.sequence <= read.sequence:
                if is_cut:
                    raise ReplicationError("target:row-missing", table=table.source)
                return None  # Files beyond the frontier are listed before it moves past them.
            read = None
        if read is None or not _covers(read, missing):
            with self._reader() as reader:
                rows, end = reader.read(batch.schema, missing)
            self._limits.refuse(rows, batch.schema)
            read = _Read(missing, rows, end, batch.sequence)
        if position < read.position:
            self._read[place] = read
            return None
        return _filled(batch, missing, read.rows)

    def forget(self, table: TargetTable) -> None:
        """A merge needed nothing of what was read. It merged newer changes, so a later merge has to
        read again."""
        self._read.pop((table.source, table.generation), None)


def _joined(keys: pa.Table, more: pa.Table | None) -> pa.Table:
    """The keys of both tables, each once."""
    if more is None:
        return keys
    both = pa.concat_tables([keys, more.cast(keys.schema)])
    return both.group_by(both.column_names).aggregate([]).cast(keys.schema)


def _moved(read: _Read, files: Sequence[ChangeFileRow]) -> bool:
    """Whether rows may have changed their keys since then without sending all of their values."""
    return any(f.has_key_changes and f.unsent and f.last_sequence > read.sequence for f in files)


def _covers(read: _Read, missing: pa.Table) -> bool:
    """Whether all of these keys were asked for."""
    if missing.schema != read.keys.schema:
        return False
    asked, wanted = codes_of([read.keys, missing])
    return bool(np.isin(wanted, asked).all())


def codes_of(tables: Sequence[pa.Table]) -> list[np.ndarray[Any, Any]]:
    """For each table, a number per row. Equal rows have equal numbers."""
    joined = pa.concat_tables(tables)
    codes = key_codes([joined.column(n) for n in joined.column_names])
    return np.split(codes, np.cumsum([t.num_rows for t in tables])[:-1].tolist())


def _filled(batch: FoldedBatch, missing: pa.Table, rows: pa.Table) -> FoldedBatch:
    """The batch with its files written again: `rows` gives the unsent values of the missing
    rows."""
    unsent: set[str] = set()
    has_origins = False
    for path in batch.paths:
        folded = _patched(files.read_table(path), batch.schema, missing, rows)
        files.write_table(
            folded, path, compression="zstd", compression_level=1, use_dictionary=False
        )
        bits = folded.column("_unsent")
        if bits.null_count < len(bits):
            at, _ = unsent_matrix(bits, batch.schema)
            unsent |= {batch.schema.columns[i].name for i in at}
        origins = folded.column("_origin")
        has_origins = has_origins or origins.null_count < len(origins)
    return replace(batch, unsent=tuple(sorted(unsent)), has_origins=has_origins)


def _patched(folded: pa.Table, schema: TableSchema, missing: pa.Table, rows: pa.Table) -> pa.Table:
    keys = list(schema.key)
    mine, lost, read = codes_of([folded.select(keys), missing, rows.select(keys)])
    is_lost = np.isin(mine, lost) & folded.column("_unsent").is_valid().to_numpy()
    order = np.argsort(read)
    places = np.minimum(np.searchsorted(read[order], mine), max(len(read) - 1, 0))
    found = is_lost & (read[order][places] == mine) if len(read) else np.zeros(len(mine), bool)
    source = np.arange(len(mine))
    source[found] = len(mine) + order[places[found]]
    at, matrix = unsent_matrix(folded.column("_unsent"), schema)
    for index, column in enumerate(at):
        name = schema.columns[column].name
        place = np.where(matrix[:, index] == 1, source, np.arange(len(mine)))
        values = pa.chunked_array(
            [*folded.column(name).chunks, *rows.column(name).chunks], folded.schema.field(name).type
        )
        folded = folded.set_column(
            folded.schema.get_field_index(name), name, values.take(pa.array(place))
        )
    for name in ("_unsent", "_origin"):
        blank = pa.array(np.arange(len(mine)), mask=is_lost)
        position = folded.schema.get_field_index(name)
        folded = folded.set_column(position, name, folded.column(name).take(blank))
    gone = pc.or_(folded.column("_delete"), pa.array(is_lost & ~found))
    return folded.set_column(folded.schema.get_field_index("_delete"), "_delete", gone)
