"""Paths and names of files. Names sort in the order of the changes. Accesses no file system.

<location>/<schema>.<table>/                          the table's folder
    _table.json                                       the table's owner
    g000001/                                          a generation: one copy of the table, begun by a snapshot
        _resolved.json                                up to where its buckets are closed
        _schema-0001.json                             the schema of the rows of version 1
        _deliveries/...json                           the program's own notes, removed when their buckets are closed
        2026-11-24/                                   a day, in UTC
            2026-11-24-07-05/                         a bucket
                <first>-<last>-<lane>-<part>-<try>.parquet
                _manifest.json                        the bucket is closed: these files, and no others
"""  # noqa: E501

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from replicators.connectors.locations import plain as plain
from replicators.connectors.model.schema import TableId

MANIFEST = "_manifest.json"
RESOLVED = "_resolved.json"
MARKER = "_table.json"
DELIVERIES = "_deliveries"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def table_folder(location: str, table: TableId) -> str:
    """The folder of a table."""
    return f"{location}/{plain(table.schema)}.{plain(table.name)}"


def generation_name(generation: int) -> str:
    """The name of a generation's folder."""
    return f"g{generation:06d}"


def is_generation(name: str) -> bool:
    """Whether a folder with this name holds a generation."""
    return name[:1] == "g" and name[1:].isascii() and name[1:].isdecimal()


def time_of(micros: int) -> datetime:
    """The time at `micros` microseconds since the epoch. Later times than `datetime` can hold
    become its last one."""
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def iso(micros: int) -> str:
    """The time as text, in UTC."""
    return time_of(micros).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True, slots=True)
class Buckets:
    """Time spans of equal length, counted from the epoch: those of a day begin at midnight UTC. A
    bucket is identified by the microsecond at which it begins."""

    seconds: int

    @property
    def micros(self) -> int:
        return self.seconds * 1_000_000

    def start(self, micros: int) -> int:
        """The bucket that holds this time."""
        return micros // self.micros * self.micros

    def end(self, bucket: int) -> int:
        """The time at which the next bucket begins."""
        return bucket + self.micros

    def name(self, bucket: int) -> str:
        """A bucket's name: its start time, with seconds if buckets are shorter than a minute."""
        return time_of(bucket).strftime("%Y-%m-%d-%H-%M" + ("-%S" if self.seconds % 60 else ""))

    def folder(self, bucket: int) -> str:
        """A bucket's folder, within its generation's."""
        return f"{day_name(bucket)}/{self.name(bucket)}"


def day_name(micros: int) -> str:
    """The name of the day that holds this time."""
    return time_of(micros).strftime("%Y-%m-%d")


def file_name(first: int, last: int, lane: int, part: int, attempt: str, ending: str) -> str:
    """The name of a data file. The names of a table's files sort in the order of the changes in
    them."""
    return f"{first:019d}-{last:019d}-{lane:06d}-{part:04d}-{attempt}{ending}"


def schema_name(version: int) -> str:
    """The name of a schema version's file."""
    return f"_schema-{version:04d}.json"
