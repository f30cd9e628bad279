"""Checks folders and object stores that settings name: whether they exist, and whether they may be
used. It makes and writes nothing."""

from __future__ import annotations

import os
import stat

from pyarrow import fs

from replicators.connectors.files import open_url
from replicators.connectors.problems.problem import Problem, Severity


def store(url: str) -> None:
    """OSError where a store does not answer, or has no such bucket. It writes nothing, since an
    object that is written and removed leaves the mark of its folder behind. So only a run learns
    whether it may write."""
    system, path = open_url(url)
    if system.get_file_info(path).type == fs.FileType.NotFound:
        bucket = path.split("/")[0]
        if bucket and system.get_file_info(bucket).type == fs.FileType.NotFound:
            raise FileNotFoundError(bucket)


def folder(path: str) -> Problem | None:
    """What is wrong with a folder that holds a target, or will be made for it. It is an INFO where
    folders above it are missing too."""
    try:
        is_there = is_folder(path)
        above = path if is_there else _nearest(path)
        has_room = os.statvfs(above).f_bavail > 0
    except OSError as err:
        return unusable(path, reason(err))
    if not os.access(above, os.R_OK | os.W_OK | os.X_OK):
        right = "this program may not write to it"
        missing = f"it is not there, and this program may not make it in `{above}`"
        return unusable(path, right if is_there else missing)
    if not has_room:
        return Problem.of("target:storage-full")
    if not is_there and above != os.path.dirname(path):
        return Problem.of("target:folder-made", severity=Severity.INFO, path=path, above=above)
    return None


def is_folder(path: str) -> bool:
    """Whether the folder exists. NotADirectoryError where something else does."""
    try:
        found = stat.S_ISDIR(os.stat(path).st_mode)
    except FileNotFoundError:
        if os.path.islink(path):
            raise
        return False
    if not found:
        raise NotADirectoryError
    return True


def _nearest(path: str) -> str:
    """The nearest folder above that exists."""
    above = os.path.dirname(path)
    while not is_folder(above):
        above = os.path.dirname(above)
    return above


def reason(err: OSError) -> str:
    """Why a path can't be used, as the end of a sentence."""
    if isinstance(err, NotADirectoryError):
        return "it is a file, or lies below one"
    if isinstance(err, FileNotFoundError):
        return "it is, or lies below, a link that leads nowhere"
    if isinstance(err, PermissionError):
        return "this program may not look into a folder above it"
    return f"the system can't open it ({os.strerror(err.errno or 0).lower()})"


def unusable(path: str, why: str) -> Problem:
    """The problem of a path that can't be used."""
    return Problem.of("target:place-unusable", path=path, reason=why)
