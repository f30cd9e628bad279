"""What is kept for subscribers, and for how long. Changes that every subscriber has read go, except
the last hour's. Past the target's limits they go anyway: a subscriber that has not read them fell
behind. Before changes go, they are folded into the table's copy. Many small files become one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain

import pyarrow as pa
from django.db import transaction
from django.utils import timezone

from replicators.config import target_can
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.pulling import KeepLimits, Kept, Part, PulledFeed
from replicators.models import Replicator
from runners.events.write import event_add
from runners.models import Table
from runners.subscribers import FeedKeeping, SubscriberPosition
from runners.subscribing.feeds import feed_of, kept_table
from runners.subscribing.services import tables_of
from runners.subscribing.snapshot import snapshot

logger = logging.getLogger(__name__)

TURN = timedelta(seconds=60)
CLAIM = timedelta(seconds=600)
LAST_SECONDS = 3600.0
"""Changes of the last hour stay, whoever has read them."""
FOLD_BYTES = 32 << 20
"""Fewer bytes of changes are not worth a new copy."""
SMALL_BYTES, JOINED_BYTES, JOINED = 1 << 20, 16 << 20, 32
"""So many small files that lie beside each other become one."""


def keep_feeds(now: datetime | None = None) -> None:
    """Tidy up after every replicator whose target keeps changes."""
    now = now or timezone.now()
    for replicator in Replicator.objects.filter(deleting_since=None):
        can = target_can(replicator.target_kind)
        if can is not None and can.has_subscribers and _claim(replicator, now):
            _keep(replicator, now)
            FeedKeeping.objects.filter(replicator=replicator).update(next_at=now + TURN / 2)


def _claim(replicator: Replicator, now: datetime) -> bool:
    """Take the turn; False where another task has it."""
    FeedKeeping.objects.get_or_create(replicator=replicator, defaults={"next_at": now})
    mine = FeedKeeping.objects.filter(replicator=replicator, next_at__lte=now)
    return bool(mine.update(next_at=now + CLAIM))


def _keep(replicator: Replicator, now: datetime) -> None:
    try:
        feed = feed_of(replicator)
    except ReplicationError:
        return
    for table in Table.objects.shown().filter(replicator=replicator, is_snapshot_done=True):
        try:
            keep_table(feed, table, now)
        except (OSError, ReplicationError) as err:
            name = type(err).__name__
            logger.warning("Changes of %s were not tidied up (%s).", table, name)


def keep_table(feed: PulledFeed, table: Table, now: datetime) -> None:
    """Tidy up after one table. OSError."""
    kept = feed.kept(kept_table(table), table.merged_sequence)
    if kept is None or not kept.changes:
        return
    place, forced = bound(kept, feed.limits, _read_by_all(table), now.timestamp())
    if place > kept.base and _is_worth_it(kept, place, forced):
        _fold(feed, table, kept, place)
        if forced >= place:
            _fallen(table, place)
        kept = feed.kept(kept_table(table), table.merged_sequence) or kept
    for some in joinable(kept.changes):
        feed.join(kept_table(table), some)


def _read_by_all(table: Table) -> int:
    """The sequence up to which every subscriber has read the table."""
    mine = SubscriberPosition.objects.filter(
        table=table, generation=table.generation, fell_behind=False
    ).select_related("subscriber")
    covers = [p.sequence for p in mine if table.pk in {t.pk for t in tables_of(p.subscriber)}]
    return min([table.merged_sequence, *covers])


def bound(kept: Kept, limits: KeepLimits, read: int, now: float) -> tuple[int, int]:
    """Up to which sequence changes may go, and up to which they must."""
    may = must = kept.base
    left = kept.size_bytes
    for part in kept.changes:
        age = now - part.ended_at
        if part.last <= read and age > LAST_SECONDS:
            may = part.last
        if age > limits.seconds or left > limits.size_bytes:
            must = part.last
        left -= part.size_bytes
    return max(may, must), must


def _is_worth_it(kept: Kept, place: int, forced: int) -> bool:
    if forced > kept.base:
        return True
    gone = sum(p.size_bytes for p in kept.changes if p.last <= place)
    return gone >= max(FOLD_BYTES, sum(p.size_bytes for p in kept.copy) // 2)


def _fold(feed: PulledFeed, table: Table, kept: Kept, place: int) -> None:
    """Make the copy at `place`, and remove what lies before it."""
    name, target = TableId(table.schema_name, table.name), kept_table(table)
    number = 0
    try:
        for portion in snapshot(feed, name, kept, place):
            for rows in _files(portion.as_read(place)):
                feed.copy_file(target, place, number, portion.schema, rows.to_batches())
                number += 1
        feed.copy_done(target, place, has_rows=True)
    except ReplicationError as err:
        if err.code != "subscriber:no-snapshot":
            raise
        feed.copy_done(target, place, has_rows=False)


def _files(rows: pa.Table) -> Iterator[pa.Table]:
    """The rows in portions of a file each."""
    step = max(1, rows.num_rows * (64 << 20) // max(1, rows.nbytes))
    return (rows.slice(at, step) for at in range(0, rows.num_rows, step))


@transaction.atomic
def _fallen(table: Table, place: int) -> None:
    """Say which subscribers fell behind."""
    mine = SubscriberPosition.objects.select_for_update(no_key=True).filter(
        table=table, generation=table.generation, sequence__lt=place, fell_behind=False
    )
    for row in mine.select_related("subscriber__replicator"):
        event_add(
            "subscriber_fell_behind",
            replicator=row.subscriber.replicator,
            table=TableId(table.schema_name, table.name),
            code="subscriber:fell-behind",
            facts={"subscriber": row.subscriber.name},
        )
        SubscriberPosition.objects.filter(pk=row.pk).update(fell_behind=True)


def joinable(changes: Sequence[Part]) -> list[list[Part]]:
    """Groups of small parts that lie beside each other."""
    found: list[list[Part]] = []
    some: list[Part] = []
    for part in chain(changes, [None]):
        fits = part is not None and part.size_bytes <= SMALL_BYTES
        size = sum(p.size_bytes for p in some)
        if part is None or not fits or size + part.size_bytes > JOINED_BYTES:
            found += [some] if len(some) >= JOINED else []
            some = []
        if part is not None and fits:
            some.append(part)
    return found
