"""Where raw segments and change files lie: write, seal, read, sweep. Knows no source and no table's content.

A raw segment is `RSEG0001`, u32 little-endian length of the head, the head (JSON), and the messages: each u32
little-endian length and bytes. Its listing in the store is the truth; a file without a row is swept.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import threading
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlparse

import numpy as np

from replicators.connectors.errors import ReplicationError
from replicators.connectors.schema import TableId
from runners.engine import failpoints

MAGIC = b"RSEG0001"
_LENGTH = struct.Struct("<I")


def fsync_folder(folder: Path) -> None:
    """Make renames in `folder` durable."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read_segment(path: str, crc32: int, number: int) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """Head and body (uint8) of a raw segment, its checksum verified; `log:segment-corrupt`."""
    try:
        data = np.fromfile(path, np.uint8)
    except OSError as err:
        raise ReplicationError("log:segment-corrupt", segment=number, offset=0) from err
    if zlib.crc32(data.data) != crc32 or data[:8].tobytes() != MAGIC:
        raise ReplicationError("log:segment-corrupt", segment=number, offset=0)
    (length,) = _LENGTH.unpack(data[8:12].tobytes())
    return json.loads(data[12 : 12 + length].tobytes()), data[12 + length :]


@dataclass(frozen=True, slots=True)
class Sealed:
    """A segment file that is durable under its final name."""

    path: str
    size_bytes: int
    crc32: int


class SegmentFile:
    """A raw segment that is being written: `append` blocks, then `seal` or `discard`."""

    def __init__(self, path: Path, head: dict[str, Any]) -> None:
        self._path = path
        self._part = path.with_suffix(".part")
        try:
            self._file = self._part.open("wb", buffering=0)
        except OSError as err:
            raise write_error(err) from err
        self._crc = 0
        self.size_bytes = 0
        text = json.dumps(head, separators=(",", ":")).encode()
        self.append(MAGIC + _LENGTH.pack(len(text)) + text)

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Add bytes; `log:disk-full`, `log:not-writable`."""
        try:
            view = memoryview(data)
            while view:
                view = view[self._file.write(view) :]
        except OSError as err:
            raise write_error(err) from err
        self._crc = zlib.crc32(data, self._crc)
        self.size_bytes += len(data)

    def seal(self) -> Sealed:
        """fsync, rename, fsync the folder (step 1 of the order of writes)."""
        try:
            os.fsync(self._file.fileno())
            self._file.close()
            self._part.rename(self._path)
            fsync_folder(self._path.parent)
        except OSError as err:
            raise write_error(err) from err
        failpoints.hit("segment_renamed")
        return Sealed(str(self._path), self.size_bytes, self._crc)

    def discard(self) -> None:
        """Throw the unfinished file away."""
        self._file.close()
        self._part.unlink(missing_ok=True)


def write_error(err: OSError) -> ReplicationError:
    """`log:disk-full` or `log:not-writable` for an error of the change log's disk."""
    if err.errno in {28, 122}:  # ENOSPC, EDQUOT
        return ReplicationError(
            "log:disk-full", reserve="the space needed", limit="the disk's size"
        )
    return ReplicationError("log:not-writable")


class ChangeLog:
    """The change log of one replicator, in a folder of its own. `attempt` goes into every name, so that a replaced run
    and its successor never write the same file."""

    def __init__(self, url: str, replicator: str, attempt: str) -> None:
        parsed = urlparse(url)
        if parsed.scheme not in {"", "file"}:
            raise ReplicationError(
                "config:invalid",
                field="REPLICATOR_LOG_URL",
                reason=f"`{parsed.scheme}` is not supported yet",
            )
        self.root = Path(parsed.path or url).absolute() / replicator
        self._attempt = attempt
        self._lock = threading.Lock()
        self.segments = self.root / "segments"
        self.changes = self.root / "changes"
        self.merges = self.root / "merges"
        try:
            for folder in (self.segments, self.changes, self.merges):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as err:
            raise write_error(err) from err
        self._bytes = self._scan()

    def begin_segment(self, number: int, head: dict[str, Any]) -> SegmentFile:
        """A new raw segment file."""
        return SegmentFile(self.segments / f"{number:012d}-{self._attempt}.raw", head)

    def change_prefix(self, number: int) -> str:
        """Where the change files of a segment go: a path prefix; the task adds table and version."""
        return str(self.changes / f"{number:012d}-{self._attempt}")

    def merge_path(self, table: TableId, sequence: int) -> str:
        """A path prefix for the folded files of one merge."""
        return str(self.merges / f"{file_word(str(table))}-{sequence}-{self._attempt}")

    def highest_number(self) -> int:
        """The highest segment number in the folder (CORRECTNESS 4)."""
        names = [p.name.split("-")[0] for p in self.segments.iterdir()]
        return max((int(n) for n in names if n.isdigit()), default=0)

    def sweep(self, keep: Iterable[str]) -> int:
        """Remove every file that the store doesn't list; how many."""
        listed = set(keep)
        swept = 0
        for folder in (self.segments, self.changes, self.merges):
            for path in folder.iterdir():
                if str(path) not in listed:
                    path.unlink(missing_ok=True)
                    swept += 1
        self._bytes = self._scan()
        return swept

    def unlink(self, paths: Iterable[str]) -> None:
        """Remove files; those already gone are fine."""
        for path in paths:
            with suppress(FileNotFoundError):
                size = os.stat(path).st_size
                os.unlink(path)
                self.added(-size)
        failpoints.hit("files_unlinked")

    def added(self, size_bytes: int) -> None:
        """Files of so many bytes were added (by tasks, or as a sealed segment), or removed where negative."""
        with self._lock:
            self._bytes += size_bytes

    @property
    def size_bytes(self) -> int:
        """Bytes of all listed files, kept as a running sum: a folder of a day's files is slow to look through."""
        return self._bytes

    def _scan(self) -> int:
        total = 0
        for folder in (self.segments, self.changes):
            with os.scandir(folder) as entries:
                total += sum(e.stat().st_size for e in entries if e.is_file())
        return total

    def free_bytes(self) -> int:
        """Bytes free on the disk."""
        return shutil.disk_usage(self.root).free


def file_word(text: str) -> str:
    """`text` as a part of a file name: other characters percent-encoded, at most 120 characters."""
    word = quote(text, safe="")
    return word if len(word) <= 120 else f"{word[:100]}~{zlib.crc32(text.encode()):08x}"
