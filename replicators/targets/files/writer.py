"""The files target: a `ChangeSink` that writes every change once, into buckets by time, and closes
a bucket with a manifest.

A delivery first undoes what an earlier, unrecorded delivery left. Then tasks write the lanes'
files. Then a note names these files. Closing writes a manifest for each bucket, oldest first, then
`_resolved.json`, and then removes the notes.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from replicators.connectors import files
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import BatchKind, ChangeBatch, Resolved, TargetTable
from replicators.connectors.tasks import Tasks
from replicators.targets.files import layout, redshift
from replicators.targets.files.errors import translated
from replicators.targets.files.lanes import DataFile, Form, LaneWork, with_floor, write_lane
from replicators.targets.files.marker import Marker, is_used, read_marker
from replicators.targets.files.params import PARQUET, FilesParams
from replicators.targets.files.state import Generation

ROWS_HERE = 20_000
"""Up to this many rows, this process writes the files itself: a task would cost more."""
AHEAD_MICROS = 300_000_000
"""A commit time further ahead of our clock than this counts as this far ahead. Otherwise a source's
clock that jumped for a moment would keep a bucket open for years."""


class FilesSink:
    """Writes to one location. `clock` returns seconds since the epoch."""

    def __init__(
        self, params: FilesParams, tasks: Tasks, clock: Callable[[], float] = time.time
    ) -> None:
        self._params, self._tasks, self._clock = params, tasks, clock
        self._buckets = layout.Buckets(params.bucket_seconds)
        self._form = Form(
            params.ending, params.codec, params.format == PARQUET, params.before_images
        )
        self._generations: dict[tuple[TableId, int], Generation] = {}

    def names(self, table: TableId) -> tuple[str, ...]:
        """The two parts of the name of the table's folder."""
        return layout.plain(table.schema), layout.plain(table.name)

    def begin(self, table: TargetTable, schema: TableSchema) -> None:
        """Make an empty folder for this generation. Remove earlier generations that never became
        complete."""
        with translated(table.source):
            root = layout.table_folder(self._params.root, table.source)
            self._claim(root, table)
            mine = layout.generation_name(table.generation)
            for name in files.folders(root):
                place = f"{root}/{name}"
                is_left = name < mine and not files.is_there(f"{place}/{layout.RESOLVED}")
                if layout.is_generation(name) and (name == mine or is_left):
                    files.remove_folder(place)
            files.make_durable_folder(f"{root}/{mine}", root)
            self._forget(table.source)
            self._generations[table.source, table.generation] = Generation(
                f"{root}/{mine}", self._buckets, is_swept=True
            )

    def _claim(self, root: str, table: TargetTable) -> None:
        """Make the table's folder, or check that it belongs to this replicator. The marker is the
        first file in it."""
        known = read_marker(root)
        if known is not None and known.replicator != table.replicator:
            raise self._taken(table)
        if known is None and is_used(root):
            raise self._taken(table)
        if not files.is_url(root):
            files.make_folder(root)
            files.sync_folder(root.rpartition("/")[0])
        Marker(table.replicator, table.source, table.generation).write(
            root, self._params.format, self._params.bucket_seconds
        )

    def deliver(self, table: TargetTable, batch: ChangeBatch) -> int:
        """Write the batch into files and note them. Returns the number of rows."""
        with translated(table.source):
            known = self._generation(table)
            try:
                return self._deliver(known, batch)
            except BaseException:
                self._forget(table.source)
                raise

    def _deliver(self, known: Generation, batch: ChangeBatch) -> int:
        is_snapshot = batch.kind is BatchKind.SNAPSHOT
        if not is_snapshot:
            known.forget_after(batch.after)
        known.sweep()
        if not batch.lanes:
            return 0
        attempt = uuid.uuid4().hex[:8]
        floor = max(known.closed, self._buckets.start(round(batch.resolved_at * 1e6)))
        work = LaneWork(
            lane=batch.lanes[0],
            schema=batch.schema,
            version=known.version(batch.schema),
            folder=known.folder,
            form=self._form,
            buckets=self._buckets,
            floor=floor if is_snapshot else max(floor, known.newest),
            ceiling=self._now() + AHEAD_MICROS,
            attempt=attempt,
        )
        works = [replace(work, lane=lane) for lane in batch.lanes]
        is_small = not is_snapshot and sum(lane.rows for lane in batch.lanes) <= ROWS_HERE
        written = list(map(write_lane, works)) if is_small else self._tasks.map(write_lane, works)
        if not is_snapshot:
            written = self._in_order(known, works, written)
        made = [one for some in written for one in some]
        if made:
            known.note(
                is_snapshot=is_snapshot, after=batch.after, sequence=batch.sequence, made=made,
                attempt=attempt,
            )  # fmt: skip
        return sum(one.rows for one in made)

    def _in_order(
        self, known: Generation, works: Sequence[LaneWork], written: Sequence[list[DataFile]]
    ) -> list[list[DataFile]]:
        """Put lanes in order. Lanes are written in parallel. If a lane's first bucket is older than
        the last bucket of the lane before it, the lane is written again."""
        found, floor = [], works[0].floor
        for number, (work, made) in enumerate(zip(works, written, strict=True)):
            if made and made[0].bucket < floor:
                files.remove_all(f"{known.folder}/{f.path}" for f in made)
                attempt = f"{work.attempt}{number:04d}"
                made = write_lane(replace(with_floor(work, floor), attempt=attempt))
            floor = made[-1].bucket if made else floor
            found.append(made)
        return found

    def resolved(self, table: TargetTable, mark: Resolved) -> None:
        """Close the buckets that ended before the mark."""
        upto = self._buckets.start(min(round(mark.at * 1e6), self._now() + AHEAD_MICROS))
        known = self._generations.get((table.source, table.generation))
        if known is not None and upto <= known.closed:
            return
        with translated(table.source):
            known = known or self._generation(table)
            ahead = [f.bucket for n in known.notes if n.sequence > mark.sequence for f in n.files]
            upto = min([upto, *ahead])
            if upto <= known.closed or not known.can_begin(upto):
                return
            facts = {
                "replicator": table.replicator,
                "schema": table.source.schema,
                "table": table.source.name,
                "generation": table.generation,
                "is_copy_complete": True,
                "format": self._params.format,
                "closed_at": layout.iso(self._now()),
                "resolved_at": layout.iso(round(mark.at * 1e6)),
                "sequence": mark.sequence,
            }
            try:
                known.close(upto, facts, self._copy if self._params.copy_role else None)
            except BaseException:
                self._forget(table.source)
                raise

    def _copy(self, manifest: str, schemas: list[dict[str, Any]], told: dict[str, Any]) -> str:
        """The COPY of a closed bucket."""
        names = redshift.columns(schemas, has_before=self._params.before_images)
        table = (told["schema"], told["table"])
        return redshift.script(table, manifest, self._params.copy_role, names, told["rows"])

    def drop(self, table: TargetTable) -> None:
        """Remove the table's folder if it belongs to this replicator."""
        with translated(table.source):
            root = layout.table_folder(self._params.root, table.source)
            known = read_marker(root)
            if known is not None and known.replicator == table.replicator:
                files.remove_folder(root)
            self._forget(table.source)

    def _now(self) -> int:
        return round(self._clock() * 1e6)

    def _forget(self, table: TableId) -> None:
        """Discard the known state of a table, so that it is read again. Another attempt may have
        been interrupted at any point."""
        for key in [k for k in self._generations if k[0] == table]:
            self._generations.pop(key)

    def _generation(self, table: TargetTable) -> Generation:
        key = (table.source, table.generation)
        if key not in self._generations:
            root = layout.table_folder(self._params.root, table.source)
            known = read_marker(root)
            if known is None:
                raise ReplicationError("target:table-missing", table=table.source)
            if (known.replicator, known.generation) != (table.replicator, table.generation):
                raise ReplicationError("target:table-replaced", table=table.source)
            folder = f"{root}/{layout.generation_name(table.generation)}"
            self._generations[key] = Generation.load(folder, self._buckets)
        return self._generations[key]

    def _taken(self, table: TargetTable) -> ReplicationError:
        target = ".".join(self.names(table.source))
        return ReplicationError("target:table-taken", table=table.source, target=target)
