"""Looks at the folders and files that a lakehouse's settings name: are they there, may they be used? Makes and writes nothing."""

from __future__ import annotations

import os
import stat

from replicators.connectors.problems.problem import Problem, Severity

_SQLITE = b"SQLite format 3\x00"


def folder(path: str) -> Problem | None:
    """What is wrong with a folder that is to hold tables, or will be made for them; with INFO where more than itself is missing."""
    try:
        is_there = _is_folder(path)
        above = path if is_there else _nearest(path)
        has_room = os.statvfs(above).f_bavail > 0
    except OSError as err:
        return _unusable(path, _reason(err))
    if not os.access(above, os.R_OK | os.W_OK | os.X_OK):
        right = "this program may not write to it"
        missing = f"it is not there, and this program may not make it in `{above}`"
        return _unusable(path, right if is_there else missing)
    if not has_room:
        return Problem.of("target:storage-full")
    if not is_there and above != os.path.dirname(path):
        return Problem.of("target:folder-made", severity=Severity.INFO, path=path, above=above)
    return None


def database(path: str) -> Problem | None:
    """What is wrong with the file of a SQLite catalog, or with the folder in which it will be made."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        if os.path.islink(path):
            return _unusable(path, "it is a link that leads nowhere")
        return folder(os.path.dirname(path))
    except OSError as err:
        return _unusable(path, _reason(err))
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "no regular file"
        return _unusable(path, f"it is {kind}, not a SQLite database")
    if not os.access(path, os.R_OK | os.W_OK):
        return _unusable(path, "this program may not write to it")
    if not os.access(os.path.dirname(path), os.W_OK | os.X_OK):
        return _unusable(path, "this program may not write to its folder, as SQLite has to")
    with open(path, "rb") as file:
        head = file.read(len(_SQLITE))
    return _unusable(path, "it is not a SQLite database") if head not in {b"", _SQLITE} else None


def _is_folder(path: str) -> bool:
    """NotADirectoryError where something else is there."""
    try:
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except FileNotFoundError:
        if os.path.islink(path):
            raise
        return False
    if not is_folder:
        raise NotADirectoryError
    return True


def _nearest(path: str) -> str:
    """The nearest folder above that is there."""
    above = os.path.dirname(path)
    while not _is_folder(above):
        above = os.path.dirname(above)
    return above


def _reason(err: OSError) -> str:
    if isinstance(err, NotADirectoryError):
        return "it is a file, or lies below one"
    if isinstance(err, FileNotFoundError):
        return "it is, or lies below, a link that leads nowhere"
    if isinstance(err, PermissionError):
        return "this program may not look into a folder above it"
    return f"the system can't open it ({os.strerror(err.errno or 0).lower()})"


def _unusable(path: str, reason: str) -> Problem:
    return Problem.of("target:place-unusable", path=path, reason=reason)
