"""Files and folders of the program that only its own user may read. What exists already keeps its
permissions."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def private_folder(path: Path) -> None:
    """Make the folder (0700) and whatever is missing above it."""
    missing = [p for p in (path, *path.parents) if not p.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)


def private_file(path: Path) -> None:
    """Make the file (0600), empty. It does nothing where that fails: whoever opens the file reports
    it."""
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def opened_privately(path: str, flags: int) -> int:
    """An `opener` for `open`: a new file is made with 0600."""
    return os.open(path, flags, 0o600)
