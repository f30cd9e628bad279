"""The data source `replicator` of PySpark: a replicator's change log as a data frame.

A stream's offset is `{"generation": n, "sequence": n}`: the table's copy, and the sequence up to
which everything was read. A batch ends where a transaction ends.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import RecordBatch
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from replicators.spark import errors
from replicators.spark.files import tables
from replicators.spark.options import EARLIEST, LATEST, Options, parsed
from replicators.spark.rest import ChangeFile, Rest, TableLog, replicator_id
from replicators.spark.rows import Reading, frame_rows
from replicators.spark.types import frame_schema, spark_type

ROWS_A_TASK, BYTES_A_TASK, FILES_A_TASK = 1_000_000, 64 << 20, 500
"""A task reads at most so much, or one file."""
ROWS_A_BATCH = 1 << 16
IDLE_SECONDS = 60.0
"""A stream without changes moves its offset only after this time, so that it writes few empty
batches, and its position does not fall out of the log."""


@dataclass(frozen=True)
class Described:
    """The columns that the data frame took from the log, as far as it was decoded then."""

    columns: tuple[Mapping[str, Any], ...]
    until: int


class ReplicatorSource(DataSource):
    """`spark.read.format("replicator")` and `spark.readStream.format("replicator")`."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._options = parsed(options)
        self._described: Described | None = None
        self._id = ""

    @classmethod
    def name(cls) -> str:
        return "replicator"

    def schema(self) -> StructType:
        """The table's columns, then those about the change."""
        head = self._rest().listing(limit=0)
        if not head.columns:
            raise errors.not_copied(self._options.called)
        names = self._options.names
        known = {n.casefold() for n in names.all()}
        taken = [c["name"] for c in head.columns if c["name"].casefold() in known]
        if taken:
            raise errors.name_taken(self._options.called, ", ".join(taken))
        self._described = Described(head.columns, head.until)
        return frame_schema(head.columns, names)

    def reader(self, schema: StructType) -> ChangesReader:
        return ChangesReader(self._changes(schema))

    def streamReader(self, schema: StructType) -> ChangesStreamReader:
        return ChangesStreamReader(self._changes(schema))

    def _changes(self, schema: StructType) -> Changes:
        return Changes(self._options, self._rest(), to_arrow_schema(schema), self._described)

    def _rest(self) -> Rest:
        asked = self._options
        if not self._id:
            self._id = replicator_id(asked.url, asked.token, asked.replicator)
        return Rest(asked.url, asked.token, self._id, asked.schema, asked.table)


@dataclass(frozen=True)
class Share(InputPartition):
    """What one task reads: neighbouring files, and which of their rows."""

    files: tuple[ChangeFile, ...]
    keys: Mapping[str, tuple[str, ...]]
    reading: Reading


@dataclass(frozen=True)
class Changes:
    """The changes of one table, for both readers."""

    options: Options
    rest: Rest
    schema: pa.Schema
    described: Described | None

    def first_after(self, head: TableLog, default: str) -> int:
        """The sequence after which reading begins."""
        start = self.options.start or default
        if start == EARLIEST:
            return head.kept_after
        if start == LATEST:
            return max(head.until, head.kept_after)
        after = max(int(start) - 1, 0)
        self._require_kept(head, after)
        return after

    def _require_kept(self, head: TableLog, after: int) -> None:
        if after < head.kept_after:
            raise errors.position_lost(self.options.called, after, head.kept_after)

    def shares(self, generation: int, after: int, upto: int) -> list[Share]:
        """The tasks that read the changes with `after` < sequence <= `upto`. `ChangesError` where
        some are not there, or do not fit the data frame."""
        found: list[Share] = []
        for page in self.rest.listings(after=after, upto=upto):
            self._require_kept(page, after)
            if self.options.stops_at_copy and page.generation != generation:
                raise errors.copied_afresh(self.options.called, generation, page.generation)
            for file in page.files:
                self._require_schema(page, file)
            reading = Reading(
                self.options.called, self.options.names, self.schema, after, upto, page.position,
                page.skipped_operations,
            )  # fmt: skip
            keys = {v: tuple(s["key"]) for v, s in page.schemas.items()}
            found += [Share(files, keys, reading) for files in grouped(page.files)]
        return found

    def _require_schema(self, page: TableLog, file: ChangeFile) -> None:
        """Stop at columns that the data frame can't know of. Files that are older than the data
        frame are read by name."""
        if self.described is None or not self.options.stops_at_schema:
            return
        if file.last_sequence <= self.described.until:
            return
        known = {c["name"]: spark_type(c["type"]) for c in self.described.columns}
        now = {c["name"]: spark_type(c["type"]) for c in page.schemas[file.version]["columns"]}
        changed = [f"{n} is new" for n in now if n not in known]
        changed += [
            f"{n} is {k.simpleString()} now" for n, k in now.items() if known.get(n, k) != k
        ]
        if changed:
            raise errors.schema_changed(self.options.called, ", ".join(changed))

    def read(self, share: Share | None) -> Iterator[RecordBatch]:
        """The rows of a share, file by file."""
        if share is None:  # Spark asks for one where there are none
            return
        for file, rows in tables(self.rest, share.files, is_direct=self.options.is_direct):
            made = frame_rows(rows, share.keys[file.version], share.reading)
            yield from made.to_batches(max_chunksize=ROWS_A_BATCH)


def grouped(files: Iterable[ChangeFile]) -> list[tuple[ChangeFile, ...]]:
    """Neighbouring files in shares for tasks."""
    found: list[list[ChangeFile]] = []
    rows = size = 0
    for file in files:
        rows, size = rows + file.rows, size + file.size_bytes
        is_full = rows > ROWS_A_TASK or size > BYTES_A_TASK
        if not found or is_full or len(found[-1]) >= FILES_A_TASK:
            found.append([])
            rows, size = file.rows, file.size_bytes
        found[-1].append(file)
    return [tuple(share) for share in found]


class ChangesReader(DataSourceReader):
    """A range of changes as a batch; by default all that the log has."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    def partitions(self) -> list[Share]:
        changes = self._changes
        head = changes.rest.listing(limit=0)
        after = changes.first_after(head, EARLIEST)
        upto = head.until
        if changes.options.end.isdecimal():
            upto = int(changes.options.end)
            if upto > head.until:
                raise errors.behind(changes.options.called, upto, head.until)
        elif changes.described is not None:
            upto = min(upto, changes.described.until)
        return changes.shares(head.generation, after, upto) if after < upto else []

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        assert partition is None or isinstance(partition, Share)
        return self._changes.read(partition)


class ChangesStreamReader(DataSourceStreamReader):
    """Changes as a stream; by default those from now on. It lives in a process of its own as long
    as the query runs."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._read: int | None = None
        self._latest: dict[str, int] = {}
        self._asked_at = self._moved_at = float("-inf")

    def initialOffset(self) -> dict[str, int]:
        head = self._changes.rest.listing(limit=0)
        after = self._changes.first_after(head, LATEST)
        if self._latest and (self._changes.options.start or LATEST) == LATEST:
            after = self._latest["sequence"]  # a stream until now asks for its end first
        self._read = after
        return {"generation": head.generation, "sequence": after}

    def latestOffset(self) -> dict[str, int]:
        """How far the stream can read now. Spark asks many times a second: the server is asked once
        in `pollSeconds`."""
        now = time.monotonic()
        if self._latest and now - self._asked_at < self._changes.options.poll_seconds:
            return self._latest
        read = self._latest.get("sequence") if self._latest else self._read
        head = self._changes.rest.listing(after=read or 0, limit=0 if read is None else 1)
        self._asked_at = now
        is_same = bool(self._latest) and self._latest["generation"] == head.generation
        if is_same and not head.files and now - self._moved_at < IDLE_SECONDS:
            return self._latest
        self._moved_at = now
        until = max(head.until, head.kept_after, read or 0)
        self._latest = {"generation": head.generation, "sequence": until}
        return self._latest

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Share]:
        called = self._changes.options.called
        is_other = start["generation"] not in {0, end["generation"]}
        if is_other and self._changes.options.stops_at_copy:
            raise errors.copied_afresh(called, start["generation"], end["generation"])
        if end["sequence"] < start["sequence"]:
            raise errors.behind(called, start["sequence"], end["sequence"])
        if end["sequence"] == start["sequence"]:
            return []
        return self._changes.shares(end["generation"], start["sequence"], end["sequence"])

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        assert isinstance(partition, Share)
        return self._changes.read(partition)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing: Spark's checkpoint is what remembers."""

    def stop(self) -> None:
        """Nothing is held open."""
