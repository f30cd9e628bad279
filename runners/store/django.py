"""The engine's store in the database. Every write is one transaction that first proves the
lease."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pyarrow as pa
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from replicators.connectors.model.changes import OpCounts
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.poll import DeliveryReport
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import MergeCost
from replicators.models import Replicator
from runners.engine.store.copies import CopyChunk, CopyRow
from runners.engine.store.protocol import (
    ChangeFileRow,
    Desire,
    Memory,
    SegmentRow,
    TableMetrics,
    TableRow,
    needs_log,
)
from runners.engine.store.quarantine import QuarantinedRow as QuarantinedChange
from runners.engine.store.repairs import RepairCounts, RepairRow
from runners.engine.store.watermarks import Watermark
from runners.events.write import event_add
from runners.metrics.record import record_metrics, span_of
from runners.models import (
    ChangeFile,
    Progress,
    QuarantinedRow,
    Run,
    Segment,
    SnapshotChunk,
    SnapshotCopy,
    Table,
)
from runners.services import progress_of, tables_sync
from runners.store import repairs
from runners.store.asked import Asked
from runners.store.mapping import (
    chunk_model,
    copy_model,
    copy_row,
    file_model,
    file_row,
    moment,
    quarantined_model,
    quarantined_row,
    segment_model,
    segment_row,
    table_values,
)
from runners.store.outages import database_errors_reported, written
from runners.store.tables import PORTION as PORTION
from runners.store.tables import KnownTables
from runners.tables.deliveries import deliveries_record
from runners.tables.discovery import table_vanished, tables_appeared
from runners.tables.watermarks import versions_forget, watermark_publish
from runners.transitions import table_transition

logger = logging.getLogger("replicator.run")

TABLES_SECONDS = 0.5


def _portions(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    return (numbers[at : at + PORTION] for at in range(0, len(numbers), PORTION))


@database_errors_reported
class DjangoStore:
    """`runners.engine.store.protocol.Store` for one run. Thread safe. `tables()` may be half a
    second behind people's actions. Where the database does not answer, a call waits up to
    `patience_seconds`."""

    def __init__(
        self,
        run_id: uuid.UUID | str,
        lease: str,
        *,
        tables_seconds: float = TABLES_SECONDS,
        patience_seconds: float = 0.0,
    ) -> None:
        self._run = Run.objects.select_related("replicator").get(pk=run_id)
        self._replicator = self._run.replicator
        self._lease = lease
        self.patience_seconds = patience_seconds
        self._tables = KnownTables(self._replicator, tables_seconds)
        self._metrics: dict[TableId, TableMetrics] = {}
        self._waits: dict[str, Any] = {}
        self._sampled: datetime | None = None
        held = Run.objects.active().filter(pk=self._run.pk, lease=lease, is_stop_asked=False)
        self._held = Asked(held.values_list("replicator__tables_version"))
        self._repairs = Asked(repairs.waiting(self._replicator).values_list("pk"))
        with self._write():
            progress_of(self._replicator)
            tables_sync(self._replicator)

    @contextmanager
    def _write(self, *tables: TableId) -> Iterator[None]:
        """A transaction that proves the lease first; `tables` are those whose rows it changes."""
        try:
            with written():
                held = Run.objects.active().filter(pk=self._run.pk, lease=self._lease)
                if not self._lease or not held.select_for_update(no_key=True).exists():
                    raise ReplicationError("run:lease-lost")
                yield
        finally:
            for table in tables:
                self._tables.changed(table)

    def memory(self) -> Memory:
        progress = Progress.objects.get(replicator=self._replicator)
        position = Position.from_json(progress.position) if progress.position else None
        return Memory(position, progress.last_segment, tuple(self.tables()))

    def desire(self) -> Desire:
        held = self._held.rows()
        if not held:
            return Desire.STOP
        self._tables.told(held[0][0])
        return Desire.RUN

    def renew(self, until: float) -> None:
        with self._write():
            Run.objects.filter(pk=self._run.pk).update(lease_until=moment(until))

    # --- capture -------------------------------------------------------------------------------------------------  # noqa: E501
    @property
    def _progress(self) -> QuerySet[Progress]:
        return Progress.objects.filter(replicator=self._replicator)

    def record_start(self, position: Position) -> None:
        with self._write():
            self._progress.update(position=position.to_json())
            later = self._segments.filter(position__value__gt=position.ordinal)
            later.update(position=position.to_json())

    def record_segment(
        self, segment: SegmentRow, position: Position, files: Sequence[ChangeFileRow] = ()
    ) -> None:
        with self._write():
            if not self._progress.filter(last_segment__lt=segment.number).update(
                last_segment=segment.number
            ):
                raise ValueError(f"segment number {segment.number} was used before")
            segment_model(self._replicator, segment).save(force_insert=True)
            ChangeFile.objects.bulk_create([file_model(self._replicator, f) for f in files], 500)
            self._advance(position)

    def record_position(self, position: Position) -> None:
        with self._write():
            self._advance(position)

    def _advance(self, position: Position) -> None:
        known = self._progress.values_list("position", flat=True).get()
        if not known or position.ordinal > int(known["value"]):
            self._progress.update(position=position.to_json())

    @property
    def _segments(self) -> QuerySet[Segment]:
        return Segment.objects.filter(replicator=self._replicator)

    def segments(self) -> list[SegmentRow]:
        return [segment_row(s) for s in self._segments]

    def discard_segments(self, numbers: Sequence[int]) -> list[str]:
        paths: list[str] = []
        for portion in _portions(numbers):
            mine = self._files.filter(segment_number__in=portion)
            paths += mine.values_list("path", flat=True)
        self.forget(numbers)
        return paths

    # --- decode --------------------------------------------------------------------------------------------------  # noqa: E501
    @property
    def _files(self) -> QuerySet[ChangeFile]:
        return ChangeFile.objects.filter(replicator=self._replicator)

    def record_decoded(self, numbers: Sequence[int], files: Sequence[ChangeFileRow]) -> None:
        with self._write():
            self._files.filter(segment_number__in=numbers).delete()
            ChangeFile.objects.bulk_create([file_model(self._replicator, f) for f in files], 500)
            self._segments.filter(number__in=numbers).update(is_decoded=True)

    def change_files(self, table: TableId, *, after: int, upto: int) -> list[ChangeFileRow]:
        found = self._files.filter(
            schema_name=table.schema,
            table_name=table.name,
            last_sequence__gt=after,
            first_sequence__lte=upto,
        )
        return [file_row(f) for f in found]

    # --- tables --------------------------------------------------------------------------------------------------  # noqa: E501
    @property
    def _rows(self) -> QuerySet[Table]:
        return Table.objects.filter(replicator=self._replicator)

    def _row(self, table: TableId) -> QuerySet[Table]:
        return self._rows.filter(schema_name=table.schema, name=table.name)

    def tables(self) -> list[TableRow]:
        return self._tables.all()

    def table(self, table: TableId) -> TableRow:
        return self._tables.one(table)

    def table_event(self, table: TableId, event: str, **changes: Any) -> TableRow:
        values = table_values(changes)
        if event == "table_snapshot_started":
            values["rows_snapshotted"] = 0
        with self._write(table):
            table_transition(
                table=self._row(table).get(),
                event=event,
                run=self._run,
                code=values.pop("error_code", ""),
                facts=values.pop("error_facts", None),
                **values,
            )
            if event == "table_snapshot_done":
                self._count_quarantined(table)
            return self._tables.one(table)

    def table_progress(self, table: TableId, **changes: Any) -> None:
        with self._write(table):
            self._row(table).update(**table_values(changes))

    def event(self, kind: str, table: TableId, **facts: str) -> None:
        with self._write():
            event_add(kind, replicator=self._replicator, run=self._run, table=table, facts=facts)

    def repairs(self) -> list[RepairRow]:
        return repairs.asked(self._replicator) if self._repairs.rows() else []

    def repair_keys(self, repair: RepairRow, schema: TableSchema) -> pa.Table:
        return repairs.keys(repair, schema)

    def record_repaired(self, repair: RepairRow, counts: RepairCounts) -> None:
        with self._write():
            repairs.done(repair, counts, self._run)

    def record_repair_refused(self, repair: RepairRow, error: ReplicationError) -> None:
        with self._write():
            repairs.refused(repair, error, self._run)

    def record_deliveries(self, reports: Sequence[DeliveryReport]) -> None:
        with self._write():
            deliveries_record(self._replicator, reports, self._run)

    def waits(self, text: str, *, is_new: bool) -> None:
        self._waits = {"waits": text, "waits_at": timezone.now().timestamp()}
        with self._write():
            known = self._progress.values_list("facts", flat=True).first() or {}
            self._progress.update(facts={**known, **self._waits})
            if is_new:
                facts = {"holder": text}
                event_add("source_waits", replicator=self._replicator, run=self._run, facts=facts)

    def tables_appeared(self, tables: Sequence[TableId]) -> None:
        with self._write():
            fresh = Replicator.objects.get(pk=self._replicator.pk)
            tables_appeared(replicator=fresh, tables=tables, run=self._run)
        self._tables.forget()

    def table_vanished(self, table: TableId) -> bool:
        with self._write():
            fresh = Replicator.objects.get(pk=self._replicator.pk)
            is_removed = table_vanished(replicator=fresh, table=table)
        self._tables.forget()
        return is_removed

    def record_snapshot_rows(self, table: TableId, rows: int, total: int | None) -> None:
        known = {} if total is None else {"rows_total": total}
        with self._write():
            self._row(table).update(rows_snapshotted=rows, **known)

    def record_estimates(self, rows: Mapping[TableId, int]) -> None:
        with self._write():
            for table, total in rows.items():
                self._row(table).update(rows_total=total)

    def _copy(self, table: TableId) -> QuerySet[SnapshotCopy]:
        return SnapshotCopy.objects.filter(
            table__replicator=self._replicator,
            table__schema_name=table.schema,
            table__name=table.name,
        )

    def copy_begun(self, copy: CopyRow) -> None:
        with self._write():
            self._copy(copy.table).delete()
            saved = copy_model(self._row(copy.table).get(), copy)
            saved.save(force_insert=True)
            SnapshotChunk.objects.bulk_create([chunk_model(saved, c) for c in copy.chunks], 500)

    def copy_done(self, table: TableId, chunks: Sequence[CopyChunk]) -> None:
        with self._write():
            mine = SnapshotChunk.objects.filter(copy__in=self._copy(table))
            for chunk in chunks:
                mine.filter(number=chunk.number).update(
                    path=chunk.path, rows=chunk.rows, is_done=True
                )

    def copy(self, table: TableId) -> CopyRow | None:
        found = self._copy(table).first()
        return copy_row(table, found) if found else None

    def copy_forget(self, table: TableId) -> None:
        with self._write():
            self._copy(table).delete()

    # --- quarantined rows ---------------------------------------------------------------------------------------------  # noqa: E501
    def _quarantined(self, table: TableId, generation: int) -> QuerySet[QuarantinedRow]:
        return QuarantinedRow.objects.filter(table__in=self._row(table), generation=generation)

    def quarantined(self, table: TableId, generation: int, upto: int) -> list[QuarantinedChange]:
        waiting = self._quarantined(table, generation).filter(
            Q(freed_at=None) | Q(freed_at__gt=upto), sequence__lte=upto
        )
        return [quarantined_row(p) for p in waiting]

    def record_quarantined(
        self,
        table: TableId,
        generation: int,
        rows: Sequence[QuarantinedChange],
        freed: Sequence[int] = (),
        at: int = 0,
        after: int | None = None,
    ) -> None:
        with self._write():
            owner = self._row(table).get()
            mine = self._quarantined(table, generation)
            if after is not None:
                mine.filter(sequence__gt=after).delete()
                mine.filter(freed_at__gt=after).update(freed_at=None)
            mine.filter(freed_at__lte=owner.merged_sequence).delete()
            models = [quarantined_model(owner, generation, r) for r in rows]
            QuarantinedRow.objects.bulk_create(models, 500, ignore_conflicts=True)
            for first in range(0, len(freed), 500):
                mine.filter(sequence__in=freed[first : first + 500]).update(freed_at=at)

    def record_refused(
        self, table: TableId, generation: int, rows: Sequence[QuarantinedChange]
    ) -> None:
        with self._write(table):
            owner = self._row(table).get()
            owner.quarantined.exclude(generation=generation).delete()
            known = set(owner.quarantined.values_list("sequence", flat=True))
            for portion in _portions(sorted(known - {r.sequence for r in rows})):
                owner.quarantined.filter(sequence__in=portion).delete()
            models = [quarantined_model(owner, generation, r) for r in rows]
            QuarantinedRow.objects.bulk_create(models, 500, ignore_conflicts=True)
            self._count_quarantined(table)

    def quarantined_forget(self, table: TableId, generation: int) -> None:
        with self._write():
            QuarantinedRow.objects.filter(
                table__in=self._row(table), generation__lte=generation
            ).delete()

    def record_merged(
        self, table: TableId, sequence: int, token: int | None, counts: OpCounts
    ) -> None:
        with self._write(table):
            known = self._row(table).values_list("merged_sequence", flat=True).get()
            self._row(table).update(
                merged_sequence=max(sequence, known),
                merged_at=timezone.now(),
                inserts=F("inserts") + counts.inserts,
                updates=F("updates") + counts.updates,
                deletes=F("deletes") + counts.deletes,
                **({} if token is None else {"token_sequence": token}),
            )
            self._count_quarantined(table)

    def record_cost(self, table: TableId, cost: MergeCost) -> None:
        with self._write():
            values: dict[str, Any] = {
                "scanned_bytes": cost.scanned_bytes,
                "is_pruned": cost.is_pruned,
            }
            if cost.estimate is not None:
                values |= {
                    "estimated_bytes": cost.estimate.bytes,
                    "estimate_accuracy": cost.estimate.accuracy,
                }
            self._row(table).update(**values)

    def record_skipped(self, tables: Sequence[TableId], sequence: int) -> None:
        keys = self._tables.keys(tables)
        with self._write():
            for portion in _portions(keys):
                behind = self._rows.filter(pk__in=portion, merged_sequence__lt=sequence)
                behind.update(merged_sequence=sequence, merged_at=timezone.now())
        self._tables.merged(tables, sequence)

    def _count_quarantined(self, table: TableId) -> None:
        """Store the number of quarantined rows, which the pages show. It queries only where rows
        wait or waited."""
        row = self._row(table).get()
        if row.rows_quarantined or row.quarantined.exists():
            row.rows_quarantined = len(self.quarantined(table, row.generation, row.merged_sequence))
            row.save(update_fields=["rows_quarantined"])

    def record_resolved(self, resolved: Mapping[TableId, float]) -> None:
        alike: dict[float, list[TableId]] = {}
        for table, at in resolved.items():
            alike.setdefault(at, []).append(table)
        with self._write(*resolved):
            for at, tables in alike.items():
                for portion in _portions(self._tables.keys(tables)):
                    self._rows.filter(pk__in=portion, resolved_at__lt=at).update(resolved_at=at)

    def record_metrics(self, metrics: dict[TableId, TableMetrics], facts: dict[str, Any]) -> None:
        alike: dict[TableMetrics, list[TableId]] = {}
        for table, found in metrics.items():
            if self._metrics.get(table) != found:
                alike.setdefault(found, []).append(table)
        keys = {found: self._tables.keys(tables) for found, tables in alike.items()}
        with self._write():
            for found, mine in keys.items():
                known = {"unmerged_since": moment(found.unmerged_since)}
                is_start = found.unmerged_since is found.lag_seconds is None  # keep the last value
                since = {} if is_start else known
                for portion in _portions(mine):
                    self._rows.filter(pk__in=portion).update(
                        lag_seconds=found.lag_seconds, backlog_bytes=found.backlog_bytes, **since
                    )
            now = timezone.now()
            self._progress.update(facts={**facts, **self._waits}, facts_at=now)
            if (span := span_of(now)) != self._sampled:
                record_metrics(self._replicator, now)
        self._metrics |= metrics
        self._sampled = span

    # --- watermarks ----------------------------------------------------------------------------------------------  # noqa: E501
    def record_watermark(self, watermark: Watermark) -> None:
        with self._write():
            watermark_publish(self._replicator, watermark)

    def forget_versions(self, table: TableId) -> None:
        with self._write():
            versions_forget(self._replicator, table)

    # --- pruning -------------------------------------------------------------------------------------------------  # noqa: E501
    def drop_changes(self, table: TableId) -> list[str]:
        mine = self._files.filter(schema_name=table.schema, table_name=table.name)
        with self._write():
            paths = list(mine.values_list("path", flat=True))
            mine.delete()
        return paths

    def prunable(self, *, older_than: float) -> tuple[list[SegmentRow], list[ChangeFileRow]]:
        needed = [t.merged_sequence for t in self._tables.all(is_exact=True) if needs_log(t)]
        merged = min(needed, default=1 << 62)
        found = self._segments.filter(
            is_decoded=True, sealed_at__lt=moment(older_than), number__lt=(merged + 1) >> 32
        )
        done = [segment_row(s) for s in found.order_by("number")[:PORTION]]
        numbers = [s.number for s in done]
        return done, [file_row(f) for f in self._files.filter(segment_number__in=numbers)]

    def forget(self, segments: Sequence[int]) -> None:
        with self._write():
            for portion in _portions(segments):
                self._files.filter(segment_number__in=portion).delete()
                self._segments.filter(number__in=portion).delete()

    def log(self, level: str, text: str, table: TableId | None = None) -> None:
        known = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
        logger.log(known, text, extra={"table": str(table) if table else ""})
