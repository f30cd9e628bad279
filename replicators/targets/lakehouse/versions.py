"""Versions of a table. For Iceberg these are the versions that led to the present one. For both
formats they are also single older versions, kept as long as changes are kept, so that a rewind can
begin at them. Iceberg keeps them by tags, Delta by marks in a property. Pure: reads and writes
nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from replicators.connectors.target import KeptVersion, Token
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.state import token_from

TAG = "rewind_"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One of the table's snapshots; `committed_at` in seconds since the epoch."""

    version: int
    parent: int | None
    summary: Mapping[str, str]
    committed_at: float


@dataclass(frozen=True, slots=True)
class Snapshots:
    """All snapshots that can still be opened: the present one, all by id, and the ids of tags and
    branches by name."""

    current: int | None
    known: Mapping[int, Snapshot]
    tags: Mapping[str, int] = field(default_factory=dict)
    branches: Mapping[str, int] = field(default_factory=dict)

    def line(self) -> Iterator[Snapshot]:
        """The present snapshot and its remaining ancestors, then older tagged snapshots; newest
        first."""
        last, at = float("inf"), self.current
        while at is not None and at in self.known:
            found = self.known[at]
            yield found
            last, at = found.committed_at, found.parent
        tagged = sorted(self.tagged().values(), key=lambda s: -s.committed_at)
        yield from (s for s in tagged if s.committed_at < last)

    def tagged(self) -> dict[str, Snapshot]:
        """The snapshots that our tags keep, by tag name."""
        ours = {n: v for n, v in self.tags.items() if n.startswith(TAG) and v in self.known}
        return {name: self.known[version] for name, version in ours.items()}

    def of(self, owner: Token) -> Iterator[tuple[Snapshot, Token]]:
        """The line's versions of the owner's generation, with their tokens."""
        for snapshot in self.line():
            token = token_from(dict(snapshot.summary), owner.table_uuid)
            if token is None:
                continue
            if (token.replicator, token.generation) != (owner.replicator, owner.generation):
                return
            yield snapshot, token

    def at(self, owner: Token, sequence: int) -> KeptVersion | None:
        """See `MergeTarget.version_at`. `owner` names the replicator and the generation."""
        kept: KeptVersion | None = None
        for snapshot, token in self.of(owner):
            kept = KeptVersion(str(snapshot.version), token.sequence, snapshot.committed_at)
            if token.sequence <= sequence:
                break
        return kept


def apart_seconds(params: LakehouseParams, keep_seconds: float) -> float:
    """See `TargetPlugin.apart_seconds`."""
    if not params.rewind_versions:
        return 0.0
    is_further = keep_seconds > 60 * params.history_minutes
    return keep_seconds / params.rewind_versions if is_further else 0.0


@dataclass(frozen=True, slots=True)
class Change:
    """Tags to make, by name, and tags to drop."""

    made: dict[str, int]
    dropped: tuple[str, ...]


def retag(
    snapshots: Snapshots, owner: Token, *, ends_at: float, since: float, apart: float
) -> Change:
    """The tags to make and drop when everything committed before `ends_at` is about to be removed,
    and changes since `since` are kept. One version is kept every `apart` seconds (0: none). Dropped
    are the tags of other generations, and every tag after which another begins before `since`.
    Times are seconds since the epoch."""
    tagged = snapshots.tagged()
    line = [s for s, _ in snapshots.of(owner)] if apart else []
    own = {s.version for s in line}
    kept = {n: s.committed_at for n, s in tagged.items() if s.version in own}
    outlived = sorted(n for n in kept if any(kept[n] < t <= since for t in kept.values()))
    foreign = sorted(tagged.keys() - kept.keys())
    last = max(kept.values(), default=float("-inf"))
    made: dict[str, int] = {}
    for snapshot in reversed(line):
        if snapshot.committed_at < ends_at and snapshot.committed_at - last >= apart:
            made[f"{TAG}{snapshot.version}"] = snapshot.version
            last = snapshot.committed_at
    return Change(made, (*foreign, *outlived))


def read_marks(text: str) -> tuple[KeptVersion, ...]:
    """Parse marks from the text that `written_marks` made; oldest first."""
    return tuple(KeptVersion(str(v), int(s), float(t)) for v, s, t in json.loads(text or "[]"))


def written_marks(marks: Sequence[KeptVersion]) -> str:
    """Marks as text for a table's property."""
    return json.dumps([(m.version, m.sequence, m.committed_at) for m in marks])


def remark(
    marks: Sequence[KeptVersion],
    present: KeptVersion,
    first: Callable[[], KeptVersion | None],
    *,
    since: float,
    apart: float,
) -> tuple[KeptVersion, ...]:
    """The versions to keep from now on, when changes since `since` are kept: the generation's
    `first`, and the present one every `apart` seconds (0: none). Every version after which another
    begins before `since` is dropped. Times are seconds since the epoch."""
    if not apart:
        return ()
    kept = list(marks)
    if not kept:
        found = first()
        kept = [found] if found else []
    if not kept or present.committed_at - kept[-1].committed_at >= apart:
        kept.append(present)
    outlived = sum(m.committed_at <= since for m in kept[1:])
    return tuple(kept[outlived:])


def marked_at(marks: Sequence[KeptVersion], sequence: int) -> KeptVersion | None:
    """The newest mark at or before `sequence`. If all marks are later, the oldest."""
    before = [m for m in marks if m.sequence <= sequence]
    return before[-1] if before else next(iter(marks), None)
