"""The subscribers target: it keeps every change for programs that ask for changes. No broker is
needed. Importing this loads no driver."""

from __future__ import annotations

from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.model.modes import Mode
from replicators.connectors.pulling import PulledFeed
from replicators.connectors.target import ChangeSink, TargetChecks, TargetPlugin
from replicators.connectors.tasks import Tasks
from replicators.targets.subscribers.messages import MESSAGES
from replicators.targets.subscribers.params import SubscribersParams, places
from replicators.targets.subscribers.types import fit

__all__ = ["PLUGIN"]


def _checks(params: SubscribersParams) -> TargetChecks:
    from replicators.targets.subscribers.checks import SubscribersChecks

    return SubscribersChecks(params)


def _writer(params: SubscribersParams, tasks: Tasks) -> ChangeSink:
    from replicators.targets.subscribers.writer import SubscribersSink

    return SubscribersSink(params, tasks)


def _feed(params: SubscribersParams) -> PulledFeed:
    from replicators.targets.subscribers.feed import SubscribersFeed

    return SubscribersFeed(params)


PLUGIN = TargetPlugin(
    name="subscribers",
    label="Subscribers (pull API)",
    summary="Programs ask for changes over HTTP, as JSON lines, Arrow or events. No broker is "
    "needed.",
    params=SubscribersParams,
    unseen="Whether an object store may be written is seen by the assessment.",
    capabilities=TargetCapabilities(
        delivery=Delivery.AT_LEAST_ONCE, modes=(Mode.APPEND,), has_subscribers=True
    ),
    fit=fit,
    checks=_checks,
    writer=_writer,
    feed=_feed,
    task_modules=("replicators.targets.subscribers.records",),
    places=places,
    merge_seconds=lambda _: 1.0,
    messages=MESSAGES,
    icon="users",
)
