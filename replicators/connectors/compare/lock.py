"""One comparison of a data set at a time. The lock is the operating system's: it ends with the
process that holds it, however that ends, so it needs no expiry."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from replicators.connectors import files
from replicators.connectors.compare.config import CompareConfig
from replicators.connectors.problems.errors import ReplicationError


def lock_path(config: CompareConfig) -> str:
    """The file that is locked: beside the current data set, or in the catalog's warehouse. Empty
    where neither is a folder of this machine."""
    place, warehouse = config.current, config.catalog.warehouse.removeprefix("file://")
    if place.path and not files.is_url(place.path):
        folder, name = os.path.split(place.path.rstrip("/"))
        return os.path.join(folder, f".{name}.lock")
    if not place.path and warehouse.startswith("/"):
        return os.path.join(warehouse, f".{place.table}.lock")
    return ""


@contextmanager
def locked(config: CompareConfig) -> Iterator[None]:
    """Hold the lock of the current data set. `compare:busy` where another process has it."""
    path = lock_path(config)
    if not path:
        yield
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            owner = os.read(held, 1000).decode("utf-8", "replace")
            raise _busy(config, owner) from err
        os.ftruncate(held, 0)
        os.pwrite(held, _owner().encode(), 0)
        yield
    finally:
        os.close(held)


def _owner() -> str:
    at = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
    return json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": at})


def _busy(config: CompareConfig, text: str) -> ReplicationError:
    """The error with the owner that the file names; unknown where it was just taken."""
    try:
        found = json.loads(text)
    except ValueError:
        found = {}
    process, host, since = (found.get(n, "unknown") for n in ("process", "host", "since"))
    return ReplicationError(
        "compare:busy", place=config.current, process=process, host=host, since=since
    )
