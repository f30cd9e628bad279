"""Paper at work: a text file a table, a line a change."""

from __future__ import annotations

from pathlib import Path

from replicators.targets.paper.params import PaperParams

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.target import ChangeBatch, Resolved, TargetTable


class PaperTarget:
    """A `ChangeSink`. What comes again after a crash is written again: at least once."""

    def __init__(self, params: PaperParams) -> None:
        self._drawer = Path(params.drawer)

    def names(self, table: TableId) -> tuple[str, ...]:
        """A sheet's heading."""
        return table.schema, table.name

    def _sheet(self, table: TargetTable) -> Path:
        return self._drawer / f"{'.'.join(self.names(table.source))}.{table.generation}.txt"

    def begin(self, table: TargetTable, schema: TableSchema) -> None:
        """An empty sheet."""
        self._drawer.mkdir(parents=True, exist_ok=True)
        self._sheet(table).write_text("")

    def deliver(self, table: TargetTable, batch: ChangeBatch) -> int:
        """A line a row, in order."""
        count = 0
        with self._sheet(table).open("a") as out:
            for lane in batch.lanes:
                for rows in lane.read():
                    out.writelines(f"{row}\n" for row in rows.to_pylist())
                    count += rows.num_rows
        return count

    def resolved(self, table: TargetTable, mark: Resolved) -> None:
        """Paper is read by whoever likes."""

    def drop(self, table: TargetTable) -> None:
        """All sheets of the table into the fire."""
        for sheet in self._drawer.glob(f"{'.'.join(self.names(table.source))}.*.txt"):
            sheet.unlink(missing_ok=True)
