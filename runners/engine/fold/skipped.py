"""The skipped operations of a table, and what they mean for its fold. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors.model.changes import Op
from replicators.connectors.model.modes import LOGS, Mode, why_inserts
from replicators.connectors.model.schema import TableSchema, TableSelection
from replicators.connectors.problems.errors import ReplicationError

_OPS = {"inserts": (Op.INSERT,), "updates": (Op.UPDATE,), "deletes": (Op.DELETE, Op.TRUNCATE)}


@dataclass(frozen=True, slots=True)
class SkippedOperations:
    """`ops`: the operations that no merge reads. `no_inserts`: inserts are read, but add no row.
    They are read because after an insert its key belongs to another row."""

    ops: tuple[int, ...] = ()
    no_inserts: bool = False


def excluded_ops(selection: TableSelection) -> tuple[int, ...]:
    """The operations that the table skips."""
    return tuple(int(op) for kind in selection.excluded for op in _OPS[kind])


def skipped_operations(
    selection: TableSelection, schema: TableSchema, mode: Mode
) -> SkippedOperations:
    """What a table with this schema skips in this mode. In modes that are a log, only the skipped
    changes are missing. A copy to which nothing is applied stays as it was made.
    `target:mode-inserts` where skipped rows could not be told from the others."""
    ops = excluded_ops(selection)
    if mode in LOGS or not selection.follows_without_inserts:
        return SkippedOperations(ops)
    why = why_inserts(schema, mode)
    if why:
        raise ReplicationError("target:mode-inserts", table=schema.id, why=why)
    return SkippedOperations(tuple(op for op in ops if op != Op.INSERT), no_inserts=True)
