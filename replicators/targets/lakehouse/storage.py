"""The warehouse's storage seen without Spark: is it there, can it be written, remove a folder. Reads no tables."""

from __future__ import annotations

import uuid

from pyarrow import fs


def open_url(url: str) -> tuple[fs.FileSystem, str]:
    """The file system and the path in it of a folder or URL."""
    for other in ("s3a://", "s3n://"):
        if url.startswith(other):
            url = "s3://" + url[len(other) :]
    if "://" not in url and not url.startswith("file:"):
        return fs.LocalFileSystem(), url
    system, path = fs.FileSystem.from_uri(url)
    return system, path


def probe(url: str) -> None:
    """Write and remove a small file; OSError where that can't be done."""
    system, path = open_url(url)
    system.create_dir(path, recursive=True)
    name = f"{path}/.replicator-{uuid.uuid4().hex}"
    with system.open_output_stream(name) as out:
        out.write(b"probe")
    system.delete_file(name)


def has_folder(url: str) -> bool:
    """Whether there is something under the folder."""
    system, path = open_url(url)
    return bool(system.get_file_info(path).type == fs.FileType.Directory)


def remove_folder(url: str) -> None:
    """Remove a folder with everything in it; nothing happens where there is none."""
    system, path = open_url(url)
    if system.get_file_info(path).type == fs.FileType.Directory:
        system.delete_dir(path)


def make_folder(url: str) -> None:
    """Make a folder and those above it; nothing happens where it is there."""
    system, path = open_url(url)
    system.create_dir(path, recursive=True)


def keep_only(url: str, names: set[str]) -> None:
    """Remove the folder's files that are not in `names`."""
    system, path = open_url(url)
    for info in system.get_file_info(fs.FileSelector(path)):
        if info.base_name not in names:
            system.delete_file(info.path)
