"""Reads and tidies up what the sink wrote: a `PulledFeed`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from itertools import chain, groupby

import pyarrow as pa

from replicators.connectors import files
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.pulling import KeepLimits, Kept, KeptTable, Part
from replicators.targets.subscribers import layout
from replicators.targets.subscribers.params import SubscribersParams
from replicators.targets.subscribers.records import read_part, write_part
from replicators.targets.subscribers.writer import read_marker


class SubscribersFeed:
    """The files at one location."""

    def __init__(self, params: SubscribersParams) -> None:
        self._params = params

    @property
    def limits(self) -> KeepLimits:
        """What people set."""
        return KeepLimits(self._params.keep_hours * 3600.0, self._params.keep_megabytes * 1_000_000)

    def kept(self, table: KeptTable, upto: int) -> Kept | None:
        """What is there. The copy is looked up first: whoever makes a newer one removes older
        changes only afterwards."""
        root = layout.table_folder(self._params.root, table.source)
        marker = read_marker(root)
        if marker is None or marker["replicator"] != table.replicator:
            return None
        folder = self._folder(table)
        base, has_copy = self._base(folder)
        copy = [p for p in self._parts(f"{folder}/{layout.copy_name(base)}") if has_copy]
        changes = [p for p in self._parts(f"{folder}/{layout.CHANGES}") if base < p.last <= upto]
        return Kept(base, tuple(copy), layout.in_order(changes), has_copy)

    def _folder(self, table: KeptTable) -> str:
        root = layout.table_folder(self._params.root, table.source)
        return f"{root}/{layout.generation_name(table.generation)}"

    def _parts(self, folder: str) -> list[Part]:
        found = (layout.part_of(path, size) for path, size in files.listed(folder))
        return [p for p in found if p is not None]

    def _base(self, folder: str) -> tuple[int, bool]:
        """The sequence of the copy that counts, and whether its rows are there: the newest one that
        is whole, otherwise the oldest one, which the sink wrote."""
        copies = sorted(n for n in files.folders(folder) if n.startswith(layout.COPY))
        for name in reversed(copies):
            text = files.read_if_there(f"{folder}/{name}/{layout.WHOLE}")
            if text is not None:
                return int(name.removeprefix(layout.COPY)), bool(json.loads(text)["has_rows"])
        return (int(copies[0].removeprefix(layout.COPY)) if copies else 0), True

    def read(self, part: Part) -> tuple[TableSchema, Iterator[pa.RecordBatch]]:
        """The schema of a part, and its rows. OSError."""
        return read_part(part.path)

    def join(self, table: KeptTable, parts: Iterable[Part]) -> None:
        """Make one part of neighbouring ones of one schema, then remove these. A reader that listed
        them lists again."""
        opened = [(part, *read_part(part.path)) for part in parts]
        folder = f"{self._folder(table)}/{layout.CHANGES}"
        for schema, group in groupby(opened, key=lambda o: o[1]):
            some = list(group)
            if len(some) > 1:
                rows = chain.from_iterable(batches for _, _, batches in some)
                write_part(folder, schema, rows, 0, uuid.uuid4().hex[:8])
                files.remove_all(part.path for part, _, _ in some)

    def copy_file(
        self, table: KeptTable, base: int, number: int, schema: TableSchema,
        rows: Iterable[pa.RecordBatch],
    ) -> None:  # fmt: skip
        """Write a file of a new copy. A file of the same number that an earlier try left is
        replaced."""
        folder = self._folder(table)
        place = f"{folder}/{layout.copy_name(base)}"
        old = [p.path for p in self._parts(place) if p.first == number]
        files.make_durable_folder(place, folder)
        write_part(place, schema, rows, number, uuid.uuid4().hex[:8], first=number)
        files.remove_all(old)

    def copy_done(self, table: KeptTable, base: int, *, has_rows: bool) -> None:
        """Let the copy at `base` count, then remove what lies before it."""
        folder = self._folder(table)
        place = f"{folder}/{layout.copy_name(base)}"
        files.make_durable_folder(place, folder)
        files.publish(f"{place}/{layout.WHOLE}", json.dumps({"has_rows": has_rows}).encode())
        for name in files.folders(folder):
            if name.startswith(layout.COPY) and name < layout.copy_name(base):
                files.remove_folder(f"{folder}/{name}")
        changes = self._parts(f"{folder}/{layout.CHANGES}")
        files.remove_all(p.path for p in changes if p.last <= base)
