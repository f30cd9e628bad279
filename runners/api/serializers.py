"""The JSON forms of what runs."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from replicators.api.serializers import StrictMixin, TableWordMixin
from replicators.config import target_can
from replicators.connectors.capabilities import Delivery
from replicators.connectors.model.modes import Mode
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
    """A table, live. While the replicator does not run, one that does not fail is `paused`,
    `stopped` (the replicator has failed or is being deleted) or `waiting`, whatever it was
    before."""

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
    """A table, with what was asked of it and is not done yet: `is_resync_asked` (also by a change
    of what is copied), `is_replay_asked`, `rewind_to` (the time that it is taken back to).
    `called`: its name at the source, where that is another one by now. `retry_at`: when a failing
    one is tried again by itself; `needs_resync`: that only a re-sync brings it back; `is_given_up`:
    its retry time is used up, so that it waits for a person, who asks for another try."""

    mode = serializers.ChoiceField([m.value for m in Mode])
    called = serializers.CharField()
    is_resync_asked = serializers.BooleanField()
    is_replay_asked = serializers.BooleanField()
    rewind_to = serializers.DateTimeField(allow_null=True)
    rows_quarantined = serializers.IntegerField()
    retry_at = serializers.DateTimeField(allow_null=True)
    needs_resync = serializers.BooleanField()
    is_given_up = serializers.BooleanField()


class NewTableSerializer(serializers.Serializer[Any]):
    """A table that appeared at the source and waits for an answer: added by `POST tables/`, or
    ignored."""

    schema = serializers.CharField(source="schema_name")
    table = serializers.CharField(source="name")
    found_at = serializers.DateTimeField()


class ConsistentSerializer(serializers.Serializer[Any]):
    """The newest moment of the source at which tables of the target are level: see `watermarks`."""

    committed_at = serializers.DateTimeField()
    position = serializers.IntegerField()
    sequence = serializers.IntegerField()
    published_at = serializers.DateTimeField()


class WatermarkTableSerializer(serializers.Serializer[Any]):
    """A table's version in the target (Iceberg: snapshot id, Delta: version) that holds exactly
    what was committed up to the watermark."""

    schema = serializers.CharField()
    table = serializers.CharField()
    version = serializers.CharField()


class LeftOutSerializer(serializers.Serializer[Any]):
    """A table that is not in a watermark: its state then, `behind` for one that was too slow,
    `dropped` for one whose target is gone."""

    schema = serializers.CharField()
    table = serializers.CharField()
    reason = serializers.CharField()


class WatermarkSerializer(ConsistentSerializer):
    """A moment of the source at which tables of the target are level. The versions are readable
    until then at least."""

    readable_until = serializers.DateTimeField()
    tables = WatermarkTableSerializer(many=True)
    left_out = LeftOutSerializer(many=True)


class WatermarkQuerySerializer(serializers.Serializer[Any]):
    """How many of the last watermarks are asked for."""

    limit = serializers.IntegerField(min_value=1, max_value=200, default=20)


class CopyProgressSerializer(serializers.Serializer[Any]):
    """How far the copies are that go on now, as one sum of their tables: a first copy's whole, or
    what was asked for last. Rows are estimates of the source; null while a table's are not
    known."""

    tables = serializers.IntegerField()
    tables_done = serializers.IntegerField()
    rows = serializers.IntegerField()
    rows_expected = serializers.IntegerField(allow_null=True)
    percent = serializers.IntegerField(allow_null=True)
    rows_per_second = serializers.FloatField(allow_null=True)
    seconds_left = serializers.FloatField(allow_null=True)


class StatusSerializer(serializers.Serializer[Any]):
    """A replicator, live. `failing`: it is tried again by itself, or all of its tables fail.
    `lag_seconds` is that of its worst table; null while one is being copied. `error`: what keeps it
    from running; those of tables stand with them. `copy`: null where no table waits for its copy or
    is being copied."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    state = serializers.ChoiceField(REPLICATOR_STATES)
    desired_state = serializers.ChoiceField(DESIRED)
    lag_seconds = serializers.FloatField(allow_null=True)
    consistent_at = ConsistentSerializer(allow_null=True)
    error = TableErrorSerializer(allow_null=True)
    copy = CopyProgressSerializer(allow_null=True)
    tables = TableStatusSerializer(many=True)


class ReplicatorLineSerializer(serializers.Serializer[Any]):
    """A line of the list of replicators. `is_log_full`: reading waits until tables have merged; the
    source keeps what is not read. `waits_for`: the transaction or the lock of the source that its
    run waits for now, and who holds it; empty where none."""

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
    """What was asked for; the rest happens by itself."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    state = serializers.ChoiceField(REPLICATOR_STATES)
    desired_state = serializers.ChoiceField(DESIRED)


class DeletionSerializer(serializers.Serializer[Any]):
    """What became of a replicator that was deleted. `statements`: to be run at the source, which
    could not be reached; until then it may keep log for a reader that is gone. `is_target_left`:
    its tables were to go, and did not."""

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
    """Names a table and the time that it is to be taken back to."""

    at = serializers.DateTimeField(help_text="Within the keep time and the target's history.")


class ResyncManySerializer(StrictMixin, serializers.Serializer[Any]):
    """Says which tables are copied afresh: exactly one of the three."""

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
    """A table, and the state it is in now."""

    state = serializers.ChoiceField(TABLE_STATES)


class TablesAcceptedSerializer(serializers.Serializer[Any]):
    """The tables that it was asked of, and the states they are in now."""

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
    """Events, newest first; `after` asks next time only for newer ones."""

    after = serializers.IntegerField()
    events = EventSerializer(many=True)


class MetricSerializer(serializers.Serializer[Any]):
    """A table's figures at a moment."""

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
    """Which replicators are listed; all that is said must fit."""

    state = serializers.ChoiceField(REPLICATOR_STATES, required=False)
    name = serializers.CharField(required=False, help_text="A part of the name, in any case.")
    source_kind = serializers.CharField(required=False, help_text="The plugin's name.")
    target_kind = serializers.CharField(required=False, help_text="The plugin's name.")


class TableListQuerySerializer(serializers.Serializer[Any]):
    """Which tables are listed; all that is said must fit."""

    state = serializers.ChoiceField(TABLE_STATES, required=False)
    schema = serializers.CharField(required=False, trim_whitespace=False)
    table = serializers.CharField(
        required=False, trim_whitespace=False, help_text="A part of the name, in any case."
    )


class LogQuerySerializer(serializers.Serializer[Any]):
    """What is asked of the log."""

    after = serializers.IntegerField(min_value=0, default=0, help_text="Only lines after this id.")
    level = serializers.ChoiceField(
        ["DEBUG", "INFO", "WARNING", "ERROR"], default="", allow_blank=True,
        help_text="This level and those above.",
    )  # fmt: skip
    table = serializers.CharField(default="", allow_blank=True, help_text="schema.name")
    search = serializers.CharField(default="", allow_blank=True)
    limit = serializers.IntegerField(min_value=1, max_value=1000, default=200)


class EventQuerySerializer(serializers.Serializer[Any]):
    """What is asked of the events."""

    after = serializers.IntegerField(min_value=0, default=0, help_text="Only events after this id.")
    schema = serializers.CharField(default="", allow_blank=True, trim_whitespace=False)
    table = serializers.CharField(default="", allow_blank=True, trim_whitespace=False)
    limit = serializers.IntegerField(min_value=1, max_value=1000, default=200)


class MetricQuerySerializer(serializers.Serializer[Any]):
    """What is asked of the figures."""

    seconds = serializers.IntegerField(min_value=10, max_value=7 * 86400, default=3600)
    schema = serializers.CharField(default="", allow_blank=True, trim_whitespace=False)
    table = serializers.CharField(default="", allow_blank=True, trim_whitespace=False)


class DeleteQuerySerializer(serializers.Serializer[Any]):
    """What is asked of a delete."""

    keep_target = serializers.BooleanField(
        default=True, help_text="Whether the target's tables stay."
    )


class QuarantinedRowSerializer(serializers.Serializer[Any]):
    """A change that waits, known by generation and sequence; `key` is JSON."""

    generation = serializers.IntegerField()
    sequence = serializers.IntegerField()
    key = serializers.CharField()
    reason = serializers.CharField()
    quarantined_at = serializers.DateTimeField()


class QuarantinedSerializer(serializers.Serializer[Any]):
    """A table's quarantined rows by sequence; `after` is the cursor of the next request."""

    schema = serializers.CharField()
    table = serializers.CharField()
    rows_quarantined = serializers.IntegerField()
    is_replay_asked = serializers.BooleanField()
    after = serializers.IntegerField(allow_null=True)
    rows = QuarantinedRowSerializer(many=True)


class QuarantinedQuerySerializer(serializers.Serializer[Any]):
    """What is asked of the quarantined rows."""

    schema = serializers.CharField(max_length=255, trim_whitespace=False)
    table = serializers.CharField(max_length=255, trim_whitespace=False)
    after = serializers.IntegerField(
        default=None, allow_null=True, help_text="Only rows after this sequence."
    )
    limit = serializers.IntegerField(min_value=1, max_value=1000, default=200)
