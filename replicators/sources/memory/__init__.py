"""A source in memory, for tests; it is hidden elsewhere. The engine polls it: tests put rows and
changes into its `database`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replicators.connectors.capabilities import ColumnKnowledge, SourceCapabilities
from replicators.connectors.poll import ChangePoll
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.setup import SetupStep
from replicators.connectors.source import SourcePlugin
from replicators.sources.memory.catalog import MemoryCatalog
from replicators.sources.memory.checks import MemoryChecks
from replicators.sources.memory.control import MemoryControl
from replicators.sources.memory.params import MemoryParams
from replicators.sources.memory.poll import MemoryPoll
from replicators.sources.memory.rows import MemoryRows
from replicators.sources.memory.snapshot import snapshot_again, snapshot_first

__all__ = ["PLUGIN"]

POLL_SECONDS = 0.05


def _setup(values: Mapping[str, Any]) -> tuple[SetupStep, ...]:
    statement = f"LET IN {values.get('host') or 'anybody'};"
    return (SetupStep("Let it in", "Needed once.", (statement,)),)


def _translate(err: BaseException) -> Exception:
    return ReplicationError("internal:unexpected", name_of_error=type(err).__name__)


PLUGIN = SourcePlugin(
    name="memory",
    label="Memory",
    summary="Four small tables in memory, for tests.",
    params=MemoryParams,
    capabilities=SourceCapabilities(columns=ColumnKnowledge.BY_LOG, has_row_filters=True),
    catalog=MemoryCatalog,
    checks=MemoryChecks,
    control=MemoryControl,
    poll=ChangePoll(
        reader=MemoryPoll, snapshot_first=snapshot_first, seconds=lambda _: POLL_SECONDS
    ),
    snapshot_again=snapshot_again,
    chunk_reader="replicators.sources.memory.snapshot:MemoryChunks",
    translate=_translate,
    row_reader=MemoryRows,
    setup=_setup,
    is_hidden=True,
)
