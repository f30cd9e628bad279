"""A clock as a source: a row a minute. It is asked for its changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replicators.sources.clock.catalog import ClockCatalog
from replicators.sources.clock.checks import ClockChecks
from replicators.sources.clock.control import ClockControl
from replicators.sources.clock.errors import translate
from replicators.sources.clock.messages import MESSAGES
from replicators.sources.clock.params import ClockParams
from replicators.sources.clock.poll import ClockPoll
from replicators.sources.clock.snapshot import snapshot_again, snapshot_first

from replicators.connectors.capabilities import SourceCapabilities
from replicators.connectors.poll import ChangePoll
from replicators.connectors.setup import SetupStep
from replicators.connectors.source import SourcePlugin

__all__ = ["PLUGIN"]


def _setup(values: Mapping[str, Any]) -> tuple[SetupStep, ...]:
    return (SetupStep("Wind it up", "Once a week.", (f"WIND {values.get('place') or 'place'};",)),)


PLUGIN = SourcePlugin(
    name="clock",
    label="Clock",
    summary="The minutes that a clock has struck.",
    params=ClockParams,
    capabilities=SourceCapabilities(log_label="escapement"),
    catalog=ClockCatalog,
    checks=ClockChecks,
    control=ClockControl,
    poll=ChangePoll(reader=ClockPoll, snapshot_first=snapshot_first, seconds=lambda _: 0.2),
    snapshot_again=snapshot_again,
    chunk_reader="replicators.sources.clock.snapshot:ClockChunks",
    translate=translate,
    setup=_setup,
    messages=MESSAGES,
    icon="clock",
)
