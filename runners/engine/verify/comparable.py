"""What of a table can be compared, and what not. Asks nobody."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors.model.modes import LOGS, text_of
from replicators.connectors.model.schema import EXCLUDABLE, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import FitKind, TargetPlugin
from runners.engine.store.protocol import TableRow, TableState
from runners.engine.verify.report import Kind, LeftOut

_EXPECTED = {"inserts": Kind.MISSING, "deletes": Kind.EXTRA}
_NOTES = {
    "inserts": "Inserts are left out of this table's copy, so rows that the target lacks count as "
    "right.",
    "deletes": "Deletes are left out of this table's copy, so rows that only the target has count "
    "as right.",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """What is compared of a table: its columns, and which kinds of difference count as wrong."""

    schema: TableSchema
    columns: tuple[str, ...]
    kinds: frozenset[Kind]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]


def scope(row: TableRow, target: TargetPlugin) -> Scope:
    """What is compared. The errors `verify:...` say why nothing can be."""
    if row.state is TableState.FAILING:
        raise ReplicationError("verify:failing", table=row.id, reason=row.error_code)
    if not row.is_snapshot_done or row.schema is None or row.state is not TableState.REPLICATING:
        raise ReplicationError("verify:not-copied", table=row.id)
    if row.mode in LOGS:
        raise ReplicationError("verify:append", table=row.id, mode=text_of(row.mode).label)
    if row.is_outdated:
        raise ReplicationError("verify:outdated", table=row.id)
    if "updates" in row.excluded or set(row.excluded) == set(EXCLUDABLE):
        raise ReplicationError("verify:excluded", table=row.id)
    left_out, columns = [], []
    for column in row.schema.supported:
        fit = target.fits(column)
        if fit.kind is FitKind.LOSSY and not fit.is_own:
            left_out.append(LeftOut(column.name, _reason(fit.reason)))
        else:
            columns.append(column.name)
    lost = next((c.column for c in left_out if c.column in row.schema.key), None)
    if lost is not None:
        raise ReplicationError("verify:key-changed", table=row.id, column=lost)
    kinds = frozenset(Kind) - {_EXPECTED[name] for name in row.excluded}
    notes = tuple(_NOTES[name] for name in EXCLUDABLE if name in row.excluded)
    return Scope(row.schema, tuple(columns), kinds, tuple(left_out), notes)


def _reason(text: str) -> str:
    tail = f": {text.rstrip('.')}" if text else ""
    return f"The target holds its values in another form{tail}."
