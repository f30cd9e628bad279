"""`/metrics`: figures of all replicators in the text format of Prometheus, for whoever may view; a handful of queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.db.models import Sum
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from runners.models import Table
from runners.selectors import replicators_for_list
from runners.shown import ReplicatorView
from runners.states import TABLES_SHOWN
from runners.supervision.health import worker_health

Found = tuple[dict[str, str], float]


class PlainText(BaseRenderer):
    """The text as it is, whatever was asked for."""

    media_type = "text/plain"
    format = "txt"
    charset = "utf-8"

    def render(self, data: Any, *_: Any, **__: Any) -> Any:
        """An error's answer is its sentence."""
        return data if isinstance(data, str) else f"{data.get('message', data)}\n"


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _family(name: str, kind: str, about: str, found: Iterable[Found]) -> str:
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    for labels, value in found:
        words = ",".join(f'{k}="{_label(v)}"' for k, v in labels.items())
        lines.append(f"{name}{{{words}}} {value:.15g}" if words else f"{name} {value:.15g}")
    return "\n".join(lines) + "\n"


def _fact(name: str) -> Callable[[ReplicatorView], float | None]:
    return lambda view: view.facts.get(name)


_FIGURES: tuple[tuple[str, str, str, Callable[[ReplicatorView], float | None]], ...] = (
    ("lag_seconds", "gauge", "Lag of the worst table.", lambda v: v.lag_seconds),
    ("changes_total", "counter", "Changes merged.", lambda v: v.totals.changes),
    ("rows_copied", "gauge", "Rows of first copies.", lambda v: v.totals.rows_copied),
    ("failures", "gauge", "Failed runs in a row.", lambda v: v.tries),
    ("is_live", "gauge", "1 while a run writes figures.", lambda v: v.is_live),
    ("is_log_full", "gauge", "1 while reading waits for room in the change log.", lambda v: v.is_log_full),
    ("log_bytes", "gauge", "Size of the change log.", _fact("log_bytes")),
    ("source_retained_bytes", "gauge", "Log that the source keeps for it.", _fact("retained_bytes")),
    ("source_hours_left", "gauge", "Hours until the source drops log that is needed.", _fact("hours_left")),
    ("segments_waiting", "gauge", "Segments that wait for decoding.", _fact("segments_waiting")),
)  # fmt: skip


def metrics_text() -> str:
    """All families. A figure that isn't known has no line."""
    views = replicators_for_list()
    parts = [
        _family(
            f"replicator_{name}",
            kind,
            about,
            [(_who(v), float(value)) for v in views if (value := figure(v)) is not None],
        )
        for name, kind, about, figure in _FIGURES
    ]
    states = [({**_who(v), "state": v.shown.state}, 1.0) for v in views]
    parts.append(_family("replicator_state", "gauge", "1 for the state it is in.", states))
    tables = [
        ({**_who(v), "state": state}, float(counts.get(state, 0)))
        for v in views
        for counts in (v.counts,)
        for state in TABLES_SHOWN
    ]
    parts.append(_family("replicator_tables", "gauge", "Tables by state.", tables))
    parts += _sums(views)
    parts += _workers()
    return "".join(parts)


def _who(view: ReplicatorView) -> dict[str, str]:
    return {"replicator": view.replicator.name, "id": str(view.replicator.pk)}


def _sums(views: list[ReplicatorView]) -> list[str]:
    rows = Table.objects.shown().order_by().values("replicator_id")
    found = rows.annotate(p=Sum("rows_parked"), b=Sum("backlog_bytes"))
    sums: dict[Any, dict[str, Any]] = {row["replicator_id"]: {**row} for row in found}
    return [
        _family(
            f"replicator_{name}",
            "gauge",
            about,
            [
                (_who(v), float(sums[v.replicator.pk][key]))
                for v in views
                if v.replicator.pk in sums
            ],
        )
        for name, key, about in (
            ("parked_rows", "p", "Rows that wait beside the target."),
            ("backlog_bytes", "b", "Change files that are not merged."),
        )
    ]


def _workers() -> list[str]:
    health = worker_health()
    ok = _family("replicators_workers_ok", "gauge", "1 while workers and beat answer.", [({}, health.is_ok)])  # fmt: skip
    if health.reconciled_at is None:
        return [ok]
    age = (timezone.now() - health.reconciled_at).total_seconds()
    about = "Since runs were last compared with what was asked."
    return [ok, _family("replicators_reconciled_age_seconds", "gauge", about, [({}, age)])]


class Metrics(APIView):
    """The figures."""

    renderer_classes = (PlainText,)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> tuple[Any, str]:
        """There is one form: an agent that asks for OpenMetrics reads this one too."""
        return PlainText(), PlainText.media_type

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response | HttpResponse:
        """As text."""
        return Response(metrics_text())
