"""Keeps only the last version of a row in each transaction. Works by column."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow.images import Mask
from replicators.connectors.feed.rows import Image, Ints, Rows
from replicators.connectors.model.changes import Op


def last_only(rows: Rows, keys: pa.Array) -> Rows:
    """The last row of each transaction and key, in order. `keys` holds each row's key as bytes.
    Rows without a key stay. A row that stays has what the ones before it had: values that it was
    not sent itself, and the old row of the first one."""
    if not len(rows) or keys.null_count == len(keys):
        return rows
    group = _groups(rows, keys)
    order = np.lexsort((np.arange(len(group)), group))
    ordered = group[order]
    is_last = np.append(ordered[1:] != ordered[:-1], True)
    if is_last.all():
        return rows
    is_first = np.append(True, is_last[:-1])
    starts = np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
    kept = order[is_last]
    first = order[starts[is_last]]
    after = _filled(rows, order, starts, kept, is_last)
    made = rows.take(kept)
    op = _composed(rows.op[first], rows.op[kept])
    has_many = first != kept
    before = _first_before(rows, made, first, has_many, op)
    no_before = np.where(
        has_many, _is_unknown(rows, first) & (op == int(Op.UPDATE)), made.no_before
    )
    before = replace(before, is_none=before.is_none | no_before)
    made = replace(made, op=op, after=after, before=before, no_before=no_before)
    return made.take(np.argsort(kept, kind="stable"))


def _groups(rows: Rows, keys: pa.Array) -> Ints:
    """A number for each transaction and key. Each row without a key has its own."""
    key = pc.fill_null(keys.dictionary_encode().indices, 0).to_numpy(zero_copy_only=False)
    transaction = rows.transaction.to_numpy(zero_copy_only=False)
    codes = np.unique(transaction, return_inverse=True)[1].astype(np.int64)
    group: Ints = codes * (int(key.max()) + 1) + key
    alone = keys.is_null().to_numpy(zero_copy_only=False)
    if alone.any():
        group[alone] = group.max() + 1 + np.arange(int(alone.sum()))
    return group


def _composed(first: Ints, last: Ints) -> Ints:
    """What all changes of a row did together."""
    is_new = (first == int(Op.INSERT)) & (last == int(Op.UPDATE))
    is_again = (first != int(Op.INSERT)) & (first != int(Op.READ)) & (last == int(Op.INSERT))
    return np.where(is_new, int(Op.INSERT), np.where(is_again, int(Op.UPDATE), last))


def _is_unknown(rows: Rows, at: Ints) -> Mask:
    """Whether the old row was not sent, or only its key."""
    found = rows.no_before[at]
    for mask in rows.before.unsent.values():
        found |= mask[at]
    return found


def _filled(rows: Rows, order: Ints, starts: Ints, kept: Ints, is_last: Mask) -> Image:
    """The last versions' new rows, with unsent values from the versions before."""
    after = rows.after.take(pa.array(kept))
    values, unsent = dict(after.values), dict(after.unsent)
    for name, mask in rows.after.unsent.items():
        lacks = unsent[name]
        if not lacks.any():
            continue
        is_sent = ~(mask | rows.after.is_none)[order]
        place = np.maximum.accumulate(np.where(is_sent, np.arange(len(order)), -1))
        found = place[is_last]
        can = lacks & (found >= starts[is_last])
        source = np.where(can, order[np.maximum(found, 0)], kept)
        values[name] = rows.after.values[name].take(pa.array(source))
        unsent[name] = lacks & ~can
    return replace(after, values=values, unsent=unsent)


def _first_before(rows: Rows, made: Rows, first: Ints, has_many: Mask, op: Ints) -> Image:
    """The old row of the first version, where there are several. A row that was not there before
    has none."""
    source = rows.before.take(pa.array(first))
    is_gone = op == int(Op.DELETE)
    keeps = ~has_many | (is_gone & source.is_none)  # a deletion shows at least its key
    picked = pa.array(keeps)
    own = made.before
    names = [n for n in own.values if n in own.unsent or n in source.unsent]
    none = np.zeros(len(op), bool)
    return Image(
        {n: pc.if_else(picked, own.values[n], v) for n, v in source.values.items()},
        np.where(keeps, own.is_none, source.is_none),
        {n: np.where(keeps, own.unsent.get(n, none), source.unsent.get(n, none)) for n in names},
        {},
    )
