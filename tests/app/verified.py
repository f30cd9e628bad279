"""What tests of verifications share: a target that can be read, and reports as the engine gives
them."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from replicators.connectors.model.schema import TableId
from replicators.models import Replicator
from runners.engine.verify.report import Difference, Kind, Outcome, Report, TableReport
from runners.models import Table
from runners.verifications import Verification
from runners.verifying.record import Record
from runners.verifying.services import verification_start

ORDERS = TableId("shop", "orders")
CUSTOMERS = TableId("shop", "customers")
AT = 1_790_000_000.0

DIFFERENT = Difference(
    Kind.DIFFERENT,
    {"id": 7},
    ("note",),
    {"id": 7, "note": "paid", "total": "12.50"},
    {"id": 7, "note": "open", "total": "12.50"},
)
MISSING = Difference(Kind.MISSING, {"id": 8}, (), {"id": 8, "note": "new", "total": "1.00"}, None)
EXTRA = Difference(Kind.EXTRA, {"id": 9}, (), None, {"id": 9, "note": "<b>old</b>", "total": None})


def table_report(table: TableId = ORDERS, *found: Difference, **fields: Any) -> TableReport:
    """A table's report with these differing rows."""
    counts = {str(k): sum(d.kind is k for d in found) for k in Kind}
    given: dict[str, Any] = {
        "outcome": Outcome.DIFFERENT if found else Outcome.EQUAL,
        "started_at": AT,
        "ended_at": AT + 5,
        "rows_source": 100,
        "rows_target": 100,
        "differences": found,
        **counts,
        **fields,
    }
    return TableReport(table, **given)


def begun(replicator: Replicator, **fields: Any) -> tuple[Verification, Record]:
    """A verification whose process has started."""
    row = verification_start(replicator=replicator, actor=None, **fields)
    row.lease, row.lease_until = "lease", timezone.now()
    row.save(update_fields=["lease", "lease_until"])
    record = Record(row, "lease", lease_seconds=60)
    record.started()
    return row, record


def verified(replicator: Replicator, *tables: TableReport) -> Verification:
    """A verification that ended with these tables; without any: one equal table `shop.orders`, and
    one with three wrong rows `shop.customers`."""
    row, record = begun(replicator)
    tables = tables or (
        table_report(CUSTOMERS),
        table_report(ORDERS, DIFFERENT, MISSING, EXTRA),
    )
    for table in tables:
        record.table_done(table)
    record.done(Report(AT, AT + 10, tables))
    row.refresh_from_db()
    return row


def replicating(replicator: Replicator) -> None:
    """Its tables replicate."""
    Table.objects.filter(replicator=replicator).update(state="replicating", is_snapshot_done=True)
