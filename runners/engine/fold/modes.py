"""Which fold belongs to which mode."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableSchema
from runners.engine.fold.append import fold_append
from runners.engine.fold.history import fold_history
from runners.engine.fold.messages import fold_messages
from runners.engine.fold.mirror import Folded, fold, fold_inserts
from runners.engine.fold.no_inserts import fold_no_inserts
from runners.engine.fold.soft_delete import fold_soft

FOLDS: dict[Mode, Callable[[pa.Table, TableSchema], Folded]] = {
    Mode.SOFT_DELETE: fold_soft,
    Mode.HISTORY: fold_history,
    Mode.APPEND: fold_append,
    Mode.MESSAGES: fold_messages,
}
NEEDS_BARRIERS = frozenset({Mode.SOFT_DELETE, Mode.HISTORY})
"""The modes whose fold needs the rows before a TRUNCATE. So all rows of a merge with a TRUNCATE go
through one folding."""


def folded(
    changes: pa.Table,
    schema: TableSchema,
    mode: Mode,
    *,
    no_inserts: bool = False,
    timed: bool = False,
) -> Folded:
    """The changes, folded as the mode asks; with `no_inserts`, as `fold_no_inserts` does for modes
    with keys. `timed`: see `FoldPlan`."""
    if no_inserts:
        return fold_no_inserts(changes, schema, mode)
    if mode in FOLDS:
        return FOLDS[mode](changes, schema)
    return fold(changes, schema, timed=timed) if schema.key else fold_inserts(changes, schema)
