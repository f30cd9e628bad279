"""A run's own scratch folder for Spark. If a run is killed, the next one on that machine finds its
folder and removes it."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from runners.engine.processes import HOSTNAME, is_alive, started_at

FOLDER = "replicator-spark"


def scratch_dir(base: str) -> str:
    """A new folder below `base` (empty: the system's temporary folder), named by this machine and
    process. Folders of processes of this machine that have ended are removed."""
    root = Path(base or tempfile.gettempdir()) / FOLDER
    with suppress(OSError):
        for path in root.glob(f"{HOSTNAME}@*"):
            if not _is_used(path):
                shutil.rmtree(path, ignore_errors=True)
    own = root / f"{HOSTNAME}@{os.getpid()}@{started_at(os.getpid())}"
    own.mkdir(parents=True, exist_ok=True)
    return str(own)


def _is_used(path: Path) -> bool:
    try:
        _, pid, start = path.name.split("@")
        return is_alive(int(pid), float(start))
    except ValueError:
        return True
