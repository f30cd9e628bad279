"""The statements that apply a folded batch. There is a module for each mode, and one for tables
whose inserts are left out. Text only.

Each module has `batch_ddl(batch)` (how Spark reads the batch's files), `statement(target, batch,
view)` (one commit) and `without_rows(target, batch)` (the same for a batch without rows).
"""

from __future__ import annotations

from types import ModuleType

from replicators.connectors.model.modes import Mode
from replicators.connectors.target import FoldedBatch
from replicators.targets.lakehouse.statements import (
    append,
    history,
    mirror,
    multiset,
    no_inserts,
    soft_delete,
)

_MODULES: dict[Mode, ModuleType] = {
    Mode.MIRROR: mirror,
    Mode.SOFT_DELETE: soft_delete,
    Mode.HISTORY: history,
    Mode.APPEND: append,
    Mode.MULTISET: multiset,
}
MODES = tuple(_MODULES)


def of(batch: FoldedBatch) -> ModuleType:
    """The statements of a batch's mode."""
    return no_inserts if batch.no_inserts else _MODULES[batch.mode]
