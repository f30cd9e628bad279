"""How far a replicator has come, for the process of a verification: reads, never writes."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Q, QuerySet

from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId
from replicators.models import DesiredState, Replicator
from runners.engine.store.protocol import ChangeFileRow, TableRow
from runners.engine.store.quarantine import QuarantinedRow as QuarantinedChange
from runners.engine.verify.following import Captured
from runners.models import ChangeFile, Progress, QuarantinedRow, Segment
from runners.store.mapping import file_row, quarantined_row
from runners.store.outages import database_errors_reported
from runners.store.tables import KnownTables

PATIENCE_SECONDS = 60.0


@database_errors_reported
class FollowedReplicator:
    """`runners.engine.verify.following.Followed`. Thread safe. While the database does not answer,
    a call waits up to a minute."""

    def __init__(self, replicator: Replicator) -> None:
        self._replicator = replicator
        self._tables = KnownTables(replicator, 0.0)
        self.patience_seconds = PATIENCE_SECONDS

    @property
    def _segments(self) -> QuerySet[Segment]:
        return Segment.objects.filter(replicator=self._replicator)

    def tables(self) -> Sequence[TableRow]:
        return self._tables.all(is_exact=True)

    def table(self, table: TableId) -> TableRow:
        return self._tables.one(table)

    def is_running(self) -> bool:
        """Whether people want it to run. A failed run is started again."""
        mine = Replicator.objects.filter(pk=self._replicator.pk)
        return mine.filter(desired_state=DesiredState.RUNNING).exists()

    def captured(self) -> Captured:
        progress = Progress.objects.filter(replicator=self._replicator).first()
        if progress is None:
            return Captured(-1, 0)
        position = int(progress.position["value"]) if progress.position else -1
        return Captured(position, progress.last_segment)

    def position(self) -> Position | None:
        progress = Progress.objects.filter(replicator=self._replicator).first()
        if progress is None or not progress.position:
            return None
        return Position.from_json(progress.position)

    def first_segment(self) -> int:
        following = self.captured().segment + 1  # read first: one may be recorded meanwhile
        first = self._segments.order_by("number").values_list("number", flat=True).first()
        return following if first is None else int(first)

    def is_decoded(self, upto: int) -> bool:
        return not self._segments.filter(number__lte=upto, is_decoded=False).exists()

    def change_files(self, table: TableId, *, after: int, upto: int) -> list[ChangeFileRow]:
        found = ChangeFile.objects.filter(
            replicator=self._replicator,
            schema_name=table.schema,
            table_name=table.name,
            last_sequence__gt=after,
            first_sequence__lte=upto,
        )
        return [file_row(f) for f in found]

    def quarantined(self, table: TableId, generation: int, upto: int) -> list[QuarantinedChange]:
        waiting = QuarantinedRow.objects.filter(
            Q(freed_at=None) | Q(freed_at__gt=upto),
            table__replicator=self._replicator,
            table__schema_name=table.schema,
            table__name=table.name,
            generation=generation,
            sequence__lte=upto,
        )
        return [quarantined_row(p) for p in waiting]
