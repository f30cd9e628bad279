"""Files by path or URL: the same few acts on a local folder and on an object store (s3, gs, abfs,
hdfs through pyarrow). Credentials are what each store's own tools read from the environment;
nothing is kept here. Knows no Spark: a session is handed in."""

from __future__ import annotations

import os
import posixpath
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.parse import urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from replicators.connectors.addresses import STORES

SIDE_BY_SIDE = 16


def is_url(path: str) -> bool:
    """Whether it lies in an object store."""
    return "://" in path and not path.startswith("file:")


def open_url(url: str) -> tuple[fs.FileSystem, str]:
    """The file system and the path in it of a folder or URL."""
    for other in ("s3a://", "s3n://"):
        if url.startswith(other):
            url = "s3://" + url[len(other) :]
    if "://" not in url and not url.startswith("file:"):
        return fs.LocalFileSystem(), url
    system, path = fs.FileSystem.from_uri(url)
    return system, path


@lru_cache(maxsize=64)
def _folder(url: str) -> tuple[fs.FileSystem, str]:
    return open_url(url)


def _place(path: str) -> tuple[fs.FileSystem, str]:
    """A file's name is taken as it is: only the folder before it is read as a URL."""
    folder, name = posixpath.split(path)
    system, inner = _folder(folder)
    return system, f"{inner}/{name}"


def sync_folder(folder: str) -> None:
    """Make renames and new names in a local folder durable; a store's are when they are seen."""
    if is_url(folder):
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read(path: str) -> pa.Buffer:
    """The file's bytes; OSError."""
    if not is_url(path):
        with pa.OSFile(path) as file:
            return file.read_buffer()
    system, inner = _place(path)
    with system.open_input_file(inner) as file:
        return file.read_buffer()


def write(path: str, data: Any, *, is_durable: bool = False) -> None:
    """A new file of these bytes, seen whole or not at all in a store. `is_durable`: on the disk
    when this returns, but for its name (`sync_folder`); a store's file always is. OSError."""
    if is_url(path):
        system, inner = _place(path)
        with system.open_output_stream(inner, compression=None) as out:
            out.write(data)
        return
    with open(path, "wb") as file:
        file.write(data)
        if is_durable:
            file.flush()
            os.fsync(file.fileno())


def send(local: str, path: str) -> None:
    """Copy a local file into a store, in one object that is seen when it is whole. OSError."""
    system, inner = _place(path)
    with open(local, "rb") as file, system.open_output_stream(inner, compression=None) as out:
        while block := file.read(4 << 20):
            out.write(block)


def listed(folder: str) -> Iterator[tuple[str, int]]:
    """Path and size in bytes of each file right in the folder; none where there is no such
    folder."""
    if is_url(folder):
        system, inner = _folder(folder)
        for info in system.get_file_info(fs.FileSelector(inner, allow_not_found=True)):
            if info.type == fs.FileType.File:
                yield f"{folder}/{info.base_name}", info.size
    elif os.path.isdir(folder):
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file():
                    yield entry.path, entry.stat().st_size


def remove(path: str) -> int:
    """Remove a file; its size in bytes, 0 where it was gone already."""
    with suppress(FileNotFoundError):
        if not is_url(path):
            size = os.stat(path).st_size
            os.unlink(path)
            return size
        system, inner = _place(path)
        info = system.get_file_info(inner)
        if info.type == fs.FileType.File:
            system.delete_file(inner)
            return int(info.size)
    return 0


def remove_all(paths: Iterable[str]) -> int:
    """Remove files, a store's side by side since each takes some round trips; the bytes that are
    free thereby."""
    found = list(dict.fromkeys(paths))  # one that is named twice is counted once
    if not any(is_url(p) for p in found):
        return sum(map(remove, found))
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return sum(pool.map(remove, found))


def remove_folder(url: str) -> None:
    """Remove a folder with everything in it; nothing happens where there is none."""
    system, path = open_url(url)
    if system.get_file_info(path).type == fs.FileType.Directory:
        system.delete_dir(path)


def make_folder(url: str) -> None:
    """Make a folder and those above it; nothing happens where it is there."""
    system, path = open_url(url)
    system.create_dir(path, recursive=True)


def can_be_opened(url: str) -> bool:
    """Whether it is a local path or the URL of a kind of store that is known here."""
    return urlparse(url).scheme in ("", "file", *STORES)


def read_table(path: str, **options: Any) -> pa.Table:
    """A Parquet file as a table; options of `pyarrow.parquet.read_table`. OSError."""
    return pq.read_table(path if not is_url(path) else pa.BufferReader(read(path)), **options)


def write_table(table: pa.Table, path: str, **options: Any) -> None:
    """A Parquet file of a table, not waited for on a local disk; options of
    `pyarrow.parquet.write_table`. OSError."""
    if not is_url(path):
        pq.write_table(table, path, **options)
        return
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    write(path, sink.getvalue())


def parquet_frame(spark: Any, paths: Sequence[str], schema: Any) -> Any:
    """A data frame over Parquet files, with the columns and types of `schema` (DDL or a
    StructType): by Spark's own reader from a folder; from a store in tasks that read as everything
    else here does, so that Spark needs no jars and no credentials."""
    if not any(is_url(p) for p in paths):
        return spark.read.schema(schema).parquet(*paths)
    table_schema = spark.createDataFrame([], schema).toArrow().schema
    listing = spark.range(0, len(paths), 1, len(paths))
    return listing.mapInArrow(_reading(tuple(paths), table_schema), schema)


def _reading(
    paths: tuple[str, ...], schema: pa.Schema
) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield from _fitted(read_table(paths[index]), schema).to_batches(1 << 16)

    return run


def _fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of `shape` in its order and types; NULL for one that the file lacks."""
    columns = [
        table.column(f.name).cast(f.type)
        if f.name in table.column_names
        else pa.nulls(table.num_rows, f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def publish(path: str, data: Any) -> None:
    """A file of these bytes that is seen whole or not at all, and durable with its name when this
    returns; one of the same name is replaced. OSError."""
    if is_url(path):
        write(path, data)
        return
    folder, name = posixpath.split(path)
    part = f"{folder}/.{name}.{uuid.uuid4().hex}.part"
    try:
        write(part, data, is_durable=True)
        os.replace(part, path)
    except BaseException:
        remove(part)
        raise
    sync_folder(folder)


def make_durable_folder(folder: str, top: str) -> None:
    """Make a folder below `top`, which is there, so that the names on the way are durable. Nothing
    is made in a store."""
    if is_url(folder) or os.path.isdir(folder):
        return
    missing = []
    while folder != top and not os.path.isdir(folder):
        missing.append(folder)
        folder = posixpath.dirname(folder)
    for made in reversed(missing):
        os.makedirs(made, exist_ok=True)
        sync_folder(posixpath.dirname(made))


def read_if_there(path: str) -> bytes | None:
    """The file's bytes; None where there is no such file. OSError."""
    try:
        return bytes(read(path))
    except FileNotFoundError:
        return None


def is_there(path: str) -> bool:
    """Whether there is such a file. OSError where a store does not answer."""
    if not is_url(path):
        return os.path.isfile(path)
    system, inner = _place(path)
    return bool(system.get_file_info(inner).type == fs.FileType.File)


def folders(folder: str) -> list[str]:
    """The names of the folders right in the folder, in order; none where there is no such
    folder."""
    system, inner = open_url(folder)
    found = system.get_file_info(fs.FileSelector(inner, allow_not_found=True))
    return sorted(i.base_name for i in found if i.type == fs.FileType.Directory)


def listed_below(folder: str) -> list[str]:
    """The paths of all files in the folder and below; none where there is no such folder."""
    system, inner = open_url(folder)
    found = system.get_file_info(fs.FileSelector(inner, allow_not_found=True, recursive=True))
    return [folder + i.path[len(inner) :] for i in found if i.type == fs.FileType.File]
