"""Writes, seals, reads and sweeps raw segments and change files, in a folder or in an object store.
Knows no source and no table's content.

A raw segment is `RSEG0001`, u32 little-endian length of the head, the head (JSON), and the
messages: each is a u32 little-endian length and its bytes. The store's list is the truth: a file
without a row is swept.
"""

from __future__ import annotations

import json
import os
import posixpath
import shutil
import struct
import tempfile
import threading
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlparse

import numpy as np

from replicators.connectors import files
from replicators.connectors.addresses import STORES
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.private import private_folder
from runners.engine import failpoints

MAGIC = b"RSEG0001"
_LENGTH = struct.Struct("<I")


def read_segment(path: str, crc32: int, number: int) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """Head and body (uint8) of a raw segment, after its checksum is verified.
    `log:segment-corrupt`, `log:store`."""
    try:
        data = (
            np.frombuffer(files.read(path), np.uint8).copy()  # decoders need their own memory
            if files.is_url(path)
            else np.fromfile(path, np.uint8)
        )
    except OSError as err:
        raise_if_away(path, err)
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
    """A raw segment that is being written: `append` blocks, then `seal` or `discard`. For an object
    store it grows in the local folder `spool`, and is sent as one object when it is sealed. Its
    name has the run's attempt, so that no other run ever writes that object."""

    def __init__(self, path: str, head: dict[str, Any], spool: Path) -> None:
        self._path = path
        self._part = (spool / Path(path).name).with_suffix(".part")
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
        """Make the file durable (step 1 of the order of writes): fsync, rename, fsync the folder.
        For an object store: send it."""
        try:
            if files.is_url(self._path):
                self._file.close()
                files.send(str(self._part), self._path)
                self._part.unlink()
            else:
                os.fsync(self._file.fileno())
                self._file.close()
                self._part.rename(self._path)
                files.sync_folder(os.path.dirname(self._path))
        except OSError as err:
            raise write_error(err) from err
        failpoints.hit("segment_renamed")
        return Sealed(self._path, self.size_bytes, self._crc)

    def discard(self) -> None:
        """Throw the unfinished file away."""
        self._file.close()
        self._part.unlink(missing_ok=True)


def write_error(err: OSError) -> ReplicationError:
    """`log:disk-full` or `log:not-writable` for an error of the change log's disk, `log:store` for
    one of its store."""
    if err.errno in {28, 122}:  # ENOSPC, EDQUOT
        return ReplicationError(
            "log:disk-full", reserve="the space needed", limit="the disk's size"
        )
    return ReplicationError("log:store" if err.errno is None else "log:not-writable")


def raise_if_away(path: str, err: OSError) -> None:
    """Raise `log:store` where a file of an object store couldn't be read but may still exist: then
    nothing is damaged."""
    if files.is_url(path) and not isinstance(err, FileNotFoundError):
        raise ReplicationError("log:store") from err


class ChangeLog:
    """The change log of one replicator, in a folder of its own. `attempt` goes into every name, so
    that a replaced run and its successor never write the same file. `spool`: the local folder where
    a store's segments grow."""

    def __init__(self, url: str, replicator: str, attempt: str, spool: str = "") -> None:
        if not files.can_be_opened(url):
            raise ReplicationError(
                "config:invalid",
                field="REPLICATOR_LOG_URL",
                reason=f"`{urlparse(url).scheme}` is not one of {', '.join(STORES)} or a folder",
            )
        self.root = root_of(url, replicator)
        self._attempt = attempt
        self._lock = threading.Lock()
        self.segments = f"{self.root}/segments"
        self.changes = f"{self.root}/changes"
        self.merges = f"{self.root}/merges"
        self.target_files = target_files_of(url, replicator)
        try:
            self._spool = self._made(
                Path(spool or tempfile.gettempdir()) / "replicator-spool" / replicator
            )
            self._bytes = self._scan()
        except OSError as err:
            raise write_error(err) from err

    def _made(self, spool: Path) -> Path:
        """Create the folders that are needed. Returns where segments grow."""
        if files.is_url(self.root):
            files.make_folder(self.segments)  # shows at once whether the store can be written
            private_folder(spool)
            return spool
        private_folder(Path(self.root).parent)
        for folder in (self.segments, self.changes, self.merges):
            Path(folder).mkdir(parents=True, exist_ok=True)
        return Path(self.segments)

    def begin_segment(self, number: int, head: dict[str, Any]) -> SegmentFile:
        """A new raw segment file."""
        path = f"{self.segments}/{number:012d}-{self._attempt}.raw"
        return SegmentFile(path, head, self._spool)

    def change_prefix(self, number: int) -> str:
        """Where the change files of a segment go: a path prefix; the task adds table and
        version."""
        return f"{self.changes}/{number:012d}-{self._attempt}"

    def merge_path(self, table: TableId, sequence: int) -> str:
        """A path prefix for the folded files of one merge."""
        return f"{self.merges}/{file_word(str(table))}-{sequence}-{self._attempt}"

    def highest_number(self) -> int:
        """The highest segment number in the folder (CORRECTNESS 4)."""
        names = [posixpath.basename(p).split("-")[0] for p, _ in files.listed(self.segments)]
        return max((int(n) for n in names if n.isdigit()), default=0)

    def sweep(self, keep: Iterable[str]) -> int:
        """Remove every file that the store doesn't list. Returns how many."""
        kept = set(keep)
        swept = 0
        for folder in {self.segments, self.changes, self.merges, str(self._spool)}:
            orphans = [path for path, _ in files.listed(folder) if path not in kept]
            files.remove_all(orphans)
            swept += len(orphans)
        self._bytes = self._scan()
        return swept

    def unlink(self, paths: Iterable[str]) -> None:
        """Remove files. Files that are already gone are no error."""
        self.added(-files.remove_all(paths))
        failpoints.hit("files_unlinked")

    def added(self, size_bytes: int) -> None:
        """Note that files of that many bytes were added (by tasks, or as a sealed segment), or
        removed where negative."""
        with self._lock:
            self._bytes += size_bytes

    @property
    def size_bytes(self) -> int:
        """Bytes of all listed files, as a running sum: it takes long to list a folder with a day's
        files."""
        return self._bytes

    def _scan(self) -> int:
        return sum(s for f in (self.segments, self.changes) for _, s in files.listed(f))

    def free_bytes(self) -> int:
        """Bytes free on the disk where segments grow."""
        return shutil.disk_usage(self._spool).free


def root_of(url: str, replicator: str) -> str:
    """The folder of a replicator's change log, as a path or URL."""
    if files.is_url(url):
        return f"{url.rstrip('/')}/{replicator}"
    return str(Path(urlparse(url).path or url).absolute() / replicator)


def target_files_of(url: str, replicator: str) -> str:
    """The folder for files that the replicator's target reads later (`Tasks.folder`)."""
    return f"{root_of(url, replicator)}/target"


def file_word(text: str) -> str:
    """`text` as a part of a file name: other characters percent-encoded, at most 120 characters."""
    word = quote(text, safe="")
    return word if len(word) <= 120 else f"{word[:100]}~{zlib.crc32(text.encode()):08x}"
