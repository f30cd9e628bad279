"""The messages of changes before they are written: which there are, in which order, and which
values each of them has. Works by column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow import json_text
from replicators.connectors.arrow.images import Mask, fill_unsent, key_differs, unsent_masks
from replicators.connectors.feed.options import CHANGE, DIFF, MESSAGE, FeedOptions
from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import Array, Float

Ints = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Image:
    """Row images. `values` has the columns; `is_none` marks rows that have no image. The other two
    mark values that are left out: the source did not send an `unsent` one; an `equal` one did not
    change and was not asked for."""

    values: Mapping[str, pa.Array]
    is_none: Mask
    unsent: Mapping[str, Mask]
    equal: Mapping[str, Mask]

    def left(self) -> dict[str, Mask]:
        """The rows in which a value is left out, for each column that has any."""
        found = {n: self.unsent[n] for n in self.unsent}
        for name, mask in self.equal.items():
            found[name] = found[name] | mask if name in found else mask
        return {name: mask for name, mask in found.items() if mask.any()}

    def take(self, at: pa.Array) -> Image:
        """The images of some rows."""
        rows = at.to_numpy()
        return Image(
            {n: v.take(at) for n, v in self.values.items()},
            self.is_none[rows],
            {n: m[rows] for n, m in self.unsent.items()},
            {n: m[rows] for n, m in self.equal.items()},
        )


@dataclass(frozen=True, slots=True)
class Rows:
    """One row for each change, two for a change of the key: the deletion of the old key, then the
    insertion of the row under its new key. `part` numbers these. `op` is an `Op`. `key` is empty
    for a table without a key. `no_before`: updates whose old row the source did not send."""

    sequence: pa.Array
    op: Ints
    part: Ints
    committed_at: pa.Array
    transaction: pa.Array
    key: Mapping[str, pa.Array]
    after: Image
    before: Image
    no_before: Mask

    def __len__(self) -> int:
        return len(self.op)

    def take(self, at: Ints) -> Rows:
        """Some of the rows."""
        rows = pa.array(at)
        return Rows(
            self.sequence.take(rows),
            self.op[at],
            self.part[at],
            self.committed_at.take(rows),
            self.transaction.take(rows),
            {n: v.take(rows) for n, v in self.key.items()},
            self.after.take(rows),
            self.before.take(rows),
            self.no_before[at],
        )


def rows_of(
    batch: pa.RecordBatch, schema: TableSchema, options: FeedOptions, floor: int = 0
) -> Rows:
    """The rows of a batch in the form of `changes.change_schema`. A change that was committed
    before `floor` (microseconds) counts as one of then."""
    op = batch.column("_op").to_numpy(zero_copy_only=False)
    before = _before(batch)
    has_before = np.zeros(len(op), bool) if before is None else _valid(before)
    values = {c.name: batch.column(c.name) for c in schema.supported}
    unsent = unsent_masks(batch.column("_unchanged"), schema)
    unsent = {n: m for n, m in unsent.items() if n in values}
    if schema.full_before and before is not None:
        fill_unsent(values, unsent, before)
    old = {} if before is None else {f.name: pc.struct_field(before, [f.name]) for f in before.type}
    committed = batch.column("_committed_at")
    if floor:
        micros = np.maximum(committed.cast(pa.int64()).to_numpy(), floor)
        committed = pa.array(micros).cast(committed.type)
    found = _images(op, has_before, values, unsent, old, schema)
    rows = Rows(
        batch.column("_sequence"),
        op,
        np.zeros(len(op), np.int8),
        committed,
        batch.column("_transaction"),
        {n: values[n] for n in schema.key},
        *found,
    )
    rows = _with_old_keys(rows, old, has_before, schema)
    if options.truncates != MESSAGE and (rows.op == int(Op.TRUNCATE)).any():
        rows = rows.take(np.flatnonzero(rows.op != int(Op.TRUNCATE)))
    return rows


def fact_name(word: str, schema: TableSchema, options: FeedOptions) -> str:
    """The name of a field that is about the change: `updated` or `operation`. Beside a row's own
    columns it begins with `_`, and with more of them where a column has that name."""
    if options.shape == DIFF:
        return word
    columns = {c.name for c in schema.columns}
    name = f"_{word}"
    while name in columns:
        name = f"_{name}"
    return name


def only_changed(rows: Rows, schema: TableSchema, options: FeedOptions) -> Rows:
    """With the record CHANGE: mark values of updates that did not change. The source's old row
    tells. Where it sends none, all that it sent counts as changed. A key's values stay."""
    if options.record != CHANGE:
        return rows
    is_update = rows.op == int(Op.UPDATE)
    can = is_update & ~rows.no_before
    equal = {}
    for column in schema.supported:
        name = column.name
        if name in schema.key or name not in rows.before.values or not can.any():
            continue
        was, now = rows.before.values[name], rows.after.values[name]
        mask = can & _is_same(was, now, column)
        if mask.any():
            equal[name] = mask
    # What was not sent did not change either. Only an update may leave it out without saying so.
    unchanged = {n: m & is_update for n, m in rows.after.unsent.items()}
    named = {n: m & ~is_update for n, m in rows.after.unsent.items()}
    both = {n: equal.get(n, False) | unchanged.get(n, False) for n in {**equal, **unchanged}}
    after = replace(rows.after, unsent={n: m for n, m in named.items() if m.any()}, equal=both)
    return replace(rows, after=after, before=replace(rows.before, equal=equal))


def _images(
    op: Ints,
    has_before: Mask,
    values: dict[str, pa.Array],
    unsent: dict[str, Mask],
    old: dict[str, pa.Array],
    schema: TableSchema,
) -> tuple[Image, Image, Mask]:
    """The new rows, the old rows, and the updates without an old row."""
    is_delete = op == int(Op.DELETE)
    is_gone = is_delete | (op == int(Op.TRUNCATE))
    after = Image(values, is_gone, {n: m & ~is_gone for n, m in unsent.items()}, {})
    is_update = op == int(Op.UPDATE)
    is_whole = has_before & schema.full_before & (is_update | is_delete)
    has_key = is_delete & ~is_whole & bool(schema.key)
    shown: dict[str, pa.Array] = {}
    lacks: dict[str, Mask] = {}
    for name, now in values.items():
        if name in old:  # the whole old row, or the key of one
            shown[name] = (
                now if not has_before.any() else pc.if_else(pa.array(has_before), old[name], now)
            )
        else:
            shown[name] = now
        if name not in schema.key and has_key.any():
            lacks[name] = has_key
    before = Image(shown, ~(is_whole | has_key), lacks, {})
    return after, before, is_update & ~is_whole


def _with_old_keys(
    rows: Rows, old: dict[str, pa.Array], has_before: Mask, schema: TableSchema
) -> Rows:
    """The rows, with the key of the old row where it tells one, and two for a changed key."""
    if not schema.key or not has_before.any():
        return rows
    was = [old[n] for n in schema.key]
    is_update = rows.op == int(Op.UPDATE)
    moved = is_update & has_before & key_differs(list(rows.key.values()), was)
    of_old = pa.array(has_before & (rows.op == int(Op.DELETE)))
    key = {n: pc.if_else(of_old, o, rows.key[n]) for n, o in zip(schema.key, was, strict=True)}
    rows = replace(rows, key=key)
    if not moved.any():
        return rows
    place = np.repeat(np.arange(len(rows)), np.where(moved, 2, 1))
    is_second = np.concatenate(([False], place[1:] == place[:-1]))
    is_first = moved[place] & ~is_second
    taken = rows.take(place)
    old_key = {n: o.take(pa.array(place)) for n, o in zip(schema.key, was, strict=True)}
    first = pa.array(is_first)
    both = is_first | is_second
    lacks = dict(taken.before.unsent)
    if not schema.full_before:
        for name in taken.before.values:
            if name not in schema.key:
                lacks[name] = lacks.get(name, False) | is_first
    shown = dict(taken.before.values)
    for name in schema.key:
        shown[name] = pc.if_else(first, old_key[name], shown[name])
    after_none = taken.after.is_none | is_first
    return replace(
        taken,
        op=np.where(is_first, int(Op.DELETE), np.where(is_second, int(Op.INSERT), taken.op)),
        part=is_second.astype(np.int8),
        key={n: pc.if_else(first, old_key[n], v) for n, v in taken.key.items()},
        after=replace(
            taken.after,
            is_none=after_none,
            unsent={n: m & ~is_first for n, m in taken.after.unsent.items()},
        ),
        before=Image(shown, (taken.before.is_none & ~is_first) | is_second, lacks, {}),
        no_before=taken.no_before & ~both,
    )


def _before(batch: pa.RecordBatch) -> pa.StructArray | None:
    if "_before" not in batch.schema.names:
        return None
    before = batch.column("_before")
    return None if before.null_count == len(before) else before


def _valid(array: pa.Array) -> Mask:
    valid: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _is_same(was: pa.Array, now: pa.Array, column: Column) -> Mask:
    """Whether two values are the same, so that no reader can tell them apart. NULL is NULL."""
    if isinstance(column.type, Float | Array):  # -0.0 is not 0.0, NaN is NaN; no kernel for lists
        was, now = json_text.value(was, column.type), json_text.value(now, column.type)
    is_equal = pc.fill_null(pc.equal(was, now), False)
    same: Mask = pc.or_(is_equal, pc.and_(was.is_null(), now.is_null())).to_numpy(
        zero_copy_only=False
    )
    return same
