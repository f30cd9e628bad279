"""The subscribers target: a `ChangeSink` that keeps every change in order, for readers.

A delivery first removes what an earlier, unrecorded delivery left. Then tasks write the lanes'
files. Readers never look beyond what the program has recorded, so they see nothing of a delivery
that was cut off.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

from replicators.connectors import files
from replicators.connectors.locations import plain
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import BatchKind, ChangeBatch, Resolved, TargetTable
from replicators.connectors.tasks import Tasks
from replicators.targets.subscribers import layout
from replicators.targets.subscribers.errors import translated
from replicators.targets.subscribers.params import SubscribersParams
from replicators.targets.subscribers.records import LaneWork, write_lane

ROWS_HERE = 20_000
"""Up to this many rows, this process writes the files itself: a task would cost more."""


@dataclass(slots=True)
class _Known:
    """A generation as this process knows it. `is_swept`: nothing beyond the last delivery is
    there. `mark`: the last one; None where there is none yet."""

    folder: str
    is_swept: bool = False
    mark: Resolved | None = None


class SubscribersSink:
    """Writes to one location."""

    def __init__(self, params: SubscribersParams, tasks: Tasks) -> None:
        self._params, self._tasks = params, tasks
        self._known: dict[tuple[TableId, int], _Known] = {}

    def names(self, table: TableId) -> tuple[str, ...]:
        """The two parts of the name of the table's folder."""
        return plain(table.schema), plain(table.name)

    def begin(self, table: TargetTable, schema: TableSchema) -> None:
        """Make an empty folder for this generation. Remove earlier ones that never became whole."""
        with translated(table.source):
            root = layout.table_folder(self._params.root, table.source)
            self._claim(root, table)
            mine = layout.generation_name(table.generation)
            for name in files.folders(root):
                place = f"{root}/{name}"
                is_left = name < mine and not files.is_there(f"{place}/{layout.RESOLVED}")
                if layout.is_generation(name) and (name == mine or is_left):
                    files.remove_folder(place)
            files.make_durable_folder(f"{root}/{mine}/{layout.CHANGES}", root)
            self._forget(table.source)
            self._known[table.source, table.generation] = _Known(f"{root}/{mine}", is_swept=True)

    def _claim(self, root: str, table: TargetTable) -> None:
        """Make the table's folder, or check that it belongs to this replicator."""
        known = read_marker(root)
        if known is not None and known["replicator"] != table.replicator:
            raise self._taken(table)
        if known is None and is_used(root):
            raise self._taken(table)
        if not files.is_url(root):
            files.make_folder(root)
            files.sync_folder(root.rpartition("/")[0])
        _put(
            f"{root}/{layout.MARKER}",
            {
                "replicator": table.replicator,
                "schema": table.source.schema,
                "table": table.source.name,
                "generation": table.generation,
            },
        )

    def deliver(self, table: TargetTable, batch: ChangeBatch) -> int:
        """Write the batch, and return its number of rows."""
        with translated(table.source):
            known = self._generation(table)
            try:
                return self._deliver(known, batch)
            except BaseException:
                self._forget(table.source)
                raise

    def _deliver(self, known: _Known, batch: ChangeBatch) -> int:
        is_copy = batch.kind is BatchKind.SNAPSHOT
        folder = f"{known.folder}/{layout.copy_name(batch.sequence) if is_copy else layout.CHANGES}"
        old = _lanes_in(folder, {lane.number for lane in batch.lanes}) if is_copy else []
        if not is_copy and not known.is_swept:
            _remove_after(folder, batch.after)
            known.is_swept = True
        if not batch.lanes:
            return 0
        files.make_durable_folder(folder, known.folder)
        attempt = uuid.uuid4().hex[:8]
        floor = round(batch.resolved_at * 1e6)
        works = [
            LaneWork(lane, batch.schema, folder, floor, attempt, is_copy) for lane in batch.lanes
        ]
        is_small = not is_copy and sum(lane.rows for lane in batch.lanes) <= ROWS_HERE
        rows = list(map(write_lane, works)) if is_small else self._tasks.map(write_lane, works)
        files.remove_all(old)
        return sum(rows)

    def resolved(self, table: TargetTable, mark: Resolved) -> None:
        """Note the mark where it brings new changes. The copy is whole with the first one: then
        older generations go."""
        known = self._known.get((table.source, table.generation))
        if known is not None and known.mark is not None and mark.sequence <= known.mark.sequence:
            return
        with translated(table.source):
            known = known or self._generation(table)
            is_first = known.mark is None
            if known.mark is not None and mark.sequence <= known.mark.sequence:
                return
            facts = {"sequence": mark.sequence, "at": mark.at}
            _put(f"{known.folder}/{layout.RESOLVED}", facts)
            known.mark = mark
            if is_first:
                self._remove_older(table)

    def _remove_older(self, table: TargetTable) -> None:
        root = layout.table_folder(self._params.root, table.source)
        mine = layout.generation_name(table.generation)
        for name in files.folders(root):
            if layout.is_generation(name) and name < mine:
                files.remove_folder(f"{root}/{name}")

    def drop(self, table: TargetTable) -> None:
        """Remove the table's folder if it belongs to this replicator."""
        with translated(table.source):
            root = layout.table_folder(self._params.root, table.source)
            known = read_marker(root)
            if known is not None and known["replicator"] == table.replicator:
                files.remove_folder(root)
            self._forget(table.source)

    def _forget(self, table: TableId) -> None:
        """Discard what is known of a table, so that it is read again."""
        for key in [k for k in self._known if k[0] == table]:
            self._known.pop(key)

    def _generation(self, table: TargetTable) -> _Known:
        key = (table.source, table.generation)
        if key not in self._known:
            root = layout.table_folder(self._params.root, table.source)
            known = read_marker(root)
            if known is None:
                raise ReplicationError("target:table-missing", table=table.source)
            if (known["replicator"], known["generation"]) != (table.replicator, table.generation):
                raise ReplicationError("target:table-replaced", table=table.source)
            folder = f"{root}/{layout.generation_name(table.generation)}"
            self._known[key] = _Known(folder, mark=_mark(folder))
        return self._known[key]

    def _taken(self, table: TargetTable) -> ReplicationError:
        target = ".".join(self.names(table.source))
        return ReplicationError("target:table-taken", table=table.source, target=target)


def _put(path: str, data: dict[str, Any]) -> None:
    files.publish(path, json.dumps(data, ensure_ascii=False).encode())


def _mark(folder: str) -> Resolved | None:
    text = files.read_if_there(f"{folder}/{layout.RESOLVED}")
    if text is None:
        return None
    known = json.loads(text)
    return Resolved(known["sequence"], known["at"])


def _remove_after(folder: str, sequence: int) -> None:
    """Remove the parts that begin after `sequence`, and files that were cut off."""
    gone = []
    for path, size in files.listed(folder):
        part = layout.part_of(path, size)
        if path.endswith(".part") or (part is not None and part.first > sequence):
            gone.append(path)
    files.remove_all(gone)


def _lanes_in(folder: str, numbers: set[int]) -> list[str]:
    """The files of these lanes of a copy."""
    return [
        path
        for path, size in files.listed(folder)
        if (part := layout.part_of(path, size)) is not None and part.first in numbers
    ]


def read_marker(root: str) -> dict[str, Any] | None:
    """Who owns a table's folder; None where nobody does. Raises OSError."""
    text = files.read_if_there(f"{root}/{layout.MARKER}")
    if text is None:
        return None
    known: dict[str, Any] = json.loads(text)
    return known


def is_used(root: str) -> bool:
    """Whether the folder holds anything except leftovers of an interrupted attempt. Raises
    OSError."""
    names = [path.rpartition("/")[2] for path, _ in files.listed(root)]
    return bool(files.folders(root)) or any(n[:1] != "." for n in names)
