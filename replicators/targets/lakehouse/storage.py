"""The warehouse's storage seen without Spark: is it there, can it be written, remove a folder. Reads no tables."""

from __future__ import annotations

import uuid

from pyarrow import fs

from replicators.connectors.files import make_folder, open_url, remove_folder

__all__ = ["has_folder", "keep_only", "make_folder", "open_url", "probe", "remove_folder"]


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


def folders(url: str) -> list[str]:
    """The names of the folders right in the folder; none where there is no such folder."""
    system, path = open_url(url)
    found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
    return sorted(i.base_name for i in found if i.type == fs.FileType.Directory)


def keep_only(url: str, names: set[str]) -> None:
    """Remove the folder's files that are not in `names`."""
    system, path = open_url(url)
    for info in system.get_file_info(fs.FileSelector(path)):
        if info.base_name not in names:
            system.delete_file(info.path)
