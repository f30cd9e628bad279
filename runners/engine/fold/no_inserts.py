"""Folds change rows of a table that skips inserts, as a mirror or with soft delete. Pure: Arrow to
Arrow.

The copy holds the rows of its snapshot, each for as long as it is the same row. An update applies
to a row that is held, a changed key moves it, and a delete ends it. Another row that takes its key
ends it too: an insert does that, or the changed key of a row that is not held. Only the target
knows which rows are held. So the fold gives *stays*: a row's time under a key, with the key under
which the target has that row now (`_origin`). Of each key's stays, the target takes the last one
whose row it holds. A mirror needs only a key's last stay: whatever was there before it is gone.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import pyarrow as pa

from replicators.connectors.model.changes import Op
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableSchema
from runners.engine.fold.mirror import CodedKeys, Folded, coded_keys, unsent_matrix
from runners.engine.fold.soft_delete import DELETED_AT, finished, gathered, unsent_columns

RANK = "_sequence"
_UPDATE, _TRUNCATE = int(Op.UPDATE), int(Op.TRUNCATE)


@nb.njit(cache=True, nogil=True)
def replay_stays(op, new, old, unsent, keys, moves):  # type: ignore[no-untyped-def]  # noqa: C901 - one pass
    """Replay n rows, `moves` of which change their key, over `keys` key codes. `old` and `unsent`
    are as in `fold.replay`. Returns per stay: its key, the key that its row has at the target, the
    row that ended it (-1: it lasts), its last image (-1: none), per partial column the row that
    sent it, and whether it was touched. Then it returns how many stays there are, and the first
    TRUNCATE (-1: none), after which no row is held. The first `keys` stays are those of the rows
    that the target may have under each key."""
    columns = unsent.shape[1]
    most = keys + moves
    key, origin = np.arange(most), np.arange(most)
    ended, image = np.full(most, -1, np.int64), np.full(most, -1, np.int64)
    sent_by = np.full((most, columns), -1, np.int64)
    touched = np.zeros(most, np.uint8)
    present = np.arange(keys)
    made, truncated = keys, -1
    for r in range(len(op)):
        if op[r] == _TRUNCATE:
            truncated = r
            for k in range(keys):
                if present[k] >= 0:
                    ended[present[k]] = r
            break
        k = new[r]
        stay = present[k]
        if op[r] == _UPDATE and old[r] < 0:
            if stay >= 0:
                touched[stay] = 1
                image[stay] = r
                for c in range(columns):
                    if unsent[r, c] == 0:
                        sent_by[stay, c] = r
            continue
        if stay >= 0:
            touched[stay] = 1
            ended[stay] = r
            present[k] = -1
        if op[r] != _UPDATE:
            continue
        left = present[old[r]]
        if left < 0:
            continue
        touched[left] = 1
        ended[left] = r
        present[old[r]] = -1
        key[made], origin[made], touched[made], image[made] = k, origin[left], 1, r
        for c in range(columns):
            sent_by[made, c] = r if unsent[r, c] == 0 else sent_by[left, c]
        present[k] = made
        made += 1
    return (
        key[:made],
        origin[:made],
        ended[:made],
        image[:made],
        sent_by[:made],
        touched[:made],
        truncated,
    )


def fold_no_inserts(changes: pa.Table, schema: TableSchema, mode: Mode) -> Folded:
    """The same as `fold.fold` or, with soft delete, `fold_soft.fold_soft`, with two differences.
    `_origin` is set for every row that comes from another key; a row without one belongs to the row
    that the target has under its key. With soft delete a key may have several rows, later ones with
    a higher `RANK`: the last one counts whose origin exists at the target."""
    coded = coded_keys(changes, schema)
    partial, unsent = unsent_matrix(changes.column("_unchanged"), schema)
    moves = int((coded.old >= 0).sum())
    stays = replay_stays(coded.op, coded.new, coded.old, unsent, coded.total, moves)
    truncated = int(stays[-1])
    chosen = _chosen(stays, coded.total, mode, is_emptied=truncated >= 0)
    return _assembled(changes, schema, coded, partial, stays, chosen, mode)


def _chosen(
    stays: tuple[Any, ...], total: int, mode: Mode, *, is_emptied: bool
) -> np.ndarray[Any, Any]:
    """The stays that the target has to see: the last one of each key (mirror), or of each key and
    origin (soft delete). A row that came back to a key is held or not, as it was the first time."""
    key, origin, touched = stays[0], stays[1], stays[5]
    if is_emptied and mode is Mode.MIRROR:
        return np.zeros(0, np.int64)
    seen = np.flatnonzero(touched)
    code = key[seen] if mode is Mode.MIRROR else key[seen] * total + origin[seen]
    _, last = np.unique(code[::-1], return_index=True)
    found: np.ndarray[Any, Any] = np.sort(seen[::-1][last])
    return found


def _assembled(
    changes: pa.Table,
    schema: TableSchema,
    coded: CodedKeys,
    partial: list[int],
    stays: tuple[Any, ...],
    chosen: np.ndarray[Any, Any],
    mode: Mode,
) -> Folded:
    key, origin, ended, image, sent_by, _, truncated = stays
    is_gone = ended[chosen] >= 0
    is_empty = is_gone if mode is Mode.MIRROR else np.zeros(len(chosen), bool)
    places = key[chosen]
    arrays, missing = gathered(
        coded, schema, partial, places, (image[chosen], sent_by[chosen]), changes.column, is_empty
    )
    origins = np.where((origin[chosen] != places) & ~is_empty, origin[chosen], -1)
    arrays["_delete"] = pa.array(is_gone)
    arrays |= unsent_columns(coded, schema, missing, origins)
    if mode is Mode.SOFT_DELETE:
        moment = pa.array(ended[chosen], mask=~is_gone)
        arrays[DELETED_AT] = changes.column("_committed_at").take(moment)
        arrays[RANK] = pa.array(chosen, pa.int64())
    return finished(changes, schema, arrays, missing, origins, truncated)
