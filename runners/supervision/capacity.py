"""How many replicators may run at once, and which of them do."""

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
    """What `run:limit` says: how many run of how many that may, and who they are."""
    shown = ", ".join(f"`{name}`" for name in names[:NAMED])
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return {"count": str(len(names)), "limit": str(settings.MAX_RUNS), "names": f"{shown}{more}"}


def run_waits(replicators: Iterable[Replicator]) -> None:
    """Tell that each of these waits until another one stops; once for each time that it waits."""
    facts = run_limit_facts(running_names())
    for replicator in replicators:
        mine = Event.objects.filter(replicator=replicator, kind__in=_EPISODE)
        last = mine.order_by("-pk").values_list("kind", flat=True).first()
        if last != "run_waits":
            event_add("run_waits", replicator=replicator, code="run:limit", facts=facts)
