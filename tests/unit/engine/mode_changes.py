"""Workloads of several transactions, and what naive replays of them give in each mode: the oracles
of the modes' folds."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from replicators.connectors.model.changes import Op
from tests.unit.engine.changes import SCHEMA, Change, Key, Row
from tests.unit.engine.test_fold import workload

EPOCH = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NAMES = ("a", "b")


def moment(second: int) -> dt.datetime:
    """The commit time of a change's `at`."""
    return EPOCH + dt.timedelta(seconds=second)


def transactions(seed: int, count: int) -> tuple[dict[Key, Row], list[Change]]:
    """A start state and changes in transactions of a few rows each, whose clock now and then goes
    back, but not behind a TRUNCATE: what a batch begins after one begins no earlier, also a key
    that never was."""
    start, changes = workload(seed, count)
    rng, number, clock, least = random.Random(seed), 1, 100, 0
    found = []
    for change in changes:
        if rng.random() < 0.5:
            number, clock = number + 1, max(clock + rng.choice([-3, 0, 1, 5]), least)
        least = clock if change.op is Op.TRUNCATE else least
        found.append(replace(change, transaction=number, at=clock))
    return start, found


def image_of(change: Change, known: Row) -> Row:
    """The row after an insert or update that was made to `known`."""
    sent = dict(zip(NAMES, change.values, strict=True))
    return {**known, **{n: v for n, v in sent.items() if n not in change.unsent}}


def soft_replay(start: dict[Key, Row], changes: Iterable[Change]) -> dict[Key, Row]:
    """The soft-deleted copy, row by row: `_is_deleted` and `_deleted_at` beside the values."""
    state = {k: {**r, "_is_deleted": False, "_deleted_at": None} for k, r in start.items()}

    def gone(key: Key, at: dt.datetime) -> None:
        state[key] = {**state[key], "_is_deleted": True, "_deleted_at": at}

    for change in changes:
        at = moment(change.at)
        if change.op is Op.TRUNCATE:
            for key in [k for k, r in state.items() if not r["_is_deleted"]]:
                gone(key, at)
        elif change.op is Op.DELETE:
            gone(change.key, at)
        else:
            known = state.get(change.old or change.key, {})
            image = image_of(change, {n: known.get(n) for n in NAMES})
            if change.old:
                gone(change.old, at)
            state[change.key] = {**image, "_is_deleted": False, "_deleted_at": None}
    return state


@dataclass
class History:
    """Versions as a naive replay makes them: each (key, values, from, to), `to` None while
    current."""

    versions: list[dict[str, Any]] = field(default_factory=list)

    def last(self, key: Key) -> dict[str, Any] | None:
        """The key's last version."""
        return next((v for v in reversed(self.versions) if v["key"] == key), None)

    def ended(self, key: Key, at: dt.datetime) -> None:
        """The key's current version ends; never before it began."""
        last = self.last(key)
        if last and last["to"] is None:
            last["to"] = max(at, last["from"])

    def begun(self, key: Key, row: Row, at: dt.datetime) -> None:
        """A version begins; never before the last one's end."""
        last = self.last(key)
        begin = max(at, last["to"]) if last else at
        self.versions.append({"key": key, **row, "from": begin, "to": None})


def history_replay(start: dict[Key, Row], changes: list[Change]) -> list[dict[str, Any]]:
    """Every version, oldest first: the last image per key and transaction."""
    state = {k: dict(r) for k, r in start.items()}
    found = History([{"key": k, **r, "from": EPOCH, "to": None} for k, r in start.items()])
    touched: dict[Key, None] = {}
    for place, change in enumerate(changes):
        touched |= dict.fromkeys(_apply(state, change))
        is_last = place + 1 == len(changes) or (
            changes[place + 1].transaction != change.transaction
        )
        if not is_last:
            continue
        for key in touched:
            found.ended(key, moment(change.at))
            if key in state:
                found.begun(key, dict(state[key]), moment(change.at))
        touched = {}
    return found.versions


def _apply(state: dict[Key, Row], change: Change) -> list[Key]:
    """Apply a change to the source's rows; the keys that it touched."""
    if change.op is Op.TRUNCATE:
        gone = list(state)
        state.clear()
        return gone
    if change.op is Op.DELETE:
        state.pop(change.key, None)
        return [change.key]
    known = state.pop(change.old, {}) if change.old else dict(state.get(change.key, {}))
    state[change.key] = image_of(change, known)
    return [change.key, *([change.old] if change.old else [])]


def apply_soft(start: dict[Key, Row], folded: Any) -> dict[Key, Row]:
    """What a soft-deleted copy that holds `start` holds after the merge of a fold."""
    state = {k: dict(r) for k, r in start.items()}
    if folded.truncate:
        flag = {"_is_deleted": True, "_deleted_at": folded.truncated_at}
        state = {k: r if r["_is_deleted"] else {**r, **flag} for k, r in state.items()}
    for row in folded.rows.to_pylist():
        key = (row["id"], row["part"])
        base = _base(row, key)
        values = {n: start.get(base, {}).get(n) if _is_unsent(row, n) else row[n] for n in NAMES}
        assert row["_delete"] or base in start or not row["_unsent"]
        state[key] = {**values, "_is_deleted": row["_delete"], "_deleted_at": row["_deleted_at"]}
    return state


def _base(row: Row, key: Key) -> Key:
    return (row["_origin"]["id"], row["_origin"]["part"]) if row["_origin"] else key


def _is_unsent(row: Row, name: str) -> bool:
    bits = row["_unsent"][0] if row["_unsent"] else 0
    return bool(bits >> [c.name for c in SCHEMA.columns].index(name) & 1)


def apply_history(versions: list[dict[str, Any]], folded: Any) -> list[dict[str, Any]]:
    """What a history that holds `versions` holds after the merge of a fold."""
    found = [dict(v) for v in versions]
    current = {v["key"]: v for v in found if v["to"] is None}
    floor: dict[Key, dt.datetime] = {}
    for v in found:
        floor[v["key"]] = max(floor.get(v["key"], EPOCH), v["to"] or v["from"])
    before = {k: dict(v) for k, v in current.items()}
    rows = folded.rows.to_pylist()
    ends = {(r["id"], r["part"]): r["_valid_from"] for r in rows if r["_delete"]}
    for key, version in current.items():
        at = ends.get(key, folded.truncated_at if folded.truncate else None)
        if at is not None:
            version["to"] = max(at, floor[key])
    for row in rows:
        if row["_delete"]:
            continue
        key = (row["id"], row["part"])
        base = before.get(_base(row, key), {})
        values = {n: base[n] if _is_unsent(row, n) else row[n] for n in NAMES}
        low = floor.get(key, EPOCH)
        to = row["_valid_to"]
        found.append(
            {
                "key": key,
                **values,
                "from": max(row["_valid_from"], low),
                "to": max(to, low) if to else None,
            }
        )
    return found


def in_order(versions: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Versions in a form that can be compared."""
    return sorted(
        (v["key"], v["from"], v["to"] or moment(10**6), str(v["a"]), str(v["b"])) for v in versions
    )


def assert_sound(versions: Iterable[dict[str, Any]]) -> None:
    """No two versions of a key overlap, at most one is current, none ends before it began."""
    by_key: dict[Key, list[dict[str, Any]]] = {}
    for version in versions:
        by_key.setdefault(version["key"], []).append(version)
    for found in by_key.values():
        ordered = sorted(found, key=lambda v: (v["from"], v["to"] or moment(10**6)))
        assert sum(v["to"] is None for v in found) <= 1
        for one, two in zip(ordered, ordered[1:], strict=False):
            assert one["to"] is not None and one["from"] <= one["to"] <= two["from"]
