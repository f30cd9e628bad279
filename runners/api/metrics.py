"""`/metrics`: metrics of all replicators for Prometheus, for everybody who may view. It needs a
handful of queries, however many replicators there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.db.models import OuterRef, Subquery, Sum
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from runners.models import Table
from runners.selectors import replicators_for_list
from runners.shown import ReplicatorView
from runners.states import TABLES_SHOWN
from runners.supervision.health import worker_health
from runners.verifications import Verification
from runners.verifying.selectors import verification_views

Kind = type[GaugeMetricFamily] | type[CounterMetricFamily]
Found = tuple[list[str], float]
WHO = ("replicator", "id")


def _fact(name: str) -> Callable[[ReplicatorView], float | None]:
    return lambda view: view.facts.get(name)


_METRICS: tuple[tuple[str, Kind, str, Callable[[ReplicatorView], float | None]], ...] = (
    ("lag_seconds", GaugeMetricFamily, "Lag of the worst table.", lambda v: v.lag_seconds),
    ("changes", CounterMetricFamily, "Changes merged.", lambda v: v.totals.changes),
    ("rows_copied", GaugeMetricFamily, "Rows of first copies.", lambda v: v.totals.rows_copied),
    ("failures", GaugeMetricFamily, "Failed runs in a row.", lambda v: v.tries),
    ("is_live", GaugeMetricFamily, "1 while a run writes metrics.", lambda v: v.is_live),
    ("is_log_full", GaugeMetricFamily, "1 while reading waits for room in the change log.",
    lambda v: v.is_log_full),
    ("log_bytes", GaugeMetricFamily, "Size of the change log.", _fact("log_bytes")),
    ("source_retained_bytes", GaugeMetricFamily, "Log that the source keeps for it.",
    _fact("retained_bytes")),
    ("source_hours_left", GaugeMetricFamily, "Hours until the source drops log that is needed.",
    _fact("hours_left")),
    ("log_hours_left", GaugeMetricFamily, "Hours until the change log is at its limit.",
    _fact("log_hours_left")),
    ("is_log_short", GaugeMetricFamily, "1 while a log lasts for few hours only.",
    lambda v: v.retention.is_short),
    ("segments_waiting", GaugeMetricFamily, "Segments that wait for decoding.",
    _fact("segments_waiting")),
)  # fmt: skip


class ReplicatorMetrics(Collector):
    """All metric families, read from the database each time. An unknown value has no line."""

    def collect(self) -> Iterator[Metric]:
        """Yield each family once."""
        views = replicators_for_list()
        for name, kind, about, metric in _METRICS:
            found = [(_who(v), float(x)) for v in views if (x := metric(v)) is not None]
            yield _family(kind, name, about, WHO, found)
        states = [([*_who(v), v.shown.state], 1.0) for v in views]
        about = "1 for the state it is in."
        yield _family(GaugeMetricFamily, "state", about, (*WHO, "state"), states)
        tables = [
            ([*_who(v), str(state)], float(v.counts.get(state, 0)))
            for v in views
            for state in TABLES_SHOWN
        ]
        yield _family(GaugeMetricFamily, "tables", "Tables by state.", (*WHO, "state"), tables)
        yield from _sums(views)
        yield from _verified(views)
        yield from _workers()


def _family(
    kind: Kind, name: str, about: str, labels: Iterable[str], found: Iterable[Found]
) -> Metric:
    family = kind(f"replicator_{name}", about, labels=list(labels))
    for values, metric in found:
        family.add_metric(values, metric)
    return family


def _who(view: ReplicatorView) -> list[str]:
    return [view.replicator.name, str(view.replicator.pk)]


def _sums(views: list[ReplicatorView]) -> Iterator[Metric]:
    rows = Table.objects.shown().order_by().values("replicator_id")
    found = rows.annotate(p=Sum("rows_quarantined"), b=Sum("backlog_bytes"))
    sums: dict[Any, dict[str, Any]] = {row["replicator_id"]: {**row} for row in found}
    known = [v for v in views if v.replicator.pk in sums]
    for name, key, about in (
        ("quarantined_rows", "p", "Rows that wait beside the target."),
        ("backlog_bytes", "b", "Change files that are not merged."),
    ):
        values = [(_who(v), float(sums[v.replicator.pk][key])) for v in known]
        yield _family(GaugeMetricFamily, name, about, WHO, values)


def _verified(views: list[ReplicatorView]) -> Iterator[Metric]:
    """The last verification of each replicator that compared to the end."""
    newest = Verification.objects.ended().filter(replicator=OuterRef("replicator"))
    last = Verification.objects.filter(pk=Subquery(newest.values("pk")[:1]))
    found = {v.row.replicator_id: v for v in verification_views(last)}
    known = [(_who(v), found[v.replicator.pk]) for v in views if v.replicator.pk in found]
    now = timezone.now()
    about = "Since the last verification ended."
    ages = [(who, (now - (v.row.ended_at or now)).total_seconds()) for who, v in known]
    yield _family(GaugeMetricFamily, "verified_age_seconds", about, WHO, ages)
    about = "Rows that differed in the last verification."
    wrong = [(who, float(v.counts.wrong)) for who, v in known]
    yield _family(GaugeMetricFamily, "verified_wrong_rows", about, WHO, wrong)


def _workers() -> Iterator[Metric]:
    health = worker_health()
    about = "1 while workers and beat answer."
    yield GaugeMetricFamily("replicators_workers_ok", about, value=health.is_ok)
    if health.reconciled_at is not None:
        age = (timezone.now() - health.reconciled_at).total_seconds()
        about = "Since runs were last compared with what was asked."
        yield GaugeMetricFamily("replicators_reconciled_age_seconds", about, value=age)


REGISTRY = CollectorRegistry()
REGISTRY.register(ReplicatorMetrics())


class PlainText(BaseRenderer):
    """Answers an error with its sentence, whatever format was asked for."""

    media_type = "text/plain"
    format = "txt"
    charset = "utf-8"

    def render(self, data: Any, *_: Any, **__: Any) -> Any:
        """The sentence and a line break."""
        return f"{data.get('message', data)}\n"


class Metrics(APIView):
    """The endpoint of the metrics."""

    renderer_classes = (PlainText,)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> tuple[Any, str]:
        """Always the one format: an agent that asks for OpenMetrics can read it too."""
        return PlainText(), PlainText.media_type

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """The metrics as text."""
        return HttpResponse(generate_latest(REGISTRY), content_type=CONTENT_TYPE_PLAIN_0_0_4)
