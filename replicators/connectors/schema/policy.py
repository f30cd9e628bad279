"""What becomes of a schema change, by the replicator's policy. Pure; the same for every source and
target.

| change | evolve | lenient | ignore | stop |
|---|---|---|---|---|
| column added | follow | follow | keep: not copied | stop |
| column dropped | follow | keep | keep: reads NULL | stop |
| column renamed | follow | stop | keep: reads NULL, the new name is not copied | stop |
| type widened | follow | follow | stop | stop |
| type changed otherwise | re-sync | stop | keep where the old type holds every new value, else stop | stop |
| column dropped and made again, key changed, rows rewritten, table made again | re-sync | stop | stop | stop |
| partitions with rows attached or detached | re-sync | stop | stop | stop |
| table renamed, where the source has numbers for tables | follow | stop | stop | stop |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from replicators.connectors.schema.diff import ChangeKind, SchemaChange, is_wider


class SchemaPolicy(StrEnum):
    """What a replicator does when a table's schema changes at the source."""

    EVOLVE = "evolve"
    LENIENT = "lenient"
    IGNORE = "ignore"
    STOP = "stop"


class Verdict(StrEnum):
    """FOLLOW: the target's table changes too. KEEP: it stays as it is. RESYNC: only a fresh copy is
    right. STOP: the table stops until a person asks for a re-sync."""

    FOLLOW = "follow"
    KEEP = "keep"
    RESYNC = "resync"
    STOP = "stop"


_FOLLOWED = {
    SchemaPolicy.EVOLVE: frozenset(
        {ChangeKind.ADDED, ChangeKind.DROPPED, ChangeKind.RENAMED, ChangeKind.WIDENED}
    ),
    SchemaPolicy.LENIENT: frozenset({ChangeKind.ADDED, ChangeKind.WIDENED}),
}
_KEPT = {
    SchemaPolicy.LENIENT: frozenset({ChangeKind.DROPPED}),
    SchemaPolicy.IGNORE: frozenset({ChangeKind.ADDED, ChangeKind.DROPPED, ChangeKind.RENAMED}),
}


def verdict(policy: SchemaPolicy, change: SchemaChange) -> Verdict:
    """What the policy does about one change."""
    if change.kind in _FOLLOWED.get(policy, ()):
        return Verdict.FOLLOW
    if change.kind in _KEPT.get(policy, ()):
        return Verdict.KEEP
    if policy is SchemaPolicy.EVOLVE:
        return Verdict.RESYNC
    if policy is SchemaPolicy.IGNORE and change.kind is ChangeKind.RETYPED:
        assert change.old is not None and change.new is not None
        if is_wider(change.new.type, change.old.type):
            return Verdict.KEEP
    return Verdict.STOP


def follows_renames(policy: SchemaPolicy) -> bool:
    """Whether a table that was renamed at the source is followed there. Its copy keeps its name."""
    return policy is SchemaPolicy.EVOLVE


_WEIGHT = (Verdict.STOP, Verdict.RESYNC, Verdict.FOLLOW, Verdict.KEEP)


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on several changes that came together. The gravest verdict decides for all of
    them."""

    verdict: Verdict
    changes: tuple[SchemaChange, ...]

    @property
    def text(self) -> str:
        """The changes in words."""
        return "; ".join(c.text for c in self.changes)


def decide(policy: SchemaPolicy, changes: Sequence[SchemaChange]) -> Decision:
    """The decision on changes that came together; KEEP where there is none."""
    found = {verdict(policy, c) for c in changes}
    gravest = next((v for v in _WEIGHT if v in found), Verdict.KEEP)
    return Decision(gravest, tuple(changes))
