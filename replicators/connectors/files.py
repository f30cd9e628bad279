"""Files by path or URL: the same few actions on a local folder and on an object store (s3, gs,
abfs, hdfs through pyarrow). Each store's own tools read the credentials from the environment;
nothing is kept here. This module knows no Spark: its callers pass a session."""

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

from replicators.connectors.addresses import STORES, one_name_of_s3
from replicators.connectors.spark import Frame, Session

SIDE_BY_SIDE = 16


def is_url(path: str) -> bool:
    """Whether the path is in an object store."""
    return "://" in path and not path.startswith("file:")


def open_url(url: str) -> tuple[fs.FileSystem, str]:
    """The file system of a folder or URL, and the path in it."""
    url = one_name_of_s3(url)
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
    """Make renames and new names in a local folder durable. In a store a name is durable as soon as
    it is seen."""
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


def open_file(path: str) -> pa.NativeFile:
    """The file, opened for reading at any place; nothing of it is in memory yet. OSError."""
    if not is_url(path):
        return pa.OSFile(path)
    system, inner = _place(path)
    return system.open_input_file(inner)


def write(path: str, data: Any, *, is_durable: bool = False) -> None:
    """Write a new file of these bytes. In a store it is seen whole or not at all. `is_durable`:
    when this returns, the bytes are on the disk, but not yet the name (`sync_folder`); a store's
    file always is durable. OSError."""
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
    """Copy a local file into a store, as one object that is seen only when it is whole. OSError."""
    system, inner = _place(path)
    with open(local, "rb") as file, system.open_output_stream(inner, compression=None) as out:
        while block := file.read(4 << 20):
            out.write(block)


def listed(folder: str) -> Iterator[tuple[str, int]]:
    """Path and size in bytes of each file directly in the folder; none where the folder does not
    exist."""
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
    """Remove a file. Returns its size in bytes, 0 where it did not exist."""
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
    """Remove files, and return the bytes freed. A store's files are removed side by side, since
    each takes some round trips."""
    found = list(dict.fromkeys(paths))  # a path that is given twice is counted once
    if not any(is_url(p) for p in found):
        return sum(map(remove, found))
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return sum(pool.map(remove, found))


def remove_folder(url: str) -> None:
    """Remove a folder with everything in it; nothing where it does not exist."""
    system, path = open_url(url)
    if system.get_file_info(path).type == fs.FileType.Directory:
        system.delete_dir(path)


def make_folder(url: str) -> None:
    """Make a folder and those above it; nothing where it exists."""
    system, path = open_url(url)
    system.create_dir(path, recursive=True)


def has_folder(url: str) -> bool:
    """Whether the folder exists; in a store, whether it has anything."""
    system, path = open_url(url)
    return bool(system.get_file_info(path).type == fs.FileType.Directory)


def can_be_opened(url: str) -> bool:
    """Whether this is a local path, or the URL of a known kind of store."""
    return urlparse(url).scheme in ("", "file", *STORES)


def read_table(path: str, **options: Any) -> pa.Table:
    """A Parquet file as a table; options of `pyarrow.parquet.read_table`. OSError."""
    return pq.read_table(path if not is_url(path) else pa.BufferReader(read(path)), **options)


def write_table(table: pa.Table, path: str, **options: Any) -> None:
    """Write a table as a Parquet file; on a local disk it is not yet durable. Options of
    `pyarrow.parquet.write_table`. OSError."""
    if not is_url(path):
        pq.write_table(table, path, **options)
        return
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    write(path, sink.getvalue())


def parquet_frame(spark: Session, paths: Sequence[str], schema: Any) -> Frame:
    """A data frame over Parquet files, with the columns and types of `schema` (DDL or a
    StructType). Spark's own reader reads files of a folder. Files of a store are read in tasks, as
    everywhere in this module, so that Spark needs no jars and no credentials."""
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
    """The columns of `schema` in its order and types; NULL for a column that the file lacks."""
    columns = [
        table.column(f.name).cast(f.type)
        if f.name in table.column_names
        else pa.nulls(table.num_rows, f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def publish(path: str, data: Any) -> None:
    """Write a file of these bytes, and replace one of the same name. It is seen whole or not at
    all. It is durable, with its name, when this returns. OSError."""
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
    """Make a folder below `top`, which exists, so that all names between them are durable. In a
    store nothing is made."""
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
    """The file's bytes; None where the file does not exist. OSError."""
    try:
        return bytes(read(path))
    except FileNotFoundError:
        return None


def is_there(path: str) -> bool:
    """Whether the file exists. OSError where a store does not answer."""
    if not is_url(path):
        return os.path.isfile(path)
    system, inner = _place(path)
    return bool(system.get_file_info(inner).type == fs.FileType.File)


def folders(folder: str) -> list[str]:
    """The names of the folders directly in the folder, in order; none where the folder does not
    exist."""
    system, inner = open_url(folder)
    found = system.get_file_info(fs.FileSelector(inner, allow_not_found=True))
    return sorted(i.base_name for i in found if i.type == fs.FileType.Directory)


def listed_below(folder: str) -> list[str]:
    """The paths of all files in the folder and below; none where the folder does not exist."""
    system, inner = open_url(folder)
    found = system.get_file_info(fs.FileSelector(inner, allow_not_found=True, recursive=True))
    return [folder + i.path[len(inner) :] for i in found if i.type == fs.FileType.File]
