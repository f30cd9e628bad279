"""What a copy without inserts holds, row by row: the oracle; and what the merge of a fold makes of
it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from replicators.connectors.model.changes import Op
from runners.engine.fold.mirror import Folded
from tests.unit.engine.changes import SCHEMA, Change, Key, Row
from tests.unit.engine.mode_changes import NAMES, image_of, moment


def mirror_replay(start: dict[Key, Row], changes: Iterable[Change]) -> dict[Key, Row]:
    """The rows of `start`, each as long as it is the same row at the source."""
    state = {k: dict(r) for k, r in start.items()}
    for change in changes:
        if change.op is Op.TRUNCATE:
            state.clear()
            continue
        if change.op is not Op.UPDATE or change.old:
            state.pop(change.key, None)
        row = state.pop(change.old or change.key, None)
        if change.op is Op.UPDATE and row is not None:
            state[change.key] = image_of(change, row)
    return state


def soft_replay(start: dict[Key, Row], changes: Iterable[Change]) -> dict[Key, Row]:
    """The same, where a row that goes stays under its key with the time, until another that is held
    takes the key."""
    state = {k: {**r, "_is_deleted": False, "_deleted_at": None} for k, r in start.items()}

    def gone(key: Key, at: dt.datetime) -> Row | None:
        row = state.get(key)
        if row is None or row["_is_deleted"]:
            return None
        state[key] = {**row, "_is_deleted": True, "_deleted_at": at}
        return row

    for change in changes:
        at = moment(change.at)
        if change.op is Op.TRUNCATE:
            for key in state:
                gone(key, at)
        elif change.op is not Op.UPDATE:
            gone(change.key, at)
        elif change.old:
            gone(change.key, at)
            row = gone(change.old, at)
            if row is not None:
                state[change.key] = {**row, **image_of(change, {n: row[n] for n in NAMES})}
        elif not state.get(change.key, {"_is_deleted": True})["_is_deleted"]:
            state[change.key] = {**state[change.key], **image_of(change, state[change.key])}
    return state


def _origin(row: Row) -> Key:
    held = row["_origin"] or row
    return held["id"], held["part"]


def _values(row: Row, held: Row) -> Row:
    bits = row["_unsent"][0] if row["_unsent"] else 0
    names = [c.name for c in SCHEMA.columns]
    return {n: held[n] if bits >> names.index(n) & 1 else row[n] for n in NAMES}


def apply_mirror(start: dict[Key, Row], folded: Folded) -> dict[Key, Row]:
    """What a mirror that holds `start` holds after the merge of a fold."""
    found = {} if folded.truncate else dict(start)
    rows = folded.rows.to_pylist()
    assert not (rows and folded.truncate)
    assert len({(r["id"], r["part"]) for r in rows}) == len(rows)
    for row in rows:
        key, held = (row["id"], row["part"]), start.get(_origin(row))
        found.pop(key, None)
        if not row["_delete"] and held is not None:
            found[key] = _values(row, held)
    return found


def apply_soft(start: dict[Key, Row], folded: Folded) -> dict[Key, Row]:
    """The same with soft delete: of each key's rows the last whose origin lives."""
    best: dict[Key, Row] = {}
    for row in sorted(folded.rows.to_pylist(), key=lambda r: r["_sequence"]):
        held = start.get(_origin(row))
        if held is not None and not held["_is_deleted"]:
            best[row["id"], row["part"]] = row
    found = dict(start)
    if folded.truncate:
        flag = {"_is_deleted": True, "_deleted_at": folded.truncated_at}
        found = {k: r if r["_is_deleted"] else {**r, **flag} for k, r in start.items()}
    for key, row in best.items():
        flags = {"_is_deleted": row["_delete"], "_deleted_at": row["_deleted_at"]}
        found[key] = {**_values(row, start[_origin(row)]), **flags}
    return found
