"""The rows of running replicators: runs, progress of tables, metrics, events, log lines, and the
list of the change log's files. That list is authoritative."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from replicators.connectors.model.modes import Mode
from replicators.models import Replicator
from runners.engine.store.table_states import is_lasting
from runners.states import RUN_ACTIVE, RunState, TableState


def _in(field: str, states: type) -> Q:
    return Q(**{f"{field}__in": [str(s) for s in states]})  # type: ignore[attr-defined]


class RunQuerySet(models.QuerySet["Run"]):
    """Names the filters that services and selectors use."""

    def active(self) -> RunQuerySet:
        """Runs that may still have a process."""
        return self.filter(state__in=sorted(str(s) for s in RUN_ACTIVE))


class Run(models.Model):
    """One process that runs a replicator. Only `transitions.run_transition` writes `state`."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    replicator = models.ForeignKey(Replicator, on_delete=models.CASCADE, related_name="runs")
    state = models.CharField(max_length=10, default=RunState.STARTING)
    lease = models.CharField(max_length=40, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    pid = models.PositiveIntegerField(null=True, blank=True)
    pid_started_at = models.FloatField(null=True, blank=True)
    hostname = models.CharField(max_length=120, blank=True)
    supervisor = models.CharField(max_length=40, blank=True)
    supervised_at = models.DateTimeField(null=True, blank=True)
    is_stop_asked = models.BooleanField(default=False)
    stop_origin = models.CharField(max_length=10, blank=True)
    stop_asked_at = models.DateTimeField(null=True, blank=True)
    step = models.CharField(max_length=40, blank=True)
    error_code = models.CharField(max_length=60, blank=True)
    error_facts = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = models.Manager.from_queryset(RunQuerySet)()

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(
                fields=["replicator"],
                condition=Q(state__in=sorted(str(s) for s in RUN_ACTIVE)),
                name="one_live_run_per_replicator",
            ),
            models.CheckConstraint(condition=_in("state", RunState), name="run_state_known"),
        )

    def __str__(self) -> str:
        return f"run {self.pk} of {self.replicator_id}"


class Progress(models.Model):
    """A replicator's own progress: captured position, segment numbers, the supervisor's back-off,
    last metrics. `paused_for`: the replicator for whose log it was paused (`supervision.guard`)."""

    replicator = models.OneToOneField(Replicator, on_delete=models.CASCADE, related_name="progress")
    position = models.JSONField(null=True, blank=True)
    last_segment = models.BigIntegerField(default=0)
    schemas_seen = models.JSONField(default=list, blank=True)
    facts = models.JSONField(default=dict, blank=True)
    facts_at = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True, blank=True)
    retry_at = models.DateTimeField(null=True, blank=True)
    error_code = models.CharField(max_length=60, blank=True)
    error_facts = models.JSONField(default=dict, blank=True)
    error_since = models.DateTimeField(null=True, blank=True)
    is_given_up = models.BooleanField(default=False)
    paused_for = models.JSONField(null=True, blank=True)

    def __str__(self) -> str:
        return f"progress of {self.replicator_id}"


class TableQuerySet(models.QuerySet["Table"]):
    """Names the filters that selectors use."""

    def shown(self) -> TableQuerySet:
        """Tables that are copied; a table whose removal was asked for is left out."""
        return self.filter(is_chosen=True).exclude(state=TableState.REMOVED)


class Table(models.Model):
    """A table of a replicator: the fields of `engine.store.TableRow`, and what the pages show."""

    replicator = models.ForeignKey(Replicator, on_delete=models.CASCADE, related_name="table_rows")
    schema_name = models.CharField(max_length=255)
    name = models.CharField(max_length=255)
    state = models.CharField(max_length=14, default=TableState.WAITING)
    generation = models.PositiveIntegerField(default=0)
    mode = models.CharField(max_length=12, default=Mode.MIRROR)
    schema = models.JSONField(null=True, blank=True)
    table_uuid = models.CharField(max_length=64, blank=True)
    merged_sequence = models.BigIntegerField(default=0)
    token_sequence = models.BigIntegerField(default=0)
    snapshot_position = models.BigIntegerField(default=0)
    starts_after = models.BigIntegerField(null=True, blank=True)
    schema_sequence = models.BigIntegerField(default=0)
    resolved_at = models.FloatField(default=0.0)
    spent = models.JSONField(default=dict, blank=True)
    scanned_bytes = models.BigIntegerField(null=True, blank=True)
    is_pruned = models.BooleanField(default=True)
    estimated_bytes = models.BigIntegerField(null=True, blank=True)
    estimate_accuracy = models.CharField(max_length=10, blank=True)
    is_snapshot_done = models.BooleanField(default=False)
    is_resync_asked = models.BooleanField(default=False)
    rewind_to = models.DateTimeField(null=True, blank=True)
    is_chosen = models.BooleanField(default=True)
    is_drop_asked = models.BooleanField(default=False)
    is_replay_asked = models.BooleanField(default=False)
    rows_quarantined = models.PositiveIntegerField(default=0)
    error_code = models.CharField(max_length=60, blank=True)
    error_facts = models.JSONField(default=dict, blank=True)
    error_since = models.DateTimeField(null=True, blank=True)
    retry_at = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    failing_seconds = models.FloatField(default=0.0)
    is_given_up = models.BooleanField(default=False)
    rows_snapshotted = models.BigIntegerField(default=0)
    rows_total = models.BigIntegerField(null=True, blank=True)
    inserts = models.BigIntegerField(default=0)
    updates = models.BigIntegerField(default=0)
    deletes = models.BigIntegerField(default=0)
    backlog_bytes = models.BigIntegerField(default=0)
    merged_at = models.DateTimeField(null=True, blank=True)
    unmerged_since = models.DateTimeField(null=True, blank=True)
    lag_seconds = models.FloatField(null=True, blank=True)

    objects = models.Manager.from_queryset(TableQuerySet)()

    class Meta:
        ordering = ("schema_name", "name")
        constraints = (
            models.UniqueConstraint(
                fields=["replicator", "schema_name", "name"], name="one_row_per_table"
            ),
            models.CheckConstraint(condition=_in("state", TableState), name="table_state_known"),
        )

    def __str__(self) -> str:
        return f"{self.schema_name}.{self.name}"

    @property
    def needs_resync(self) -> bool:
        """Whether the table fails and only a fresh copy can bring it back."""
        lasts = is_lasting(self.error_code, self.retry_at, is_given_up=self.is_given_up)
        return self.state == TableState.FAILING and lasts


class Segment(models.Model):
    """A sealed raw segment (order of writes, step 2)."""

    replicator = models.ForeignKey(Replicator, on_delete=models.CASCADE, related_name="segments")
    number = models.BigIntegerField()
    path = models.CharField(max_length=1000)
    size_bytes = models.BigIntegerField()
    crc32 = models.BigIntegerField()
    position = models.JSONField()
    is_closed = models.BooleanField()
    messages = models.BigIntegerField(default=0)
    is_decoded = models.BooleanField(default=False)
    sealed_at = models.DateTimeField()

    class Meta:
        ordering = ("number",)
        constraints = (
            models.UniqueConstraint(fields=["replicator", "number"], name="one_segment_per_number"),
        )

    def __str__(self) -> str:
        return f"segment {self.number}"


class ChangeFile(models.Model):
    """A change file (order of writes, step 4): fields of `engine.store.ChangeFileRow`."""

    replicator = models.ForeignKey(
        Replicator, on_delete=models.CASCADE, related_name="change_files"
    )
    segment_number = models.BigIntegerField()
    schema_name = models.CharField(max_length=255)
    table_name = models.CharField(max_length=255)
    path = models.CharField(max_length=1000)
    version = models.CharField(max_length=64)
    schema = models.JSONField()
    inserts = models.BigIntegerField(default=0)
    updates = models.BigIntegerField(default=0)
    deletes = models.BigIntegerField(default=0)
    truncates = models.BigIntegerField(default=0)
    first_sequence = models.BigIntegerField()
    last_sequence = models.BigIntegerField()
    first_committed_at = models.FloatField()
    last_committed_at = models.FloatField()
    first_position = models.BigIntegerField()
    last_position = models.BigIntegerField()
    size_bytes = models.BigIntegerField()
    crc32 = models.BigIntegerField()
    unsent = models.JSONField(default=list)
    has_key_changes = models.BooleanField(default=False)
    faults = models.BigIntegerField(default=0)

    class Meta:
        ordering = ("first_sequence",)
        indexes = (
            models.Index(fields=["replicator", "schema_name", "table_name", "last_sequence"]),
            models.Index(fields=["replicator", "segment_number"]),
        )

    def __str__(self) -> str:
        return self.path


class QuarantinedRow(models.Model):
    """A quarantined row: a change that waits beside the target
    (`engine.store.quarantine.QuarantinedRow`). Generation and sequence identify it. `freed_at` is
    the sequence of the merge that took it."""

    table = models.ForeignKey(Table, on_delete=models.CASCADE, related_name="quarantined")
    generation = models.PositiveIntegerField()
    sequence = models.BigIntegerField()
    key = models.TextField()
    reason = models.TextField()
    image = models.BinaryField()
    is_accepted = models.BooleanField(default=False)
    freed_at = models.BigIntegerField(null=True, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("sequence",)
        constraints = (
            models.UniqueConstraint(
                fields=["table", "generation", "sequence"], name="one_quarantined_row_per_sequence"
            ),
        )

    def __str__(self) -> str:
        return f"{self.table_id} {self.key}"


class SnapshotCopy(models.Model):
    """A table's unfinished snapshot (`engine.store.CopyRow`). The next run continues an interrupted
    snapshot from here."""

    table = models.OneToOneField(Table, on_delete=models.CASCADE, related_name="copy")
    generation = models.PositiveIntegerField()
    schema = models.JSONField()
    layout = models.TextField()
    position = models.BigIntegerField()
    segment_number = models.BigIntegerField()
    folder = models.CharField(max_length=1000)

    def __str__(self) -> str:
        return f"copy of {self.table_id}"


class SnapshotChunk(models.Model):
    """A chunk of a snapshot (`engine.store.CopyChunk`)."""

    copy = models.ForeignKey(SnapshotCopy, on_delete=models.CASCADE, related_name="chunks")
    number = models.PositiveIntegerField()
    spec = models.JSONField(null=True)
    rows_estimated = models.BigIntegerField(default=0)
    path = models.CharField(max_length=1000, blank=True)
    rows = models.BigIntegerField(default=0)
    is_done = models.BooleanField(default=False)

    class Meta:
        ordering = ("number",)
        constraints = (
            models.UniqueConstraint(fields=["copy", "number"], name="one_chunk_per_number"),
        )

    def __str__(self) -> str:
        return f"chunk {self.number} of {self.copy_id}"


class Watermark(models.Model):
    """A commit sequence that tables of the target have reached exactly
    (`engine.watermarks.Watermark`). This row publishes it. `versions` holds [schema, table,
    version], `left_out` [schema, table, why]."""

    replicator = models.ForeignKey(Replicator, on_delete=models.CASCADE, related_name="watermarks")
    sequence = models.BigIntegerField()
    position = models.JSONField()
    committed_at = models.DateTimeField()
    readable_until = models.DateTimeField()
    published_at = models.DateTimeField(auto_now_add=True)
    versions = models.JSONField(default=list)
    left_out = models.JSONField(default=list)

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=["replicator", "-id"]),)

    def __str__(self) -> str:
        return f"watermark {self.sequence} of {self.replicator_id}"


class Delivery(models.Model):
    """A data set that arrived whole (`connectors.poll.DeliveryReport`). `error_code` says why it
    was refused."""

    replicator = models.ForeignKey(Replicator, on_delete=models.CASCADE, related_name="deliveries")
    schema_name = models.CharField(max_length=255)
    table_name = models.CharField(max_length=255)
    name = models.CharField(max_length=500)
    mark = models.CharField(max_length=64)
    arrived_at = models.DateTimeField()
    recorded_at = models.DateTimeField(auto_now_add=True)
    rows = models.BigIntegerField(default=0)
    inserts = models.BigIntegerField(default=0)
    updates = models.BigIntegerField(default=0)
    deletes = models.BigIntegerField(default=0)
    missing = models.BigIntegerField(default=0)
    unchanged = models.BigIntegerField(default=0)
    quarantined = models.BigIntegerField(default=0)
    error_code = models.CharField(max_length=60, blank=True)
    error_facts = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=["replicator", "-id"], name="deliveries_newest"),)
        constraints = (
            models.UniqueConstraint(
                fields=["replicator", "schema_name", "table_name", "name", "mark"],
                name="one_row_per_delivery",
            ),
        )

    def __str__(self) -> str:
        return f"delivery {self.name} of {self.schema_name}.{self.table_name}"


class Event(models.Model):
    """Something that happened: a change of state, or a person's action. It is written in the
    transaction of the change."""

    replicator = models.ForeignKey(
        Replicator, null=True, on_delete=models.CASCADE, related_name="events"
    )
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.SET_NULL)
    schema_name = models.CharField(max_length=255, blank=True)
    table_name = models.CharField(max_length=255, blank=True)
    kind = models.CharField(max_length=60)
    actor = models.CharField(max_length=150, blank=True)
    code = models.CharField(max_length=60, blank=True)
    facts = models.JSONField(default=dict, blank=True)
    at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.kind


class LogLine(models.Model):
    """A line of a replicator's log, capped per replicator."""

    replicator = models.ForeignKey(Replicator, on_delete=models.CASCADE, related_name="log_lines")
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.SET_NULL)
    at = models.DateTimeField()
    level = models.CharField(max_length=8)
    table = models.CharField(max_length=511, blank=True)
    text = models.TextField()

    class Meta:
        ordering = ("id",)
        indexes = (models.Index(fields=["replicator", "id"]),)

    def __str__(self) -> str:
        return self.text

    @property
    def message(self) -> str:
        """The first line of the text."""
        return self.text.partition("\n")[0]

    @property
    def trace(self) -> str:
        """The lines after the message, such as an exception's traceback; empty where there are
        none."""
        return self.text.partition("\n")[2]


class TableMetric(models.Model):
    """A table's metrics over time (`resolution_seconds`): samples of every 10 s are kept for an
    hour, samples of every minute for 7 days."""

    table = models.ForeignKey(Table, on_delete=models.CASCADE, related_name="metrics")
    at = models.DateTimeField()
    resolution_seconds = models.PositiveSmallIntegerField()
    lag_seconds = models.FloatField(null=True)
    inserts = models.BigIntegerField(default=0)
    updates = models.BigIntegerField(default=0)
    deletes = models.BigIntegerField(default=0)
    rows_snapshotted = models.BigIntegerField(default=0)
    backlog_bytes = models.BigIntegerField(default=0)

    class Meta:
        ordering = ("at",)
        constraints = (
            models.UniqueConstraint(
                fields=["table", "resolution_seconds", "at"], name="one_metric_per_moment"
            ),
        )
        indexes = (models.Index(fields=["resolution_seconds", "at"], name="metrics_by_age"),)

    def __str__(self) -> str:
        return f"{self.table_id} {self.at:%F %T}"


class ReplicatorMetric(models.Model):
    """Metrics of all tables of a replicator together at one moment, kept as long as `TableMetric`.
    Charts read these rows, so their cost does not grow with the number of tables. `changes` and
    `rows_snapshotted` are running totals. Lags are over the tables whose lag was known."""

    replicator = models.ForeignKey(Replicator, on_delete=models.CASCADE, related_name="metrics")
    at = models.DateTimeField()
    resolution_seconds = models.PositiveSmallIntegerField()
    lag_worst_seconds = models.FloatField(null=True)
    lag_median_seconds = models.FloatField(null=True)
    changes = models.BigIntegerField(default=0)
    rows_snapshotted = models.BigIntegerField(default=0)

    class Meta:
        ordering = ("at",)
        constraints = (
            models.UniqueConstraint(
                fields=["replicator", "resolution_seconds", "at"], name="one_sum_per_moment"
            ),
        )
        indexes = (models.Index(fields=["resolution_seconds", "at"], name="sums_by_age"),)

    def __str__(self) -> str:
        return f"{self.replicator_id} {self.at:%F %T}"


class Sign(models.Model):
    """When a worker or the scheduler was last seen alive; the banner "No worker" reads it."""

    name = models.CharField(max_length=40, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class NewTable(models.Model):
    """A table that nobody chose, in a schema of the source that is copied from. `is_ignored`:
    people are not asked about it. Only `discovery` writes it."""

    replicator = models.ForeignKey(Replicator, on_delete=models.CASCADE, related_name="new_tables")
    schema_name = models.CharField(max_length=255)
    name = models.CharField(max_length=255)
    is_ignored = models.BooleanField(default=False)
    found_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("schema_name", "name")
        constraints = (
            models.UniqueConstraint(
                fields=["replicator", "schema_name", "name"], name="one_question_per_table"
            ),
        )

    def __str__(self) -> str:
        return f"{self.schema_name}.{self.name}"


from runners import subscribers as subscribers  # noqa: E402 - models of Django's app, apart
from runners import verifications as verifications  # noqa: E402 - models of Django's app, apart
