"""The one component for states, and the banner that says when nobody works."""

from __future__ import annotations

from typing import Any

from django import template

from runners.selectors import WorkerHealth, worker_health
from runners.states import COLOURS, LABELS

register = template.Library()

_ICONS = {
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
    "failed": "circle-x",
    "lost": "circle-x",
    "deleting": "trash",
}

_EVENTS = {
    "replicator_started": ("player-play", "Started"),
    "replicator_resumed": ("player-play", "Resumed"),
    "replicator_paused": ("player-pause", "Paused"),
    "replicator_delete_asked": ("trash", "Delete asked for"),
    "replicator_deleted": ("trash", "Deleted"),
    "run_started": ("player-play", "Run started"),
    "run_stop_asked": ("player-stop", "Run asked to stop"),
    "run_stopped": ("player-stop", "Run stopped"),
    "run_failed": ("alert-circle", "Run failed"),
    "run_lost": ("alert-circle", "Run lost"),
    "table_waits": ("hourglass", "Table waits"),
    "table_snapshot_started": ("camera", "Snapshot started"),
    "table_snapshot_done": ("circle-check", "Snapshot done"),
    "table_recovered": ("circle-check", "Table recovered"),
    "table_failed": ("alert-triangle", "Table failed"),
    "table_removed": ("ban", "Table removed"),
    "table_resync_asked": ("refresh", "Re-sync asked for"),
    "table_retry_asked": ("reload", "Retry asked for"),
}


@register.inclusion_tag("components/state.html")
def state(name: str, label: str = "", colour: str = "", note: str = "") -> dict[str, str]:
    """A state: word, icon and tint; `note` stands beside it."""
    icon_name = _ICONS.get(name, "circle-dashed")
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
    """Every state there is, for the style guide."""
    return list(_ICONS)


@register.simple_tag
def health() -> WorkerHealth:
    """Whether anybody works."""
    return worker_health()


@register.filter
def event_icon(kind: str) -> str:
    """The icon of an event."""
    return _EVENTS.get(kind, ("activity", ""))[0]


@register.filter
def event_label(kind: str) -> str:
    """An event in words."""
    return _EVENTS.get(kind, ("", kind.replace("_", " ").capitalize()))[1]


@register.filter
def states_counted(tables: Any) -> list[tuple[str, int]]:
    """(state, how many) of table views, failing first."""
    order = ("failing", "snapshotting", "waiting", "replicating")
    states = [t.row.state for t in tables]
    return [(s, states.count(s)) for s in order if s in states]


@register.filter
def rows_copied(tables: Any) -> int:
    """Rows that came by snapshot, over all of these table views."""
    return sum(t.row.rows_snapshotted for t in tables)


@register.filter
def changes(tables: Any) -> int:
    """Changes merged, over all of these table views."""
    return sum(t.row.inserts + t.row.updates + t.row.deletes for t in tables)
