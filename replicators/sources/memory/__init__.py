"""A source in memory, for tests of the wizard, of REST and of supervision; hidden elsewhere. It copies nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from replicators.connectors.capabilities import SourceCapabilities
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.setup import SetupStep
from replicators.connectors.source import SourcePlugin
from replicators.sources.memory.catalog import MemoryCatalog
from replicators.sources.memory.checks import MemoryChecks
from replicators.sources.memory.log import MemoryControl
from replicators.sources.memory.params import MemoryParams
from replicators.sources.memory.rows import MemoryRows

__all__ = ["PLUGIN"]


def _no_log(*_: Any) -> NoReturn:
    raise ReplicationError("source:position-lost", reason="this source has no log")


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
    capabilities=SourceCapabilities(has_exact_snapshot=False, has_row_filters=True),
    catalog=MemoryCatalog,
    checks=MemoryChecks,
    log_reader=_no_log,
    log_control=MemoryControl,
    snapshot_first=_no_log,
    snapshot_again=_no_log,
    chunk_reader="",
    decoder="",
    translate=_translate,
    row_reader=MemoryRows,
    setup=_setup,
    is_hidden=True,
)
