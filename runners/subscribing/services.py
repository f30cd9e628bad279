"""What people and programs do about subscribers: register, remove, record a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from replicators.config import target_can
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.invalid import InvalidConfig
from replicators.models import Replicator
from runners.events.write import act_add
from runners.models import Table
from runners.services import IllegalTransition, replicator_locked
from runners.subscribers import Subscriber, SubscriberPosition
from runners.subscribing.checkpoints import Place
from runners.subscribing.ranges import check_ranges

Actor = AbstractBaseUser | None
MOST = 1000
"""The most subscribers of a replicator."""
RANGES_MOST = 100
SEEN = timedelta(seconds=15)
"""`seen_at` is written this often at most."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def refusal_subscribe(replicator: Replicator) -> str:
    """Why nobody can subscribe; empty where one can."""
    if replicator.deleting_since is not None:
        return "This replicator is being deleted."
    can = target_can(replicator.target_kind)
    if can is None:
        return f"The target plugin `{replicator.target_kind}` is not installed."
    if not can.has_subscribers:
        return (
            "This replicator's target keeps no changes for subscribers. Make a replicator with "
            "the target `Subscribers (pull API)`."
        )
    return ""


@transaction.atomic
def subscriber_register(
    *,
    replicator: Replicator,
    name: str,
    actor: Actor,
    tables: Sequence[Mapping[str, Any]] = (),
) -> Subscriber:
    """Register a program that reads changes of these tables, or of all. Changes from now on are
    kept for it. Raises InvalidConfig; IllegalTransition where the target has no subscribers;
    `Table.DoesNotExist`."""
    row = replicator_locked(replicator, "subscriber_registered")
    refused = refusal_subscribe(row)
    if refused:
        raise IllegalTransition("refused", "subscriber_registered", message=refused)
    if not _NAME.fullmatch(name):
        text = "must begin with a letter or a digit, and have letters, digits and _ . - only"
        raise InvalidConfig({"name": text})
    if Subscriber.objects.filter(replicator=row).count() >= MOST:
        raise InvalidConfig({"name": f"is one too many: a replicator has {MOST} at most"})
    chosen = [_choice(row, t) for t in tables]
    if len({(t["schema"], t["name"]) for t in chosen}) < len(chosen):
        raise InvalidConfig({"tables": "must name each table once"})
    by = actor.get_username() if actor is not None else ""
    try:
        with transaction.atomic():
            made = Subscriber.objects.create(
                replicator=row, name=name, tables=chosen, created_by=by
            )
    except IntegrityError as err:
        raise InvalidConfig({"name": "is taken: a subscriber has this name already"}) from err
    _begin(made)
    facts: dict[str, Any] = {"subscriber": name}
    facts["tables"] = [f"{t['schema']}.{t['name']}" for t in chosen] or "all"
    act_add("subscriber_registered", replicator=row, actor=actor, facts=facts)
    return made


def _choice(replicator: Replicator, asked: Mapping[str, Any]) -> dict[str, Any]:
    """A table that a subscriber reads, with its key ranges."""
    shown = Table.objects.shown()
    row = shown.get(replicator=replicator, schema_name=asked["schema"], name=asked["name"])
    ranges = [list(r) for r in asked.get("ranges") or ()]
    if len(ranges) > RANGES_MOST:
        raise InvalidConfig({"tables": f"may have {RANGES_MOST} ranges of a table at most"})
    if ranges and row.schema and not row.schema.get("key"):
        raise InvalidConfig({"tables": f"can't have ranges of {row}, which has no key"})
    if ranges and row.schema:
        schema = TableSchema.from_json(row.schema)
        try:
            check_ranges(ranges, schema.arrow_schema().field(schema.key[0]).type)
        except ValueError as err:
            raise InvalidConfig({"tables": f"can't have these ranges of {row}: {err}"}) from err
    return {"schema": row.schema_name, "name": row.name, "ranges": ranges}


def _begin(subscriber: Subscriber) -> None:
    """Record where the subscriber begins: at what the tables have now."""
    SubscriberPosition.objects.bulk_create(
        SubscriberPosition(
            subscriber=subscriber, table=t, generation=t.generation, sequence=t.merged_sequence
        )
        for t in tables_of(subscriber)
        if t.is_snapshot_done
    )


def tables_of(subscriber: Subscriber) -> list[Table]:
    """The tables that a subscriber reads, as they are now."""
    shown = Table.objects.shown().filter(replicator_id=subscriber.replicator_id).defer("schema")
    if subscriber.tables:
        named = Q(pk__in=())
        for t in subscriber.tables:
            named |= Q(schema_name=t["schema"], name=t["name"])
        shown = shown.filter(named)
    return list(shown)


@transaction.atomic
def subscriber_remove(*, subscriber: Subscriber, actor: Actor) -> None:
    """Remove a subscriber: nothing is kept for it any more."""
    row = replicator_locked(subscriber.replicator, "subscriber_removed")
    facts = {"subscriber": subscriber.name}
    Subscriber.objects.filter(pk=subscriber.pk).delete()
    act_add("subscriber_removed", replicator=row, actor=actor, facts=facts)


def checkpoint_record(subscriber: Subscriber, places: Mapping[Table, Place]) -> None:
    """Remember how far the subscriber is in these tables. A checkpoint may go back: the changes
    after it come again. InvalidConfig for a place that no answer gave."""
    for table, place in places.items():
        is_ahead = place.generation > table.generation or (
            place.generation == table.generation and place.sequence > table.merged_sequence
        )
        if is_ahead:
            name = TableId(table.schema_name, table.name)
            raise InvalidConfig({"checkpoint": f"is ahead of what {name} has: no answer gave it"})
    known = {p.table_id: p for p in SubscriberPosition.objects.filter(subscriber=subscriber)}
    for table, place in places.items():
        row = known.get(table.pk)
        values = {"generation": place.generation, "sequence": place.sequence}
        if row is None:
            SubscriberPosition.objects.get_or_create(
                subscriber=subscriber, table=table, defaults=values
            )
        elif (row.generation, row.sequence) != (place.generation, place.sequence):
            now = timezone.now()
            SubscriberPosition.objects.filter(pk=row.pk).update(
                fell_behind=False, recorded_at=now, **values
            )


def seen(subscriber: Subscriber) -> None:
    """Note that the subscriber asked."""
    now = timezone.now()
    if subscriber.seen_at is None or now - subscriber.seen_at > SEEN:
        Subscriber.objects.filter(pk=subscriber.pk).update(seen_at=now)
        subscriber.seen_at = now


def places_of(subscriber: Subscriber) -> dict[int, Place]:
    """The recorded places, by the tables' rows."""
    rows = SubscriberPosition.objects.filter(subscriber=subscriber)
    return {r.table_id: Place(r.generation, r.sequence) for r in rows}
