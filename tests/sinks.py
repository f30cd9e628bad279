"""A `ChangeSink` for tests: a folder that keeps every row as Parquet, a file a lane, and every mark
as a line of text."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.target import BatchKind, ChangeBatch, Lane, Resolved, TargetTable
from replicators.connectors.tasks import Tasks


def _write(lane: Lane, folder: Path, name: str) -> int:
    tables = [pa.Table.from_batches([b]) for b in lane.read()]
    if not tables:
        return 0
    rows = pa.concat_tables(tables)
    pq.write_table(rows, folder / f"{name}-{lane.number:06d}.parquet")
    return rows.num_rows


@dataclass(frozen=True)
class FolderSink:
    """A folder for each table and generation. Files of changes are called by where their batch
    begins, so that those of a try that was not recorded are found and replaced."""

    folder: Path
    tasks: Tasks

    def names(self, table: TableId) -> tuple[str, ...]:
        """Schema and name."""
        return table.schema, table.name

    def place(self, table: TargetTable) -> Path:
        """Where a generation lies."""
        return self.folder / table.source.schema / table.source.name / f"{table.generation}"

    def begin(self, table: TargetTable, schema: TableSchema) -> None:
        """An empty folder."""
        shutil.rmtree(self.place(table), ignore_errors=True)
        self.place(table).mkdir(parents=True)

    def deliver(self, table: TargetTable, batch: ChangeBatch) -> int:
        """A file a lane; what lies beyond `after` goes first."""
        folder, name = self.place(table), f"changes-{batch.after:020d}"
        if batch.kind is BatchKind.SNAPSHOT:
            name = "snapshot"
        else:
            for old in folder.glob("changes-*.parquet"):
                if old.name >= name:
                    old.unlink()
        return sum(self.tasks.map(partial(_write, folder=folder, name=name), batch.lanes))

    def resolved(self, table: TargetTable, mark: Resolved) -> None:
        """A line."""
        with (self.place(table) / "marks.jsonl").open("a") as out:
            out.write(json.dumps([mark.sequence, mark.at]) + "\n")

    def drop(self, table: TargetTable) -> None:
        """The table's folder."""
        shutil.rmtree(self.place(table).parent, ignore_errors=True)

    # --- for the test --------------------------------------------------------------------------------------------  # noqa: E501
    def rows(self, table: TargetTable) -> list[dict[str, Any]]:
        """Everything of a generation, in the order of its files and rows: the snapshot, then the
        changes."""
        folder = self.place(table)
        paths = sorted(folder.glob("snapshot-*")) + sorted(folder.glob("changes-*"))
        return [row for path in paths for row in pq.read_table(path).to_pylist()]

    def marks(self, table: TargetTable) -> list[tuple[int, float]]:
        """The marks reported, in order."""
        path = self.place(table) / "marks.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [tuple(json.loads(line)) for line in lines]
