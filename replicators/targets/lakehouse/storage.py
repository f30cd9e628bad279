"""The warehouse's storage without Spark: check, list and remove folders. Reads no tables."""

from __future__ import annotations

from pyarrow import fs

from replicators.connectors.files import has_folder, make_folder, open_url, remove_folder
from replicators.connectors.looks import store as look

__all__ = ["has_folder", "keep_only", "look", "make_folder", "open_url", "remove_folder"]


def folders(url: str) -> list[str]:
    """The names of the folders directly in this folder; empty if it does not exist."""
    system, path = open_url(url)
    found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
    return sorted(i.base_name for i in found if i.type == fs.FileType.Directory)


def keep_only(url: str, names: set[str]) -> None:
    """Remove the folder's files that are not in `names`."""
    system, path = open_url(url)
    for info in system.get_file_info(fs.FileSelector(path)):
        if info.base_name not in names:
            system.delete_file(info.path)
