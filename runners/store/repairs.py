"""Repairs that people asked for, as the run reads and ends them. The caller proves the lease."""

from __future__ import annotations

from dataclasses import asdict

import pyarrow as pa
from django.db.models import QuerySet

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.models import Replicator
from runners.engine.store.repairs import RepairCounts, RepairRow
from runners.engine.verify.values import keys_from_json
from runners.models import Run
from runners.states import RepairState
from runners.transitions import repair_transition
from runners.verifications import Repair


def waiting(replicator: Replicator) -> QuerySet[Repair]:
    """Those that wait."""
    return Repair.objects.filter(replicator=replicator, state=RepairState.ASKED)


def asked(replicator: Replicator) -> list[RepairRow]:
    """Those that wait, the oldest first."""
    mine = waiting(replicator).order_by("pk")
    found = mine.values_list("pk", "table__schema_name", "table__name", "keys")
    return [
        RepairRow(number, TableId(schema, name), len(keys)) for number, schema, name, keys in found
    ]


def keys(repair: RepairRow, schema: TableSchema) -> pa.Table:
    """The keys of a repair, in the neutral types of the key's columns."""
    found = Repair.objects.values_list("keys", flat=True).get(pk=repair.number)
    rows = [dict(key) for key in found]
    if any(set(row) != set(schema.key) for row in rows):
        raise ValueError("these are keys of another schema")
    return keys_from_json(schema, rows)


def done(repair: RepairRow, counts: RepairCounts, run: Run) -> None:
    """It is done."""
    row = _waiting(repair)
    if row is None:
        return
    repair_transition(
        repair=row,
        event="repair_done",
        run=run,
        facts=asdict(counts),
        rows_written=counts.written,
        rows_deleted=counts.deleted,
        rows_equal=counts.equal,
        rows_left=counts.left,
    )


def refused(repair: RepairRow, error: ReplicationError, run: Run) -> None:
    """It can't be done."""
    row = _waiting(repair)
    if row is not None:
        repair_transition(
            repair=row, event="repair_refused", run=run, code=error.code, facts=error.facts
        )


def _waiting(repair: RepairRow) -> Repair | None:
    """The repair, unless it has ended already."""
    return Repair.objects.filter(pk=repair.number, state=RepairState.ASKED).first()
