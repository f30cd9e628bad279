"""What the process of a verification writes: its state, its progress, its report. Every write
proves the lease first."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from runners.engine.verify.report import (
    Difference,
    JsonValue,
    Options,
    Outcome,
    Report,
    TableProgress,
    TableReport,
)
from runners.store.mapping import moment
from runners.transitions import verification_transition
from runners.verifications import DifferingRow, Verification, VerifiedTable

LISTED = 1_000
PROGRESS_SECONDS = 1.0


class Record:
    """`runners.engine.verify.report.Listener` over the database, for the process that holds the
    lease."""

    def __init__(self, verification: Verification, lease: str, *, lease_seconds: float) -> None:
        self._pk = verification.pk
        self._lease = lease
        self._lease_seconds = lease_seconds
        self._shown_at = 0.0
        self._is_cancelled = self._is_stopped = False
        self.heard_at = time.monotonic()
        """When the comparison was heard of last, by `time.monotonic`."""

    @contextmanager
    def _write(self) -> Iterator[Verification]:
        with transaction.atomic():
            mine = Verification.objects.active().filter(pk=self._pk, lease=self._lease)
            found = mine.select_for_update(no_key=True).first() if self._lease else None
            if found is None:
                raise ReplicationError("verify:replaced")
            yield found

    def started(self) -> None:
        """The process is up."""
        with self._write() as row:
            verification_transition(
                verification=row, event="verification_started", started_at=timezone.now()
            )

    def renew(self) -> None:
        """Renew the lease, and read whether somebody asked for a stop. `verify:replaced` where the
        lease is not ours any more."""
        with self._write() as row:
            self._is_cancelled = row.is_cancel_asked
            until = timezone.now() + timedelta(seconds=self._lease_seconds)
            Verification.objects.filter(pk=row.pk).update(lease_until=until)

    def options(self) -> Options:
        """What was asked for."""
        row = Verification.objects.get(pk=self._pk)
        names = row.tables.values_list("schema_name", "name")
        return Options(
            tables=tuple(TableId(schema, name) for schema, name in names),
            rows_a_second=row.rows_per_second or 0,
            listed=LISTED,
        )

    def _table(self, table: TableId) -> VerifiedTable:
        row, _ = VerifiedTable.objects.get_or_create(
            verification_id=self._pk, schema_name=table.schema, name=table.name
        )
        return row

    def progress(self, now: TableProgress) -> None:
        """Store how far a table is, at most once a second."""
        self.heard_at = time.monotonic()
        if time.monotonic() - self._shown_at < PROGRESS_SECONDS:
            return
        self._shown_at = time.monotonic()
        with self._write():
            row = self._table(now.table)
            row.started_at = row.started_at or timezone.now()
            row.step, row.rows_read = str(now.step), now.rows
            row.rows_expected = now.rows_estimated
            row.save(update_fields=["started_at", "step", "rows_read", "rows_expected"])

    def table_done(self, report: TableReport) -> None:
        """Store a table's report with its differing rows."""
        self.heard_at = time.monotonic()
        with self._write():
            row = self._table(report.table)
            for name in _SAME:
                setattr(row, name, getattr(report, name))
            row.outcome, row.step = str(report.outcome), ""
            row.rows_read = report.rows_source
            row.left_out = [[c.column, c.reason] for c in report.left_out]
            row.notes = list(report.notes)
            row.error_code, row.error_facts = report.code, dict(report.facts)
            row.started_at, row.ended_at = moment(report.started_at), moment(report.ended_at)
            row.save()
            row.rows.all().delete()
            found = [_row(row, d) for d in report.differences[:LISTED]]
            found += [_row(row, d, is_unsettled=True) for d in report.undecided[:LISTED]]
            DifferingRow.objects.bulk_create(found, 500)

    def should_stop(self) -> bool:
        """Whether somebody asked for a stop, as `renew` read it last."""
        return self._is_cancelled or self._is_stopped

    def stop(self) -> None:
        """Stop after this chunk, as if somebody had asked for it."""
        self._is_stopped = True

    def done(self, report: Report) -> None:
        """End the verification. One that was asked to stop is cancelled."""
        outcome = report.outcome
        if outcome is Outcome.STOPPED or self.should_stop():
            self.cancelled()
            return
        tables = report.tables
        facts = {
            "outcome": str(outcome),
            "tables": len(tables),
            "rows": sum(t.rows_source for t in tables),
            "wrong": sum(t.wrong for t in tables),
            "unsettled": sum(t.unsettled for t in tables),
            "failed": sum(t.outcome is Outcome.FAILED for t in tables),
        }
        with self._write() as row:
            verification_transition(
                verification=row, event="verification_done", facts=facts, outcome=str(outcome)
            )

    def cancelled(self) -> None:
        """End the verification as cancelled."""
        with self._write() as row:
            verification_transition(
                verification=row, event="verification_cancelled", actor=row.cancelled_by
            )

    def failed(self, code: str, facts: Mapping[str, Any]) -> None:
        """End the verification by an error."""
        with self._write() as row:
            verification_transition(
                verification=row, event="verification_failed", code=code, facts=dict(facts)
            )


_SAME = (
    "generation", "mode", "position", "sequence", "rows_source", "rows_target", "bytes_source",
    "missing", "extra", "different", "unsettled", "quarantined", "is_more",
)  # fmt: skip


def _row(table: VerifiedTable, found: Difference, *, is_unsettled: bool = False) -> DifferingRow:
    key = _pairs(found.key) or []
    return DifferingRow(
        table=table,
        kind=str(found.kind),
        is_unsettled=is_unsettled,
        key=key,
        key_hash=key_hash(key),
        columns=list(found.columns),
        source=_pairs(found.source),
        target=_pairs(found.target),
        copies=list(found.copies),
    )


def _pairs(row: Mapping[str, JsonValue] | None) -> list[list[JsonValue]] | None:
    return None if row is None else [[name, value] for name, value in row.items()]


def key_hash(key: list[list[JsonValue]]) -> str:
    """A short name of a key that does not show its values."""
    return salted_hmac("verification key", json.dumps(key)).hexdigest()[:12]
