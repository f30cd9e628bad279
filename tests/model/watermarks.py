"""Holds published watermarks against the source's history: the tables at their versions must
together be one moment that the source showed, between two of its transactions. Knows no engine:
rows are read by pyiceberg and deltalake, the history was kept by triggers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import pyarrow as pa

T = TypeVar("T")
Seen = Mapping[str, Mapping[str, int]]
"""By table: each row's version by key."""


class Replay:
    """Replays a history and knows at each step which rows are not as they are `seen`. A row that
    the history has not touched yet fits where its version is older than the history."""

    def __init__(self, seen: Seen, oldest: int) -> None:
        self._seen = seen
        self.wrong = {
            (tab, key) for tab, rows in seen.items() for key, v in rows.items() if v >= oldest
        }

    def apply(self, tab: str, op: int, old: str, new: str, version: int | None) -> None:
        """The next event: 0 insert, 1 update, 2 delete, 3 truncate."""
        if tab not in self._seen:
            return
        if op == 3:
            self.wrong = {w for w in self.wrong if w[0] != tab}
            self.wrong |= {(tab, key) for key in self._seen[tab]}
            return
        if op in {1, 2}:
            self._now(tab, old, None)
        if op in {0, 1}:
            self._now(tab, new, version)

    def _now(self, tab: str, key: str, version: int | None) -> None:
        if self._seen[tab].get(key) == version:
            self.wrong.discard((tab, key))
        else:
            self.wrong.add((tab, key))


def is_one_moment(history: Sequence[Sequence[Any]], seen: Seen) -> bool:
    """Whether some number of the history's first transactions (transaction, table, operation, old
    key, new key, version; of one writer, so in the order of its commits) leaves the tables as they
    are seen."""
    oldest = min((e[5] for e in history if e[5] is not None), default=1 << 62)
    replay = Replay(seen, oldest)
    if not replay.wrong:
        return True
    ends = [one[0] != after[0] for one, after in pairwise(history)]
    for event, is_end in zip(history, [*ends, True], strict=False):
        replay.apply(*event[1:])
        if is_end and not replay.wrong:
            return True
    return False


def spread(found: Sequence[T], most: int) -> list[T]:
    """At most so many, evenly over the whole, with the last and (of two or more) the first."""
    if len(found) <= most:
        return list(found)
    return [found[(len(found) - 1) * i // (most - 1)] for i in range(most)]


def keys_and_versions(rows: pa.Table, key: str) -> dict[str, int]:
    """Each row's version by its key as text."""
    pairs = zip(rows.column(key).to_pylist(), rows.column("version").to_pylist(), strict=True)
    return {str(k): v for k, v in pairs}
