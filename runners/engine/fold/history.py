"""Folds change rows into versions for a history: one version for each key and transaction that
touched it (CORRECTNESS 6-9). Pure: Arrow to Arrow.

A version is valid from its transaction's commit until its key's next version begins. Commit times
may go back where a clock does, so no version begins before the previous one: `_valid_from =
max(commit time, previous _valid_from)`. This fold compares the versions of the batch; the target's
statement compares them with what the target holds. A version that begins after a TRUNCATE of the
batch never begins before the TRUNCATE.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import pyarrow as pa

from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import TableSchema
from runners.engine.fold.mirror import CodedKeys, Folded, coded_keys, unsent_matrix
from runners.engine.fold.soft_delete import finished, gathered, unsent_columns

_INSERT, _DELETE, _TRUNCATE = int(Op.INSERT), int(Op.DELETE), int(Op.TRUNCATE)
_MOMENT = pa.timestamp("us", tz="UTC")
NEVER = np.iinfo(np.int64).min


@nb.njit(cache=True, nogil=True)
def _touch(k, run, marked, touched, count):  # type: ignore[no-untyped-def]
    """Note that the transaction `run` touches key k. Returns how many keys it touches now."""
    if marked[k] == run:
        return count
    marked[k] = run
    touched[count] = k
    return count + 1


@nb.njit(cache=True, nogil=True)
def _apply(r, op, new, old, unsent, run, key, marked, touched, count):  # type: ignore[no-untyped-def]  # noqa: C901 - one row
    """Apply one row to the keys' states `key` = (alive, was, origin, image, sent_by). Returns how
    many keys its transaction touches now. `was[k]`: the first row of the key shows that the key
    existed before."""
    alive, was, origin, image, sent_by = key
    if op[r] == _TRUNCATE:
        for k in range(len(alive)):
            if alive[k] >= 0:
                alive[k] = 0
                count = _touch(k, run, marked, touched, count)
        return count
    k = new[r]
    count = _touch(k, run, marked, touched, count)
    if alive[k] < 0 and op[r] != _INSERT and old[r] < 0:
        was[k] = 1
    if op[r] == _DELETE:
        alive[k] = 0
        return count
    if op[r] == _INSERT:
        origin[k] = -1
    elif old[r] >= 0:
        j = old[r]
        count = _touch(j, run, marked, touched, count)
        if alive[j] < 0:
            was[j] = 1
        origin[k] = origin[j]
        sent_by[k, :] = sent_by[j, :]
        alive[j] = 0
    alive[k] = 1
    image[k] = r
    for c in range(unsent.shape[1]):
        if unsent[r, c] == 0:
            sent_by[k, c] = r
    return count


@nb.njit(cache=True, nogil=True)
def replay_history(op, new, old, unsent, transaction, at, keys):  # type: ignore[no-untyped-def]
    """Replay n rows, transaction by transaction, over `keys` key codes. `at` is in microseconds
    since the epoch. Returns the versions (key, image row, origin's key, sending row per partial
    column, from, to or NEVER), the keys whose current row at the target ends (key, when), and the
    first TRUNCATE's row (-1: none)."""
    n, columns = len(op), unsent.shape[1]
    alive = np.full(keys, -1, np.int8)  # -1: not touched yet
    was = np.zeros(keys, np.uint8)
    origin, image = np.arange(keys), np.full(keys, -1, np.int64)
    sent_by = np.full((keys, columns), -1, np.int64)
    latest = np.full(keys, NEVER, np.int64)
    current, closed = np.full(keys, -1, np.int64), np.zeros(keys, np.uint8)
    marked, touched = np.full(keys, -1, np.int64), np.empty(keys, np.int64)
    versions = np.empty((n, 5), np.int64)  # key, image, origin, from, to
    sent = np.empty((n, columns), np.int64)
    closes = np.empty((keys, 2), np.int64)
    made, ended, count, run, truncated = 0, 0, 0, 0, -1
    for r in range(n):
        if op[r] == _TRUNCATE and truncated < 0:
            truncated = r
        key = (alive, was, origin, image, sent_by)
        count = _apply(r, op, new, old, unsent, run, key, marked, touched, count)
        if r + 1 < n and transaction[r + 1] == transaction[r]:
            continue
        for i in range(count):
            k = touched[i]
            moment = max(at[r], latest[k])
            if current[k] >= 0:
                versions[current[k], 4] = latest[k] = moment
                current[k] = -1
            elif closed[k] == 0:
                closed[k] = 1
                closes[ended, 0] = k
                closes[ended, 1] = at[truncated] if truncated >= 0 else moment
                if truncated >= 0 or was[k] == 1:
                    latest[k] = closes[ended, 1]
                    moment = max(moment, latest[k])
                ended += 1
            if alive[k] == 1:
                latest[k] = moment
                versions[made, 0], versions[made, 1], versions[made, 2] = k, image[k], origin[k]
                versions[made, 3], versions[made, 4] = moment, NEVER
                sent[made, :] = sent_by[k, :]
                current[k] = made
                made += 1
        count = 0
        run += 1
    return versions[:made], sent[:made], closes[:ended], truncated


def fold_history(changes: pa.Table, schema: TableSchema) -> Folded:
    """The versions that `changes` make, with `_valid_from` and `_valid_to` (NULL: current). Rows
    with `_delete` set name the keys whose current row at the target ends at `_valid_from`.
    `_origin` names the key whose current row fills what was not sent. `truncated_at`: when the
    current rows of all other keys end."""
    coded = coded_keys(changes, schema)
    partial, unsent = unsent_matrix(changes.column("_unchanged"), schema)
    at = changes.column("_committed_at").cast(pa.int64()).to_numpy()
    transaction = changes.column("_transaction").to_numpy()
    state = replay_history(coded.op, coded.new, coded.old, unsent, transaction, at, coded.total)
    return _assembled(changes, schema, coded, partial, state)


def _assembled(
    changes: pa.Table,
    schema: TableSchema,
    coded: CodedKeys,
    partial: list[int],
    state: tuple[Any, ...],
) -> Folded:
    versions, sent, closes, truncated = state
    made, blank = len(versions), np.full(len(closes), -1, np.int64)
    places = np.concatenate([versions[:, 0], closes[:, 0]])
    is_close = np.arange(len(places)) >= made
    image = np.concatenate([versions[:, 1], blank])
    sent_by = np.concatenate([sent, np.full((len(closes), sent.shape[1]), -1, np.int64)])
    arrays, missing = gathered(
        coded, schema, partial, places, (image, sent_by), changes.column, is_close
    )
    origins = np.where(missing.any(axis=1), np.concatenate([versions[:, 2], blank]), -1)
    begin = np.concatenate([versions[:, 3], closes[:, 1]])
    end = np.concatenate([versions[:, 4], np.full(len(closes), NEVER)])
    arrays["_delete"] = pa.array(is_close)
    arrays |= unsent_columns(coded, schema, missing, origins)
    arrays["_valid_from"] = pa.array(begin, pa.int64()).cast(_MOMENT)
    arrays["_valid_to"] = pa.array(end, pa.int64(), mask=end == NEVER).cast(_MOMENT)
    return finished(changes, schema, arrays, missing, origins, truncated)
