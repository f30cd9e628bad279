"""The rows of subscribers: programs that ask for changes, and how far each one is.
`runners.models` imports them for Django."""

from __future__ import annotations

import uuid

from django.db import models

from replicators.models import Replicator


class Subscriber(models.Model):
    """A program that reads changes of a replicator. `tables` says which: empty for all of them,
    otherwise a list of `{"schema", "name", "ranges"}`. A range is a pair `[from, to]` of values of
    the first key column, `to` not included; null: no end. `seen_at`: when it asked last."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    replicator = models.ForeignKey(Replicator, on_delete=models.CASCADE, related_name="subscribers")
    name = models.CharField(max_length=100)
    tables = models.JSONField(default=list, blank=True)
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=["replicator", "name"], name="one_subscriber_per_name"),
        )

    def __str__(self) -> str:
        return self.name


class SubscriberPosition(models.Model):
    """The checkpoint of a subscriber in a table: it has every change of this generation up to
    `sequence`. `fell_behind`: changes after it were removed before it read them."""

    subscriber = models.ForeignKey(Subscriber, on_delete=models.CASCADE, related_name="positions")
    table = models.ForeignKey(
        "runners.Table", on_delete=models.CASCADE, related_name="subscriber_positions"
    )
    generation = models.PositiveIntegerField(default=0)
    sequence = models.BigIntegerField(default=0)
    fell_behind = models.BooleanField(default=False)
    recorded_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(
                fields=["subscriber", "table"], name="one_position_per_subscriber_and_table"
            ),
        )

    def __str__(self) -> str:
        return f"{self.subscriber_id} in {self.table_id} at {self.generation}.{self.sequence}"


class FeedKeeping(models.Model):
    """When a replicator's kept changes are tidied up next. A task that takes the turn moves
    `next_at` on, so that no two do the same work."""

    replicator = models.OneToOneField(
        Replicator, on_delete=models.CASCADE, related_name="feed_keeping"
    )
    next_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"keeping of {self.replicator_id}"
