"""Template tags: the one component for states; event texts; rates, sizes and small charts; the
banner that says when no worker is alive."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from replicators.config import plugin_of
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.lookup import message_of
from replicators.connectors.problems.message import Help
from replicators.templatetags.ui import compact, duration
from runners.events.texts import WITH_SENTENCE, sentence
from runners.metrics.charts import Series, line_path
from runners.models import Event
from runners.pages.listing import Asked
from runners.pages.panels import version_of
from runners.shown import error_shown
from runners.states import COLOURS, LABELS
from runners.supervision.health import WorkerHealth, worker_health

register = template.Library()

ICONS = {
    "waiting": "hourglass",
    "snapshotting": "loader-2",
    "replicating": "circle-check",
    "failing": "alert-triangle",
    "removed": "ban",
    "starting": "loader-2",
    "running": "circle-check",
    "stopping": "player-stop",
    "stopped": "player-stop",
    "paused": "player-pause",
    "stalled": "alert-triangle",
    "failed": "circle-x",
    "lost": "circle-x",
    "deleting": "trash",
    "done": "circle-check",
    "cancelled": "ban",
    "asked": "hourglass",
    "refused": "alert-triangle",
    "verifying": "loader-2",
    "equal": "circle-check",
    "different": "alert-triangle",
    "unsettled": "hourglass",
    "not_compared": "ban",
}

EVENTS = {
    "replicator_started": ("player-play", "Started"),
    "replicator_resumed": ("player-play", "Resumed"),
    "replicator_retry_asked": ("reload", "Retry requested"),
    "run_waits": ("hourglass", "Waiting for a free run"),
    "replicator_paused": ("player-pause", "Paused"),
    "replicator_owner_gone": ("player-pause", "Paused: its owner may not edit any more"),
    "replicator_handed_over": ("user", "Has a new owner"),
    "replicator_paused_for": ("player-pause", "Paused for another replicator's log"),
    "replicator_resumed_after": ("player-play", "Resumed by itself"),
    "retention_others_paused": ("alert-triangle", "Another replicator paused"),
    "replicator_changed": ("pencil", "Changed"),
    "secret_asked": ("alert-triangle", "Change refused: password not entered again"),
    "replicator_delete_asked": ("trash", "Delete requested"),
    "replicator_deleted": ("trash", "Deleted"),
    "run_started": ("player-play", "Run started"),
    "run_stop_asked": ("player-stop", "Run stop requested"),
    "run_stopped": ("player-stop", "Run stopped"),
    "run_failed": ("alert-circle", "Run failed"),
    "run_lost": ("alert-circle", "Run lost"),
    "table_waits": ("hourglass", "Table waits"),
    "table_snapshot_started": ("camera", "Snapshot started"),
    "table_snapshot_done": ("circle-check", "Snapshot done"),
    "table_recovered": ("circle-check", "Table recovered"),
    "table_failed": ("alert-triangle", "Table failed"),
    "table_given_up": ("alert-triangle", "Table no longer retried"),
    "table_removed": ("ban", "Table removed"),
    "table_added": ("plus", "Table added"),
    "table_add_asked": ("plus", "Table add requested"),
    "table_mode_asked": ("refresh", "Mode change requested"),
    "table_change_asked": ("pencil", "Change of what is copied requested"),
    "table_remove_asked": ("ban", "Table removal requested"),
    "table_resync_asked": ("refresh", "Re-sync requested"),
    "table_rewind_asked": ("rotate", "Rewind requested"),
    "table_rewind_started": ("rotate", "Rewind started"),
    "table_rewind_refused": ("alert-triangle", "Rewind refused"),
    "table_rewound": ("circle-check", "Table rewound"),
    "table_retry_asked": ("reload", "Retry requested"),
    "table_replay_asked": ("reload", "Replay of quarantined rows requested"),
    "schema_followed": ("table", "Schema change followed"),
    "schema_kept": ("table", "Schema change left out"),
    "schema_resync": ("refresh", "Re-sync after a schema change"),
    "tables_appeared": ("plus", "New tables at the source"),
    "source_waits": ("hourglass", "Waiting at the source"),
    "delivery_refused": ("alert-triangle", "Delivery refused"),
    "table_ignored": ("ban", "New table ignored"),
    "run_created": ("clock", "Run scheduled"),
    "replicator_given_up": ("alert-circle", "Stopped trying"),
    "verification_asked": ("search", "Verification requested"),
    "verification_started": ("search", "Verification started"),
    "verification_done": ("circle-check", "Verification done"),
    "verification_failed": ("alert-circle", "Verification failed"),
    "verification_cancel_asked": ("player-stop", "Verification cancel requested"),
    "verification_cancelled": ("ban", "Verification cancelled"),
    "verification_skipped": ("hourglass", "Scheduled verification left out"),
    "verify_schedule_changed": ("clock", "Verification schedule changed"),
    "repair_asked": ("reload", "Repair requested"),
    "repair_done": ("circle-check", "Repair done"),
    "repair_refused": ("alert-triangle", "Repair refused"),
    "subscriber_registered": ("plus", "Subscriber registered"),
    "subscriber_removed": ("ban", "Subscriber removed"),
    "subscriber_fell_behind": ("alert-triangle", "Subscriber fell behind"),
    "target_left": ("alert-triangle", "Target not cleaned"),
}
_ORIGINS = {
    "user": "The replicator was paused or deleted.",
    "shutdown": "The worker was shut down.",
    "error": "It could not go on.",
    "owner": "Its owner may not edit any more.",
    "retention": "It is paused while another replicator catches up.",
    "change": "It starts again, with what was changed.",
}
SPARK_WIDTH, SPARK_HEIGHT = 112, 28
CHART_WIDTH, CHART_HEIGHT = 600, 160


@register.inclusion_tag("components/state.html")
def state(name: str, label: str = "", colour: str = "", note: str = "") -> dict[str, str]:
    """A state with label, icon and tint; `note` stands beside it."""
    icon_name = ICONS.get(name, "circle-dashed")
    if name == "running" and colour == "amber":
        icon_name = "alert-triangle"
    return {
        "name": name,
        "label": label or LABELS.get(name, name.capitalize()),
        "colour": colour or COLOURS.get(name, "slate"),
        "icon_name": icon_name,
        "note": note,
    }


@register.simple_tag
def all_states() -> list[str]:
    """Every state, for the style guide."""
    return list(ICONS)


@register.simple_tag
def health() -> WorkerHealth:
    """Whether workers and scheduler are alive."""
    return worker_health()


@register.filter
def key_text(key: str) -> str:
    """A quarantined row's key, stored as a JSON object, as `name = value` for each column. Any
    other text stays as it is."""
    try:
        values = json.loads(key)
    except ValueError:
        return key
    return ", ".join(f"{n} = {v}" for n, v in values.items()) if isinstance(values, dict) else key


@register.filter
def event_icon(kind: str) -> str:
    """The icon of an event."""
    return EVENTS.get(kind, ("activity", ""))[0]


@register.filter
def event_label(kind: str) -> str:
    """The label of an event."""
    return EVENTS.get(kind, ("", kind.replace("_", " ").capitalize()))[1]


@register.filter
def event_text(event: Event) -> str:
    """The details of an event as a sentence; empty where the label says everything."""
    if event.code:
        shown = error_shown(event.code, event.facts, None, table=_table(event))
        return f"{shown['title']}: {shown['message']}" if shown else ""
    facts = event.facts
    if event.kind in WITH_SENTENCE:
        return sentence(event.kind, facts)
    match event.kind:
        case "replicator_delete_asked":
            return (
                "The target's tables stay."
                if facts.get("keep_target")
                else "The target's tables go too."
            )
        case "replicator_changed" | "secret_asked":
            return ", ".join(f"`{name}`" for name in facts.get("fields", ()))
        case "table_rewind_asked":
            return f"Back to {str(facts.get('at', ''))[:19]} UTC."
        case "run_stop_asked":
            return _ORIGINS.get(str(facts.get("origin", "")), "")
        case "run_stopped" if facts.get("killed"):
            return "It did not stop in time and was ended."
        case "replicator_deleted":
            left = (
                ": the source could not be reached. Run there:" if facts.get("statements") else ""
            )
            return f"{facts.get('name', '')}{left}"
        case "target_left":
            return (
                f"{facts.get('replicator', '')}: the target could not be cleaned; its tables "
                "are still there."
            )
    return ""


@register.filter
def is_mended_by_edit(code: str) -> bool:
    """Whether corrected connection parameters may clear an error."""
    return message_of(code).help is Help.EDIT


@register.filter
def table_help(code: str) -> str:
    """What helps a table with this error, where a re-sync alone would fail again: `remove` the
    table or `change` what is copied."""
    helped = message_of(code).help
    return str(helped) if helped in {Help.REMOVE, Help.CHANGE} else ""


def _table(event: Event) -> TableId | None:
    return TableId(event.schema_name, event.table_name) if event.table_name else None


@register.filter
def size(count: Any) -> str:
    """Bytes as `12.4 MB`; a dash where not known."""
    if count is None:
        return "–"
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


@register.filter
def per_second(rate: Any) -> SafeString | str:
    """Rows a second; a dash where not known."""
    if rate is None:
        return "–"
    value = float(rate)
    number = f"{value:.1f}" if 0 < value < 10 else compact(round(value))
    return format_html('{}<span class="unit">&nbsp;rows/s</span>', number)


@register.filter
def hours(value: Any) -> str:
    """Hours as a duration; a dash where not known."""
    return duration(None if value is None else float(value) * 3600)


@register.filter
def until(at: datetime | None) -> SafeString | str:
    """`in 40 s`, counted down on the page; `now` once the time is past."""
    if at is None:
        return ""
    left = (at - timezone.now()).total_seconds()
    text = f"in {duration(max(1.0, round(left)))}".replace(".0 s", " s") if left > 0 else "now"
    return format_html('<time datetime="{}" data-until>{}</time>', at.isoformat(), text)


@register.filter
def route(row: Any) -> str:
    """The labels of source and target, in this order."""
    return " → ".join(_label(role, getattr(row, f"{role}_kind")) for role in ("source", "target"))


def _label(role: str, kind: str) -> str:
    try:
        return plugin_of(role, kind).label
    except ReplicationError:
        return kind


@register.filter
def names(tables: Any) -> list[str]:
    """Tables of a definition as `schema.name`."""
    return [f"{t['schema']}.{t['name']}" for t in tables]


@register.inclusion_tag("components/spark.html")
def spark(values: Any, label: str) -> dict[str, Any]:
    """A sparkline: a line without axes; `label` says what it shows."""
    return {"path": line_path(values, SPARK_WIDTH, SPARK_HEIGHT), "label": label,
            "width": SPARK_WIDTH, "height": SPARK_HEIGHT}  # fmt: skip


@register.inclusion_tag("components/lines.html")
def lines(series: Series, which: str) -> dict[str, Any]:
    """A chart of one or two lines, drawn on the server; the script draws it again with axes."""
    columns = series.columns()[which]
    top = max((v for column in columns for v in column if v is not None), default=0.0) or 1.0
    paths = [line_path(column, CHART_WIDTH, CHART_HEIGHT, top) for column in columns]
    return {"paths": paths, "width": CHART_WIDTH, "height": CHART_HEIGHT}


@register.inclusion_tag("components/chips.html")
def state_chips(asked: Asked, chips: list[tuple[str, str, int]], panel: str) -> dict[str, Any]:
    """Filters by state with the number of each; `panel` is the id of what they refresh."""
    made = [
        {
            "key": key,
            "label": label,
            "count": count,
            "query": asked.address(state=key),
            "is_chosen": asked.state == key,
        }
        for key, label, count in chips
    ]
    return {"chips": made, "panel": panel}


@register.inclusion_tag("components/sort.html")
def sort_by(asked: Asked, first: str, label: str, panel: str, kind: str = "") -> dict[str, Any]:
    """A column's head that sorts by the column: first in the order `first`, then reversed."""
    key = first.removeprefix("-")
    is_chosen = asked.sort.removeprefix("-") == key
    turned = key if asked.sort.startswith("-") else f"-{key}"
    order = "descending" if asked.sort.startswith("-") else "ascending"
    return {
        "key": key,
        "label": label,
        "panel": panel,
        "kind": kind,
        "order": order if is_chosen else "none",
        "query": asked.address(sort=turned if is_chosen else first),
    }


@register.simple_tag
def said(message: str) -> str:
    """The banner's version."""
    return version_of(message)
