"""GetSnapshot: the rows of a table at a place of its changes. The copied rows are folded with the
changes since. A table that is large is folded in portions of its keys, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.model.changes import Op, change_schema
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.pulling import Kept, Part, PulledFeed

PORTION_BYTES = 64 << 20
"""Compressed bytes of files that are folded at once."""


@dataclass(frozen=True, slots=True)
class Portion:
    """One of `of` portions of a table's keys."""

    number: int = 0
    of: int = 1


def portions(kept: Kept) -> list[Portion]:
    """As many portions as the files are large."""
    size = sum(p.size_bytes for p in (*kept.copy, *kept.changes))
    count = 1 + size // PORTION_BYTES
    return [Portion(n, count) for n in range(count)]


def snapshot(feed: PulledFeed, table: TableId, kept: Kept, upto: int) -> Iterator[Folded]:
    """The rows at `upto`, a portion at a time. `subscriber:no-snapshot`, OSError."""
    changes = [p for p in kept.changes if p.first <= upto]
    if not kept.has_copy or (not _is_keyed(feed, kept) and _has_changed(feed, changes, upto)):
        raise ReplicationError("subscriber:no-snapshot", table=table)
    all_of_them = portions(kept)
    if len(all_of_them) > 1 and not (_is_keyed(feed, kept) and _can_divide(feed, changes)):
        all_of_them = [Portion()]
    for portion in all_of_them:
        found = _portion(feed, kept.copy, changes, upto, portion)
        if found is not None:
            yield found


@dataclass(frozen=True, slots=True)
class Folded:
    """Rows of a table, with the columns of `schema`."""

    schema: TableSchema
    rows: pa.Table

    def as_read(self, sequence: int, position: int = 0) -> pa.Table:
        """The rows in the form of a copy at this sequence."""
        wanted, count = change_schema(self.schema), self.rows.num_rows
        values: dict[str, Any] = {
            "_sequence": sequence, "_op": int(Op.READ), "_committed_at": 0, "_transaction": 0,
            "_position": position, "_unchanged": None, "_before": None,
        }  # fmt: skip
        columns = [
            pa.repeat(pa.scalar(values[f.name], f.type), count)
            if f.name in values
            else self.rows.column(f.name)
            for f in wanted
        ]
        return pa.Table.from_arrays(columns, schema=wanted)


def _is_keyed(feed: PulledFeed, kept: Kept) -> bool:
    parts = (*kept.copy[:1], *kept.changes[-1:])
    return all(feed.read(p)[0].key for p in parts)


def _has_changed(feed: PulledFeed, changes: Sequence[Part], upto: int) -> bool:
    """Whether rows were changed or deleted one by one."""
    for part in changes:
        for batch in feed.read(part)[1]:
            mine = batch.filter(pc.less_equal(batch.column("_sequence"), upto)).column("_op")
            one_by_one = pa.array([int(Op.UPDATE), int(Op.DELETE)], mine.type)
            if pc.any(pc.is_in(mine, value_set=one_by_one)).as_py():
                return True
    return False


def _can_divide(feed: PulledFeed, changes: Sequence[Part]) -> bool:
    """Whether no row needs values of a row with another key: none changed its key while the source
    left values out."""
    for part in changes:
        for batch in feed.read(part)[1]:
            moved = pc.and_(
                batch.column("_before").is_valid(), batch.column("_unchanged").is_valid()
            )
            if pc.any(moved).as_py():
                return False
    return True


def _portion(
    feed: PulledFeed, copy: Sequence[Part], changes: Sequence[Part], upto: int, portion: Portion
) -> Folded | None:
    """The rows of one portion of the keys; None where there are none and no schema is known."""
    state: Folded | None = None
    for schema, rows in _by_schema(feed, copy):
        mine = _of_portion(rows, schema, portion).select([c.name for c in schema.columns])
        state = Folded(schema, mine) if state is None else _joined(fitted(state, schema), mine)
    for schema, rows in _by_schema(feed, changes):
        rows = rows.filter(pc.less_equal(rows.column("_sequence"), upto))
        state = Folded(schema, schema.arrow_schema().empty_table()) if state is None else state
        state = applied(fitted(state, schema), _of_portion(rows, schema, portion))
    return state


def _joined(state: Folded, rows: pa.Table) -> Folded:
    return Folded(state.schema, pa.concat_tables([state.rows, rows]))


def _by_schema(feed: PulledFeed, parts: Sequence[Part]) -> Iterator[tuple[TableSchema, pa.Table]]:
    """The rows of neighbouring parts of one schema together."""
    opened = (feed.read(p) for p in parts)
    for schema, some in groupby(opened, key=lambda o: o[0]):
        batches = [b for _, own in some for b in own]
        yield schema, pa.Table.from_batches(batches, change_schema(schema))


def _of_portion(rows: pa.Table, schema: TableSchema, portion: Portion) -> pa.Table:
    """The rows whose key is in the portion. A changed key becomes a delete of the old key and the
    row under the new one."""
    from runners.engine.fold.buckets import of_bucket

    if portion.of == 1 or not schema.key:
        return rows
    moves = "_before" in rows.column_names
    found = of_bucket(rows, schema.key, portion.number, portion.of, moves=moves)
    truncates = rows.filter(pc.equal(rows.column("_op"), int(Op.TRUNCATE)))
    if truncates.num_rows:
        others = found.filter(pc.not_equal(found.column("_op"), int(Op.TRUNCATE)))
        found = pa.concat_tables([others, truncates])
    return found.sort_by("_sequence")


def fitted(state: Folded, schema: TableSchema) -> Folded:
    """The rows with the columns of a later schema. A column is found by its number where the source
    has numbers, otherwise by its name; one that was not there is NULL."""
    if state.schema == schema:
        return state
    by_number = {c.ordinal: c.name for c in state.schema.columns if c.ordinal}
    names = set(state.rows.column_names)
    arrays = []
    for column, kind in zip(schema.columns, schema.arrow_schema().types, strict=True):
        name = by_number.get(column.ordinal, "") if column.ordinal else column.name
        if name in names:
            arrays.append(state.rows.column(name).cast(kind))
        else:
            arrays.append(pa.chunked_array([pa.nulls(state.rows.num_rows, kind)]))
    return Folded(schema, pa.Table.from_arrays(arrays, schema=schema.arrow_schema()))


def applied(state: Folded, changes: pa.Table) -> Folded:
    """The rows after these changes of the same schema."""
    from runners.engine.fold.mirror import fold, fold_inserts, key_codes

    schema = state.schema
    names = [c.name for c in schema.columns]
    folded = fold(changes, schema) if schema.key else fold_inserts(changes, schema)
    rows = state.rows.slice(0, 0) if folded.truncate else state.rows
    if not folded.rows.num_rows:
        return Folded(schema, rows)
    if not schema.key:
        return _joined(Folded(schema, rows), folded.rows.select(names))
    origin = folded.rows.column("_origin").combine_chunks()
    columns = [
        pa.chunked_array(
            [*rows.column(k).chunks, *folded.rows.column(k).chunks,
             pc.if_else(origin.is_valid(), pc.struct_field(origin, [k]),
                        folded.rows.column(k).combine_chunks())],
            type=rows.schema.field(k).type,
        )
        for k in schema.key
    ]  # fmt: skip
    codes = key_codes(columns)
    old, count = rows.num_rows, folded.rows.num_rows
    mine, sources = codes[old : old + count], codes[old + count :]
    is_touched = np.zeros(int(codes.max()) + 1, bool)
    is_touched[mine] = True
    kept = rows.filter(pa.array(~is_touched[codes[:old]]))
    place = np.full(len(is_touched), -1, np.int64)
    place[codes[:old]] = np.arange(old)
    filled = _filled(folded.rows, folded.unsent, rows, place[sources], schema)
    living = filled.filter(pc.invert(folded.rows.column("_delete")))
    return Folded(schema, pa.concat_tables([kept, living.select(names)]))


def _filled(
    rows: pa.Table, unsent: Sequence[str], before: pa.Table,
    place: np.ndarray[Any, Any], schema: TableSchema,
) -> pa.Table:  # fmt: skip
    """The folded rows, with what was not sent taken from the row before."""
    if not unsent:
        return rows
    bits = rows.column("_unsent").combine_chunks()
    at = pa.array(np.where(place < 0, 0, place), mask=place < 0)
    width = (len(schema.columns) + 7) // 8
    flat = np.zeros((len(bits), width), np.uint8)
    some = bits.is_valid().to_numpy(zero_copy_only=False)
    if some.any():
        joined = b"".join(bits.filter(pa.array(some)).to_pylist())
        flat[some] = np.frombuffer(joined, np.uint8).reshape(-1, width)
    for i, column in enumerate(schema.columns):
        if column.name not in unsent:
            continue
        mask = pa.array((flat[:, i >> 3] >> (i & 7)) & 1 != 0)
        old = before.column(column.name).take(at)
        new = pc.if_else(mask, old, rows.column(column.name))
        rows = rows.set_column(rows.schema.get_field_index(column.name), column.name, new)
    return rows
