"""Decides which of the rows that differ are wrong. Both sides are read again, row by row, until the
change log shows that a row did not change meanwhile (`touched`), or the rounds are over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from replicators.connectors.problems.errors import ReplicationError
from runners.engine.verify.following import Captured, Followed, Follower
from runners.engine.verify.hashing import Hashes
from runners.engine.verify.pairs import Plan
from runners.engine.verify.report import Difference, Kind
from runners.engine.verify.touched import touched
from runners.engine.verify.values import rows_to_json, shown

Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Pending:
    """Rows that are not decided: what tells each apart (`Plan.key_hashes`), sorted, and its key in
    the same order (None for a table without a key)."""

    hashes: Hashes
    keys: pa.Table | None

    @classmethod
    def of_keys(cls, keys: pa.Table, plan: Plan) -> Pending:
        """The rows with these keys."""
        if not keys.num_rows:
            return cls(np.zeros(0, np.uint64), keys)
        found, first = np.unique(_hashed(keys, plan), return_index=True)
        return cls(found, keys.take(pa.array(first)))

    def __len__(self) -> int:
        return len(self.hashes)

    def where(self, mask: Numbers) -> Pending:
        """Those that the mask keeps."""
        keys = self.keys.filter(pa.array(mask)) if self.keys is not None else None
        return Pending(self.hashes[mask], keys)


class Lookup(Protocol):
    """Reads rows that are pending."""

    def __call__(self, pending: Pending, /) -> pa.Table:
        """Those of the rows that exist, with the compared columns."""
        ...


class SourceLookup(Protocol):
    """Reads rows that are pending at the source."""

    def __call__(self, pending: Pending, /) -> tuple[pa.Table, int]:
        """The rows, and a log position. Whatever they show was committed at or before it."""
        ...


@dataclass(frozen=True, slots=True)
class Side:
    """A side's rows in the order of what is pending: how many there are of each, the sum of their
    hashes, and where the first lies in `rows` (-1: nowhere)."""

    rows: pa.Table
    counts: Numbers
    sums: Hashes
    first: Numbers


@dataclass(frozen=True, slots=True)
class Odd:
    """Rows that differ now: the pending ones, and both sides."""

    pending: Pending
    source: Side
    target: Side
    at: Numbers
    """Where each lies in the sides."""

    def where(self, mask: Numbers) -> Odd:
        """Those that the mask keeps."""
        return replace(self, pending=self.pending.where(mask), at=self.at[mask])

    def count(self, kind: Kind) -> int:
        """How many rows are of this kind."""
        return int((self._kinds() == list(Kind).index(kind)).sum())

    def of(self, kinds: frozenset[Kind]) -> Odd:
        """Those of these kinds."""
        wanted = [list(Kind).index(k) for k in kinds]
        return self.where(np.isin(self._kinds(), wanted))

    def _kinds(self) -> Numbers:
        ours, theirs = self.source.counts[self.at], self.target.counts[self.at]
        return np.select([theirs < ours, theirs > ours], [0, 1], 2)

    def listed(self, most: int, plan: Plan) -> tuple[Difference, ...]:
        """The first of them, with their rows."""
        at, kinds = self.at[:most], self._kinds()[:most]
        ours, theirs = (_shown(side, at) for side in (self.source, self.target))
        keys = rows_to_json(self.pending.keys.slice(0, most)) if self.pending.keys else None
        found = []
        for n, (kind, place) in enumerate(zip(kinds.tolist(), at.tolist(), strict=True)):
            source, target = ours[n], theirs[n]
            both = source is not None and target is not None
            found.append(
                Difference(
                    list(Kind)[kind],
                    keys[n] if keys is not None else (source or target or {}),
                    tuple(c for c in plan.columns if both and source[c] != target[c]),
                    shown(source) if source is not None else None,
                    shown(target) if target is not None else None,
                    (int(self.source.counts[place]), int(self.target.counts[place])),
                )
            )
        return tuple(found)


def _shown(side: Side, at: Numbers) -> list[Any]:
    places = side.first[at]
    rows = rows_to_json(side.rows.take(pa.array(places[places >= 0])))
    found = iter(rows)
    return [next(found) if place >= 0 else None for place in places.tolist()]


def _hashed(rows: pa.Table, plan: Plan) -> Hashes:
    parts = [plan.key_hashes(b) for b in rows.to_batches() if b.num_rows]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def side_of(rows: pa.Table, pending: Pending, plan: Plan) -> Side:
    """The rows in the order of what is pending."""
    rows = rows.select(list(plan.columns)).cast(plan.arrow)
    own = _hashed(rows, plan)
    batches = [plan.row_hashes(b) for b in rows.to_batches() if b.num_rows]
    whole = np.concatenate(batches) if batches else np.zeros(0, np.uint64)
    place = np.searchsorted(pending.hashes, own)
    place[place == len(pending)] = 0
    is_ours = pending.hashes[place] == own if len(pending) else np.zeros(0, bool)
    place, whole, number = place[is_ours], whole[is_ours], np.flatnonzero(is_ours)
    counts, sums = np.zeros(len(pending), np.int64), np.zeros(len(pending), np.uint64)
    first = np.full(len(pending), -1, np.int64)
    np.add.at(counts, place, 1)
    np.add.at(sums, place, whole)
    first[place[::-1]] = number[::-1]
    return Side(rows, counts, sums, first)


def odd(pending: Pending, source: pa.Table, target: pa.Table, plan: Plan) -> Odd:
    """The pending rows that are not the same on both sides."""
    ours, theirs = side_of(source, pending, plan), side_of(target, pending, plan)
    differs = (ours.counts != theirs.counts) | (ours.sums != theirs.sums)
    return Odd(pending.where(differs), ours, theirs, np.flatnonzero(differs))


@dataclass(frozen=True, slots=True)
class Settled:
    """`wrong`: the rows that differ and did not change meanwhile, by round. `open`: those that
    could not be decided, as they were last. `code`: why the rounds ended early."""

    wrong: tuple[Odd, ...]
    open: Odd | None
    error: ReplicationError | None = None


def settle(
    pending: Pending,
    plan: Plan,
    *,
    followed: Followed,
    follower: Follower,
    since: Captured,
    rounds: int,
    read_source: SourceLookup,
    read_target: Lookup,
    on_round: Callable[[], None] = lambda: None,
) -> Settled:
    """`since`: how far the log was captured before the rows were first read. Raises `Stopped`, and
    errors of both sides. Where the target can't follow (`verify:paused`, `verify:behind`), rows
    that differ stay open."""
    wrong: list[Odd] = []
    last: Odd | None = None
    table = plan.schema.id
    for _ in range(rounds):
        on_round()
        before = followed.captured()
        source, end = read_source(pending)
        error = None
        try:
            follower.wait(end)
        except ReplicationError as err:
            if err.code not in {"verify:paused", "verify:behind"}:
                raise
            error = err
        last = odd(pending, source, read_target(pending), plan)
        follower.now()
        if error is not None:
            return Settled(tuple(wrong), last if len(last.pending) else None, error)
        changed = touched(followed, table, since, plan) if len(last.pending) else None
        if changed is not None:
            is_still = ~np.isin(last.pending.hashes, changed)
            if is_still.any():
                wrong.append(last.where(is_still))
            last = last.where(~is_still)
        pending, since = last.pending, before
        if not len(pending):
            return Settled(tuple(wrong), None)
    return Settled(tuple(wrong), last)
