"""The JSON forms of running replicators."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from replicators.api.serializers import StrictMixin, TableWordMixin
from replicators.config import target_can
from replicators.connectors.capabilities import Delivery
from replicators.connectors.model.modes import Mode
from replicators.connectors.target import Accuracy
from replicators.options import RETENTION_ACTIONS
from runners.models import Event, LogLine
from runners.states import REPLICATOR_STATES, TABLES_SHOWN, TableState

DESIRED = ("running", "paused")
TABLE_STATES = (*TABLES_SHOWN, str(TableState.REMOVED))


class TableErrorSerializer(serializers.Serializer[Any]):
    """Why a table or a replicator fails, and what to do."""

    code = serializers.CharField()
    message = serializers.CharField()
    suggestion = serializers.CharField()
    since = serializers.DateTimeField(allow_null=True)


class TableStatusSerializer(serializers.Serializer[Any]):
    """A table's live state. While the replicator does not run, a table that does not fail is
    `paused`, `stopped` (the replicator has failed or is being deleted) or `waiting`, whatever its
    state was before."""

    schema = serializers.CharField()
    table = serializers.CharField()
    state = serializers.ChoiceField(TABLE_STATES)
    rows_snapshotted = serializers.IntegerField()
    snapshot_percent = serializers.IntegerField(allow_null=True)
    inserts = serializers.IntegerField()
    updates = serializers.IntegerField()
    deletes = serializers.IntegerField()
    lag_seconds = serializers.FloatField(allow_null=True)
    error = TableErrorSerializer(allow_null=True)


class TableSerializer(TableStatusSerializer):
    """A table, with requests that are not done yet: `is_resync_asked` (also after a change of what
    is copied), `is_replay_asked`, `rewind_to` (the time of the rewind). `called`: its present name
    at the source, where it was renamed. `retry_at`: the next automatic retry of a failing table.
    `needs_resync`: only a re-sync can bring the table back. `is_given_up`: the retry time is used
    up, so the table waits until a person asks for a retry. `scanned_bytes`: bytes that the last
    merge read at the target; null where the target does not say it. `is_pruned` false: that
    merge could leave no part of the table out. `estimated_bytes`: what a merge reads by the
    target's own estimate, asked for before a merge once an hour; null where there is none.
    `estimate_accuracy`: `exact`, `at_least`, `at_most`, `unknown`, or empty."""

    mode = serializers.ChoiceField([m.value for m in Mode])
    called = serializers.CharField()
    is_resync_asked = serializers.BooleanField()
    is_replay_asked = serializers.BooleanField()
    rewind_to = serializers.DateTimeField(allow_null=True)
    rows_quarantined = serializers.IntegerField()
    retry_at = serializers.DateTimeField(allow_null=True)
    needs_resync = serializers.BooleanField()
    scanned_bytes = serializers.IntegerField(allow_null=True)
    is_pruned = serializers.BooleanField()
    estimated_bytes = serializers.IntegerField(allow_null=True)
    estimate_accuracy = serializers.ChoiceField([a.value for a in Accuracy], allow_blank=True)
    is_given_up = serializers.BooleanField()


class NewTableSerializer(serializers.Serializer[Any]):
    """A table that appeared at the source and waits for an answer: `POST tables/` adds it, or it is
    ignored."""

    schema = serializers.CharField(source="schema_name")
    table = serializers.CharField(source="name")
    found_at = serializers.DateTimeField()


class ConsistentSerializer(serializers.Serializer[Any]):
    """The newest moment of the source that tables of the target have reached exactly: see
    `watermarks`."""

    committed_at = serializers.DateTimeField()
    position = serializers.IntegerField()
    sequence = serializers.IntegerField()
    published_at = serializers.DateTimeField()


class WatermarkTableSerializer(serializers.Serializer[Any]):
    """A table's version in the target (Iceberg: snapshot id, Delta: version) that holds exactly the
    changes committed up to the watermark."""

    schema = serializers.CharField()
    table = serializers.CharField()
    version = serializers.CharField()


class LeftOutSerializer(serializers.Serializer[Any]):
    """A table that is not in a watermark, and its state then; `behind`: it was too slow; `dropped`:
    its target table is gone."""

    schema = serializers.CharField()
    table = serializers.CharField()
    reason = serializers.CharField()


class WatermarkSerializer(ConsistentSerializer):
    """A moment of the source that tables of the target have reached exactly. Their versions stay
    readable at least until `readable_until`."""

    readable_until = serializers.DateTimeField()
    tables = WatermarkTableSerializer(many=True)
    left_out = LeftOutSerializer(many=True)


class WatermarkQuerySerializer(serializers.Serializer[Any]):
    """The number of watermarks asked for, newest first."""

    limit = serializers.IntegerField(min_value=1, max_value=200, default=20)


class RefusalSerializer(serializers.Serializer[Any]):
    """Why a delivery was refused, and what to do."""

    code = serializers.CharField()
    title = serializers.CharField()
    message = serializers.CharField()
    suggestion = serializers.CharField()


class DeliverySerializer(serializers.Serializer[Any]):
    """A data set that arrived whole, and what it changed. `missing`: rows that a set of changed
    rows does not have. Nothing of a delivery that was `refused` is applied."""

    schema = serializers.CharField()
    table = serializers.CharField()
    name = serializers.CharField()
    arrived_at = serializers.DateTimeField()
    recorded_at = serializers.DateTimeField()
    rows = serializers.IntegerField()
    inserts = serializers.IntegerField()
    updates = serializers.IntegerField()
    deletes = serializers.IntegerField()
    missing = serializers.IntegerField()
    unchanged = serializers.IntegerField()
    quarantined = serializers.IntegerField()
    refused = RefusalSerializer(allow_null=True)


class DeliveryQuerySerializer(serializers.Serializer[Any]):
    """The number of deliveries asked for, newest first."""

    limit = serializers.IntegerField(min_value=1, max_value=200, default=20)


class CopyProgressSerializer(serializers.Serializer[Any]):
    """Progress of the current copies, summed over their tables: those of the first copy, or those
    that were asked for last. Expected rows are the source's estimates; null while those of one
    table are not known."""

    tables = serializers.IntegerField()
    tables_done = serializers.IntegerField()
    rows = serializers.IntegerField()
    rows_expected = serializers.IntegerField(allow_null=True)
    percent = serializers.IntegerField(allow_null=True)
    rows_per_second = serializers.FloatField(allow_null=True)
    seconds_left = serializers.FloatField(allow_null=True)


class RetentionSerializer(serializers.Serializer[Any]):
    """How long the logs last, as the run measures it. `source_hours_left`: until the source drops
    log that was not read. `log_hours_left`: until the change log is at its limit, at the growth of
    the last ten minutes. Null: no limit, no growth, or not known. `warn_hours`: below it, the state
    is marked (`is_short`). `action`: what is done where the source's log is short; with `drop` the
    position is given up below `gives_up_hours`."""

    source_hours_left = serializers.FloatField(allow_null=True)
    log_hours_left = serializers.FloatField(allow_null=True)
    warn_hours = serializers.FloatField()
    action = serializers.ChoiceField([c.value for c in RETENTION_ACTIONS])
    gives_up_hours = serializers.FloatField()
    is_short = serializers.BooleanField()


class StatusSerializer(serializers.Serializer[Any]):
    """A replicator's live state. `failing`: it is retried automatically, or all of its tables fail.
    `lag_seconds` is that of its worst table; null while a table is being copied. `error`: what
    keeps the replicator from running; errors of tables are with the tables. `copy`: null where no
    table waits for its copy or is being copied. `next_delivery_at`: when the source's schedule
    looks for its next delivery; null without a schedule."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    state = serializers.ChoiceField(REPLICATOR_STATES)
    desired_state = serializers.ChoiceField(DESIRED)
    lag_seconds = serializers.FloatField(allow_null=True)
    next_delivery_at = serializers.DateTimeField(allow_null=True)
    retention = RetentionSerializer()
    consistent_at = ConsistentSerializer(allow_null=True)
    error = TableErrorSerializer(allow_null=True)
    copy = CopyProgressSerializer(allow_null=True)
    tables = TableStatusSerializer(many=True)


class ReplicatorLineSerializer(serializers.Serializer[Any]):
    """A line of the list of replicators. `is_log_full`: reading is paused until tables have merged;
    the source keeps the unread changes. `is_source_closed`: the connection to the source is closed
    meanwhile, as the option says. `waits_for`: the transaction or lock at the source that the
    run waits for now, and its holder; empty where there is none."""

    id = serializers.UUIDField(source="replicator.pk")
    name = serializers.CharField(source="replicator.name")
    description = serializers.CharField(source="replicator.description")
    source_kind = serializers.CharField(source="replicator.source_kind")
    target_kind = serializers.CharField(source="replicator.target_kind")
    delivery = serializers.SerializerMethodField(
        help_text="What a crash may do to a change at the target: `exactly_once` or "
        "`at_least_once`; null where the plugin is gone."
    )
    state = serializers.ChoiceField(REPLICATOR_STATES, source="shown.state")
    state_label = serializers.CharField(source="shown.label")
    is_log_full = serializers.BooleanField()
    is_source_closed = serializers.BooleanField()
    retention = RetentionSerializer()
    waits_for = serializers.CharField()
    desired_state = serializers.ChoiceField(DESIRED, source="replicator.desired_state")
    lag_seconds = serializers.FloatField(allow_null=True)
    tables = serializers.SerializerMethodField()
    error = TableErrorSerializer(allow_null=True)

    def get_tables(self, view: Any) -> dict[str, int]:
        return dict(view.counts)

    @extend_schema_field(serializers.ChoiceField(list(Delivery), allow_null=True))
    def get_delivery(self, view: Any) -> str | None:
        can = target_can(view.replicator.target_kind)
        return None if can is None else str(can.delivery)


class AcceptedSerializer(serializers.Serializer[Any]):
    """What was accepted; the rest happens in the background."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    state = serializers.ChoiceField(REPLICATOR_STATES)
    desired_state = serializers.ChoiceField(DESIRED)


class DeletionSerializer(serializers.Serializer[Any]):
    """How a replicator's deletion ended. `statements`: SQL to run at the source, which could not be
    reached; until it runs, the source may keep log for a reader that is gone. `is_target_left`: the
    target's tables were to be dropped, and were not."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    deleted_at = serializers.DateTimeField()
    statements = serializers.ListField(child=serializers.CharField())
    is_target_left = serializers.BooleanField()


class TableNameSerializer(TableWordMixin, StrictMixin, serializers.Serializer[Any]):
    """Names a table of the replicator."""

    schema = serializers.CharField(max_length=255, trim_whitespace=False)
    table = serializers.CharField(max_length=255, trim_whitespace=False)


class TableRewindSerializer(TableNameSerializer):
    """Names a table and the time to rewind it to."""

    at = serializers.DateTimeField(help_text="Within the keep time and the target's history.")


class ResyncManySerializer(StrictMixin, serializers.Serializer[Any]):
    """Names the tables to copy again: exactly one of the three fields."""

    tables = TableNameSerializer(many=True, required=False, allow_empty=False)
    state = serializers.ChoiceField(
        TABLE_STATES, required=False, help_text="Those that are in this state now."
    )
    all = serializers.BooleanField(required=False, help_text="true: every table.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if sum((bool(attrs.get("tables")), "state" in attrs, attrs.get("all") is True)) != 1:
            raise serializers.ValidationError(
                'Send exactly one of "tables", "state" and "all": true.'
            )
        return attrs


class TableAcceptedSerializer(TableNameSerializer):
    """A table and its present state."""

    state = serializers.ChoiceField(TABLE_STATES)


class TablesAcceptedSerializer(serializers.Serializer[Any]):
    """The tables of the request and their present states."""

    tables = TableAcceptedSerializer(many=True)


class LogLineSerializer(serializers.ModelSerializer[LogLine]):
    """A line of the log."""

    run = serializers.UUIDField(source="run_id", allow_null=True)

    class Meta:
        model = LogLine
        fields = ("id", "at", "level", "table", "text", "run")
        read_only_fields = fields


class LogSerializer(serializers.Serializer[Any]):
    """Lines, oldest first; `after` is the cursor of the next request."""

    after = serializers.IntegerField()
    lines = LogLineSerializer(many=True)


class EventSerializer(serializers.ModelSerializer[Event]):
    """Something that happened."""

    schema = serializers.CharField(source="schema_name")
    table = serializers.CharField(source="table_name")
    run = serializers.UUIDField(source="run_id", allow_null=True)
    facts = serializers.DictField()

    class Meta:
        model = Event
        fields = ("id", "at", "kind", "schema", "table", "actor", "code", "facts", "run")
        read_only_fields = fields


class EventsSerializer(serializers.Serializer[Any]):
    """Events, newest first; `after` in the next request asks only for newer events."""

    after = serializers.IntegerField()
    events = EventSerializer(many=True)


class MetricSerializer(serializers.Serializer[Any]):
    """A table's metrics at one moment."""

    schema = serializers.CharField()
    table = serializers.CharField()
    at = serializers.DateTimeField()
    resolution_seconds = serializers.IntegerField()
    lag_seconds = serializers.FloatField(allow_null=True)
    inserts = serializers.IntegerField()
    updates = serializers.IntegerField()
    deletes = serializers.IntegerField()
    rows_snapshotted = serializers.IntegerField()
    backlog_bytes = serializers.IntegerField()


class ReplicatorListQuerySerializer(serializers.Serializer[Any]):
    """Filters of the list of replicators; a replicator must match all of them."""

    state = serializers.ChoiceField(REPLICATOR_STATES, required=False)
    name = serializers.CharField(required=False, help_text="A part of the name, in any case.")
    source_kind = serializers.CharField(required=False, help_text="The plugin's name.")
    target_kind = serializers.CharField(required=False, help_text="The plugin's name.")


class TableListQuerySerializer(serializers.Serializer[Any]):
    """Filters of the list of tables; a table must match all of them."""

    state = serializers.ChoiceField(TABLE_STATES, required=False)
    schema = serializers.CharField(required=False, trim_whitespace=False)
    table = serializers.CharField(
        required=False, trim_whitespace=False, help_text="A part of the name, in any case."
    )


class LogQuerySerializer(serializers.Serializer[Any]):
    """Parameters of a request for log lines."""

    after = serializers.IntegerField(min_value=0, default=0, help_text="Only lines after this id.")
    level = serializers.ChoiceField(
        ["DEBUG", "INFO", "WARNING", "ERROR"], default="", allow_blank=True,
        help_text="This level and those above.",
    )  # fmt: skip
    table = serializers.CharField(default="", allow_blank=True, help_text="schema.name")
    search = serializers.CharField(default="", allow_blank=True)
    limit = serializers.IntegerField(min_value=1, max_value=1000, default=200)


class EventQuerySerializer(serializers.Serializer[Any]):
    """Parameters of a request for events."""

    after = serializers.IntegerField(min_value=0, default=0, help_text="Only events after this id.")
    schema = serializers.CharField(default="", allow_blank=True, trim_whitespace=False)
    table = serializers.CharField(default="", allow_blank=True, trim_whitespace=False)
    limit = serializers.IntegerField(min_value=1, max_value=1000, default=200)


class MetricQuerySerializer(serializers.Serializer[Any]):
    """Parameters of a request for metrics."""

    seconds = serializers.IntegerField(min_value=10, max_value=7 * 86400, default=3600)
    schema = serializers.CharField(default="", allow_blank=True, trim_whitespace=False)
    table = serializers.CharField(default="", allow_blank=True, trim_whitespace=False)


class DeleteQuerySerializer(serializers.Serializer[Any]):
    """Parameters of a delete."""

    keep_target = serializers.BooleanField(
        default=True, help_text="Whether the target's tables stay."
    )


class QuarantinedRowSerializer(serializers.Serializer[Any]):
    """A quarantined row. Generation and sequence identify it; `key` is JSON."""

    generation = serializers.IntegerField()
    sequence = serializers.IntegerField()
    key = serializers.CharField()
    reason = serializers.CharField()
    quarantined_at = serializers.DateTimeField()


class ConflictSerializer(serializers.Serializer[Any]):
    """A change of the source that lost against a later one at the target. `kept` is the target's
    row, null where it was deleted there; `lost` is the source's, null for a delete."""

    schema = serializers.CharField(source="table.schema")
    table = serializers.CharField(source="table.name")
    key = serializers.CharField()
    kept = serializers.DictField(allow_null=True)
    kept_at = serializers.DateTimeField()
    lost = serializers.DictField(allow_null=True)
    lost_at = serializers.DateTimeField()
    found_at = serializers.DateTimeField()


class ConflictQuerySerializer(serializers.Serializer[Any]):
    """The number of conflicts asked for, newest first."""

    limit = serializers.IntegerField(min_value=1, max_value=1000, default=100)


class QuarantinedSerializer(serializers.Serializer[Any]):
    """A table's quarantined rows by sequence; `after` is the cursor of the next request."""

    schema = serializers.CharField()
    table = serializers.CharField()
    rows_quarantined = serializers.IntegerField()
    is_replay_asked = serializers.BooleanField()
    after = serializers.IntegerField(allow_null=True)
    rows = QuarantinedRowSerializer(many=True)


class QuarantinedQuerySerializer(serializers.Serializer[Any]):
    """Parameters of a request for quarantined rows."""

    schema = serializers.CharField(max_length=255, trim_whitespace=False)
    table = serializers.CharField(max_length=255, trim_whitespace=False)
    after = serializers.IntegerField(
        default=None, allow_null=True, help_text="Only rows after this sequence."
    )
    limit = serializers.IntegerField(min_value=1, max_value=1000, default=200)
