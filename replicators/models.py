"""What people define: replicators, and the tokens that programs use."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone


class DesiredState(models.TextChoices):
    """What a person asked for."""

    RUNNING = "running", "Running"
    PAUSED = "paused", "Paused"


class ReplicatorQuerySet(models.QuerySet["Replicator"]):
    """Names for the filters that selectors use."""

    def live(self) -> ReplicatorQuerySet:
        """Replicators that are not being deleted."""
        return self.filter(deleting_since=None)


class Replicator(models.Model):
    """A replicator: copies chosen tables of a source into a target.

    `*_params` hold what is not secret, `*_secrets` an encrypted JSON object. `tables` is a list of
    `{"schema", "name", "columns": [names] or [], "excluded": ["updates", "deletes"] or [], "mode":
    "" or a mode, "filter": "" or a row filter}`. No columns means all columns; no mode means the
    replicator's mode. `options` are the advanced settings.

    `tables_version` grows with each change that people make to its tables or options. A run keeps
    its tables in memory and checks only this number. It is not part of the definition. `generation`
    differs between two replicators of the same name, so that a new one never finds old positions.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=64, unique=True)
    description = models.CharField(max_length=400, blank=True)
    source_kind = models.CharField(max_length=40)
    source_params = models.JSONField(default=dict)
    source_secrets = models.TextField(blank=True)
    target_kind = models.CharField(max_length=40)
    target_params = models.JSONField(default=dict)
    target_secrets = models.TextField(blank=True)
    tables = models.JSONField(default=list)
    options = models.JSONField(default=dict)
    tables_version = models.PositiveBigIntegerField(default=0, editable=False)
    desired_state = models.CharField(
        max_length=10, choices=DesiredState.choices, default=DesiredState.PAUSED
    )
    keep_target = models.BooleanField(default=True)
    deleting_since = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="replicators"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = models.Manager.from_queryset(ReplicatorQuerySet)()

    class Meta:
        ordering = ("name",)
        permissions = (
            ("read_rows", "Can read rows of copied tables"),
            ("make_feeds", "Can make feeds of tables that a source's user may read"),
        )

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("runners:replicator", args=[self.pk])

    @property
    def slot_name(self) -> str:
        """The name of what the replicator makes at the source: unique for ever, at most 63 bytes of
        [a-z0-9_]."""
        return f"replicator_{self.pk.hex}"


class Scope(models.TextChoices):
    """How much of what its user may do a token may do."""

    READ = "read", "Read"
    WRITE = "write", "Read and write"


class ApiToken(models.Model):
    """A program's token. Only its SHA-256 is kept; its text is shown once. Without `expires_at` it
    never ends. `is_end_recorded`: the audit trail has recorded its end."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=80)
    digest = models.CharField(max_length=64, unique=True)
    scope = models.CharField(max_length=10, choices=Scope.choices, default=Scope.WRITE)
    expires_at = models.DateTimeField(null=True, blank=True)
    is_end_recorded = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return self.name

    def is_over(self, now: datetime | None = None) -> bool:
        """Whether the token has ended."""
        return self.expires_at is not None and self.expires_at <= (now or timezone.now())


class IdempotencyKey(models.Model):
    """A request that was sent with a key, so that it is carried out only once. `status` is empty
    until the request is answered."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(null=True)
    headers = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "key"), name="one_request_per_key"),)

    def __str__(self) -> str:
        return self.key


from replicators.audit import AuditEntry  # noqa: E402, F401 - a model, in a module of its own


class Tries(models.Model):
    """How often a password was guessed wrongly in a window; the window ends at a given time. The
    key is a SHA-256 of who guessed, or from where."""

    key = models.CharField(max_length=64, primary_key=True)
    count = models.PositiveIntegerField()
    ends_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name_plural = "tries"

    def __str__(self) -> str:
        return self.key
