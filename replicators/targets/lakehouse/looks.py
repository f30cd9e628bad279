"""Checks that the files in a lakehouse's settings exist and may be used. Makes and writes
nothing."""

from __future__ import annotations

import os
import stat

from replicators.connectors.looks import folder, reason, unusable
from replicators.connectors.problems.problem import Problem

__all__ = ["database", "folder"]

_SQLITE = b"SQLite format 3\x00"


def database(path: str) -> Problem | None:
    """The problem with a SQLite catalog's file, or with the folder in which it will be made."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        if os.path.islink(path):
            return unusable(path, "it is a link that leads nowhere")
        return folder(os.path.dirname(path))
    except OSError as err:
        return unusable(path, reason(err))
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "no regular file"
        return unusable(path, f"it is {kind}, not a SQLite database")
    if not os.access(path, os.R_OK | os.W_OK):
        return unusable(path, "this program may not write to it")
    if not os.access(os.path.dirname(path), os.W_OK | os.X_OK):
        return unusable(path, "this program may not write to its folder, as SQLite has to")
    with open(path, "rb") as file:
        head = file.read(len(_SQLITE))
    return unusable(path, "it is not a SQLite database") if head not in {b"", _SQLITE} else None
