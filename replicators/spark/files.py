"""The content of change files: by REST, or from where they lie."""

from __future__ import annotations

import posixpath
import zlib
from collections.abc import Iterator, Sequence
from http.client import HTTPException, HTTPResponse

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from replicators.spark import errors
from replicators.spark.rest import ChangeFile, Rest

_FOR_S3 = ("s3a://", "s3n://")


def tables(
    rest: Rest, files: Sequence[ChangeFile], *, is_direct: bool
) -> Iterator[tuple[ChangeFile, pa.Table]]:
    """Each file with its rows. One file at a time is in memory. `ChangesError`."""
    called = f"{rest.schema}.{rest.table}"
    found = _opened(files, called) if is_direct else _downloaded(rest, files, called)
    for file, data in found:
        if len(data) != file.size_bytes or zlib.crc32(data) != file.crc32:
            raise errors.damaged(called, file.first_sequence)
        yield file, pq.read_table(pa.BufferReader(data))


def _opened(files: Sequence[ChangeFile], table: str) -> Iterator[tuple[ChangeFile, pa.Buffer]]:
    for file in files:
        try:
            yield file, _content(file.path)
        except (OSError, pa.ArrowInvalid):
            raise errors.file_away(table, file.first_sequence) from None


def _content(path: str) -> pa.Buffer:
    """The bytes at a local path or in an object store. A file's name is taken as it is: only its
    folder is read as a URL."""
    folder, name = posixpath.split(path)
    if "://" not in folder:
        with pa.OSFile(path) as local:
            return local.read_buffer()
    for other in _FOR_S3:
        if folder.startswith(other):
            folder = "s3://" + folder[len(other) :]
    system, inner = fs.FileSystem.from_uri(folder)
    with system.open_input_file(f"{inner}/{name}") as stored:
        return stored.read_buffer()


def _downloaded(
    rest: Rest, files: Sequence[ChangeFile], table: str
) -> Iterator[tuple[ChangeFile, bytes]]:
    """The files from one answer. Where it breaks off, the rest is asked for once more."""
    rest_of, failed = tuple(files), -1
    while rest_of:
        done = 0
        try:
            with rest.content(rest_of) as answer:
                for file in rest_of:
                    yield file, _exactly(answer, file.size_bytes)
                    done += 1
            return
        except (OSError, HTTPException):
            at = rest_of[done].first_sequence
            if at == failed:
                raise errors.damaged(table, at) from None
            rest_of, failed = rest_of[done:], at


def _exactly(answer: HTTPResponse, size: int) -> bytes:
    """So many bytes of the answer. OSError where it ends before."""
    parts, left = [], size
    while left:
        part = answer.read(left)
        if not part:
            raise OSError("the answer ended early")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
