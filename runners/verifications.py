"""The rows of verifications: what was compared, what differs, what was repaired, and when the next
one is due. `runners.models` imports them for Django."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone

from replicators.models import Replicator
from runners.states import VERIFICATION_ACTIVE, RepairState, VerificationState


class VerificationQuerySet(models.QuerySet["Verification"]):
    """Names the filters that services and selectors use."""

    def active(self) -> VerificationQuerySet:
        """Verifications that wait or may still have a process."""
        return self.filter(state__in=sorted(str(s) for s in VERIFICATION_ACTIVE))

    def ended(self) -> VerificationQuerySet:
        """Verifications that compared their tables to the end."""
        return self.filter(state=VerificationState.DONE)


class Verification(models.Model):
    """One comparison of source and target: a process of its own, with a lease as a run has. Only
    `transitions.verification_transition` writes `state`. `outcome` is the worst one of its tables
    (`engine.verify.report.Outcome`), empty before the end. `rows_per_second` is the throttle; None
    reads as fast as the source answers. `is_scheduled`: the schedule asked for it, no person."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    replicator = models.ForeignKey(
        Replicator, on_delete=models.CASCADE, related_name="verifications"
    )
    state = models.CharField(max_length=10, default=VerificationState.WAITING)
    outcome = models.CharField(max_length=14, blank=True)
    rows_per_second = models.PositiveIntegerField(null=True, blank=True)
    is_scheduled = models.BooleanField(default=False)
    asked_by = models.CharField(max_length=150, blank=True)
    is_cancel_asked = models.BooleanField(default=False)
    cancel_asked_at = models.DateTimeField(null=True, blank=True)
    cancelled_by = models.CharField(max_length=150, blank=True)
    lease = models.CharField(max_length=40, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    pid = models.PositiveIntegerField(null=True, blank=True)
    pid_started_at = models.FloatField(null=True, blank=True)
    hostname = models.CharField(max_length=120, blank=True)
    error_code = models.CharField(max_length=60, blank=True)
    error_facts = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = models.Manager.from_queryset(VerificationQuerySet)()

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(
                fields=["replicator"],
                condition=Q(state__in=sorted(str(s) for s in VERIFICATION_ACTIVE)),
                name="one_live_verification_per_replicator",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[str(s) for s in VerificationState]),
                name="verification_state_known",
            ),
        )

    def __str__(self) -> str:
        return f"verification {self.pk} of {self.replicator_id}"

    @property
    def is_active(self) -> bool:
        """Whether it waits or compares."""
        return self.state in VERIFICATION_ACTIVE

    @property
    def seconds(self) -> float | None:
        """How long it took, or has taken so far; None before it started."""
        if self.started_at is None:
            return None
        return ((self.ended_at or timezone.now()) - self.started_at).total_seconds()


class VerifiedTable(models.Model):
    """A table of a verification: progress while it is compared, then the fields of
    `engine.verify.report.TableReport`. `step`, `rows_read` and `rows_expected` are its progress.
    `outcome` is empty until the table is done. `left_out` holds [column, reason], `notes`
    sentences."""

    verification = models.ForeignKey(Verification, on_delete=models.CASCADE, related_name="tables")
    schema_name = models.CharField(max_length=255)
    name = models.CharField(max_length=255)
    step = models.CharField(max_length=10, blank=True)
    rows_read = models.BigIntegerField(default=0)
    rows_expected = models.BigIntegerField(null=True, blank=True)
    outcome = models.CharField(max_length=14, blank=True)
    generation = models.PositiveIntegerField(default=0)
    mode = models.CharField(max_length=12, blank=True)
    position = models.BigIntegerField(default=0)
    sequence = models.BigIntegerField(default=0)
    rows_source = models.BigIntegerField(default=0)
    rows_target = models.BigIntegerField(default=0)
    bytes_source = models.BigIntegerField(default=0)
    missing = models.BigIntegerField(default=0)
    extra = models.BigIntegerField(default=0)
    different = models.BigIntegerField(default=0)
    unsettled = models.BigIntegerField(default=0)
    quarantined = models.BigIntegerField(default=0)
    is_more = models.BooleanField(default=False)
    left_out = models.JSONField(default=list, blank=True)
    notes = models.JSONField(default=list, blank=True)
    error_code = models.CharField(max_length=60, blank=True)
    error_facts = models.JSONField(default=dict, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("schema_name", "name")
        constraints = (
            models.UniqueConstraint(
                fields=["verification", "schema_name", "name"], name="one_row_per_verified_table"
            ),
        )

    def __str__(self) -> str:
        return f"{self.schema_name}.{self.name}"

    @property
    def wrong(self) -> int:
        """Rows that are wrong in any way."""
        return self.missing + self.extra + self.different

    @property
    def percent(self) -> int | None:
        """How much of the source's table is read; None where its size is not known. 100 only at
        the end."""
        if self.outcome:
            return 100
        if not self.rows_expected:
            return None
        return min(99, self.rows_read * 100 // self.rows_expected)


class Repair(models.Model):
    """Rows of a table that the run writes again from the source. Only
    `transitions.repair_transition` writes `state`. `keys` is a list of keys, each a list of
    [column, value] as the verification reported it. `rows_written` and `rows_deleted` are what the
    run did; `rows_equal` had no difference any more;
    `rows_left` could not be repaired, such as quarantined ones."""

    replicator = models.ForeignKey(Replicator, on_delete=models.CASCADE, related_name="repairs")
    table = models.ForeignKey("runners.Table", on_delete=models.CASCADE, related_name="repairs")
    verification = models.ForeignKey(
        Verification, null=True, blank=True, on_delete=models.SET_NULL, related_name="repairs"
    )
    state = models.CharField(max_length=10, default=RepairState.ASKED)
    keys = models.JSONField(default=list)
    rows_written = models.BigIntegerField(default=0)
    rows_deleted = models.BigIntegerField(default=0)
    rows_equal = models.BigIntegerField(default=0)
    rows_left = models.BigIntegerField(default=0)
    error_code = models.CharField(max_length=60, blank=True)
    error_facts = models.JSONField(default=dict, blank=True)
    asked_by = models.CharField(max_length=150, blank=True)
    asked_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.CheckConstraint(
                condition=Q(state__in=[str(s) for s in RepairState]),
                name="repair_state_known",
            ),
        )

    def __str__(self) -> str:
        return f"repair {self.pk} of {self.table_id}"


class DifferenceKind(models.TextChoices):
    """How a row differs."""

    MISSING = "missing", "Missing in the target"
    EXTRA = "extra", "Only in the target"
    DIFFERENT = "different", "Different"


class DifferingRow(models.Model):
    """A row that differs, or whose key did not settle: a bounded number for each table. `key`,
    `source` and `target` are lists of [column, value], so that they keep their order; a side
    without the row is None. `columns` names the columns that differ. `key_hash` names the row for
    people who may not see its values. `copies`: how often a table without a key has the row, at
    source and target. `repair` is the last one that was asked for."""

    table = models.ForeignKey(VerifiedTable, on_delete=models.CASCADE, related_name="rows")
    kind = models.CharField(max_length=10, choices=DifferenceKind.choices)
    is_unsettled = models.BooleanField(default=False)
    key = models.JSONField(default=list)
    key_hash = models.CharField(max_length=16, blank=True)
    columns = models.JSONField(default=list)
    source = models.JSONField(null=True, blank=True)
    target = models.JSONField(null=True, blank=True)
    copies = models.JSONField(default=list)
    repair = models.ForeignKey(
        Repair, null=True, blank=True, on_delete=models.SET_NULL, related_name="rows"
    )

    class Meta:
        ordering = ("id",)
        indexes = (models.Index(fields=["table", "kind", "id"], name="differing_by_kind"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.key_hash}"


class VerifySchedule(models.Model):
    """When a replicator is verified by itself: `cron` in UTC; empty: never. `next_at` is the next
    time, `changed_by` who set it."""

    replicator = models.OneToOneField(
        Replicator, on_delete=models.CASCADE, related_name="verify_schedule"
    )
    cron = models.CharField(max_length=100, blank=True)
    rows_per_second = models.PositiveIntegerField(null=True, blank=True)
    next_at = models.DateTimeField(null=True, blank=True, db_index=True)
    changed_by = models.CharField(max_length=150, blank=True)

    def __str__(self) -> str:
        return self.cron or "never"
