"""How far subscribers are, for pages and REST."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.pulling import PulledFeed
from replicators.models import Replicator
from runners.models import Table
from runners.subscribers import Subscriber, SubscriberPosition
from runners.subscribing.checkpoints import Place, checkpoint_text
from runners.subscribing.feeds import feed_of, listed
from runners.subscribing.ranges import ranges_shown
from runners.subscribing.services import tables_of

OK, BEHIND, AGAIN, NOT_COPIED = "ok", "fell-behind", "copied-again", "not-copied"


@dataclass(frozen=True, slots=True)
class PositionShown:
    """How far a subscriber is in a table."""

    schema: str
    table: str
    checkpoint: str
    state: str
    changes_behind: int = 0
    bytes_behind: int = 0
    seconds_behind: float = 0.0


@dataclass(frozen=True, slots=True)
class SubscriberShown:
    """A subscriber and its lag."""

    row: Subscriber
    positions: list[PositionShown] = field(default_factory=list)

    @property
    def changes_behind(self) -> int:
        """About as many changes wait for it."""
        return sum(p.changes_behind for p in self.positions)

    @property
    def ranges(self) -> list[tuple[str, str]]:
        """The tables of which it reads only some keys, with their key ranges."""
        tables = [t for t in self.row.tables if t.get("ranges")]
        return [(f"{t['schema']}.{t['name']}", ranges_shown(t["ranges"])) for t in tables]

    @property
    def bytes_behind(self) -> int:
        """About as many bytes wait for it."""
        return sum(p.bytes_behind for p in self.positions)

    @property
    def seconds_behind(self) -> float:
        """The age of the first change that it has not read."""
        return max((p.seconds_behind for p in self.positions), default=0.0)

    @property
    def stopped(self) -> list[PositionShown]:
        """The tables in which it must take a snapshot again."""
        return [p for p in self.positions if p.state in {BEHIND, AGAIN}]

    def to_json(self) -> dict[str, Any]:
        """The form of REST."""
        row = self.row
        return {
            "id": row.pk,
            "name": row.name,
            "tables": row.tables,
            "created_at": row.created_at,
            "created_by": row.created_by,
            "seen_at": row.seen_at,
            "changes_behind": self.changes_behind,
            "bytes_behind": self.bytes_behind,
            "seconds_behind": self.seconds_behind,
            "positions": [asdict(p) for p in self.positions],
        }


def subscribers_of(
    replicator: Replicator, now: datetime, only: Subscriber | None = None
) -> list[SubscriberShown]:
    """The subscribers of a replicator and how far they are. A store that does not answer hides the
    lag, not the subscribers."""
    rows = [only] if only is not None else list(Subscriber.objects.filter(replicator=replicator))
    if not rows:
        return []
    known: dict[tuple[Any, int], SubscriberPosition] = {
        (p.subscriber_id, p.table_id): p
        for p in SubscriberPosition.objects.filter(subscriber__in=rows)
    }
    try:
        feed: PulledFeed | None = feed_of(replicator)
    except ReplicationError:
        feed = None
    return [
        SubscriberShown(
            row, [_position(feed, t, known.get((row.pk, t.pk)), now) for t in tables_of(row)]
        )
        for row in rows
    ]


def subscribers_shown(
    replicator: Replicator, now: datetime, only: Subscriber | None = None
) -> Iterable[dict[str, Any]]:
    """The same in the form of REST."""
    return [s.to_json() for s in subscribers_of(replicator, now, only)]


def _position(
    feed: PulledFeed | None, table: Table, row: SubscriberPosition | None, now: datetime
) -> PositionShown:
    place = Place(row.generation, row.sequence) if row is not None else Place()
    text = checkpoint_text({table.pk: place})
    state = _state(table, place, row)
    shown = PositionShown(table.schema_name, table.name, text, state)
    if feed is None or state != OK or place.sequence >= table.merged_sequence:
        return shown
    try:
        kept = listed(feed, table)
    except OSError:
        return shown
    left = [p for p in kept.changes if p.last > place.sequence] if kept is not None else []
    if not left:
        return shown
    return PositionShown(
        table.schema_name, table.name, text, state,
        sum(p.rows for p in left), sum(p.size_bytes for p in left),
        max(0.0, now.timestamp() - left[0].committed_at),
    )  # fmt: skip


def _state(table: Table, place: Place, row: SubscriberPosition | None) -> str:
    if not table.is_snapshot_done:
        return NOT_COPIED
    if place.generation != table.generation:
        return AGAIN
    return BEHIND if row is not None and row.fell_behind else OK
