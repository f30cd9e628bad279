"""The limit of replicators that run at once, and the names of those that run."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings

from replicators.models import Replicator
from runners.events.write import event_add
from runners.models import Event, Run

NAMED = 8
_EPISODE = ("run_waits", "run_created", "replicator_paused")


def running_names() -> list[str]:
    """The replicators that have a run, by name."""
    return sorted(Run.objects.active().values_list("replicator__name", flat=True))


def run_limit_facts(names: list[str]) -> dict[str, str]:
    """Facts of `run:limit`: how many replicators run, the limit, and the names."""
    shown = ", ".join(f"`{name}`" for name in names[:NAMED])
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return {"count": str(len(names)), "limit": str(settings.MAX_RUNS), "names": f"{shown}{more}"}


def run_waits(replicators: Iterable[Replicator]) -> None:
    """Record that each of these replicators waits until another one stops; one event for each
    wait."""
    facts = run_limit_facts(running_names())
    for replicator in replicators:
        mine = Event.objects.filter(replicator=replicator, kind__in=_EPISODE)
        last = mine.order_by("-pk").values_list("kind", flat=True).first()
        if last != "run_waits":
            event_add("run_waits", replicator=replicator, code="run:limit", facts=facts)
