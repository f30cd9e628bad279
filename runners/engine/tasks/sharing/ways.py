"""The folder in which a machine's runs find its shared Spark: a Unix socket that only this user may
enter, and who serves it. A run says which replicator it is, and is told the server's address. The
connection then stays open, and tells each side that the other one lives."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from replicators.private import private_folder
from runners.engine.processes import HOSTNAME, is_alive, started_at

SOCKET, KEEPER, LOCK, LOG = "socket", "keeper.json", "lock", "keeper.log"
_LONGEST_LINE = 1 << 16


def place_of(base: str) -> Path:
    """This machine's folder below `base`; it is made where it is missing."""
    found = Path(base) / HOSTNAME
    private_folder(found)
    return found


@contextmanager
def _short(folder: Path, name: str) -> Iterator[str]:
    """The socket's address. A socket's path may have 107 bytes, and a folder's path is longer
    sometimes."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{number}/{name}"
    finally:
        os.close(number)


def listening(folder: Path, name: str = SOCKET) -> socket.socket:
    """A socket that takes clients. One that an ended process left is replaced."""
    (folder / name).unlink(missing_ok=True)
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        with _short(folder, name) as address:
            found.bind(address)
    finally:
        os.umask(before)
    found.listen(128)
    return found


def connected(folder: Path, name: str = SOCKET) -> socket.socket:
    """A connection to whoever listens. OSError where nobody does."""
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(folder, name) as address:
            found.connect(address)
    except OSError:
        found.close()
        raise
    return found


def send(connection: socket.socket, values: dict[str, Any]) -> None:
    """Send one message."""
    connection.sendall(json.dumps(values).encode() + b"\n")


def receive(connection: socket.socket) -> dict[str, Any]:
    """The next message; ConnectionError where the other side has gone. What follows it stays to be
    read."""
    read = b""
    while not read.endswith(b"\n"):
        waiting = connection.recv(4096, socket.MSG_PEEK)
        more = connection.recv(waiting.find(b"\n") + 1 or len(waiting)) if waiting else b""
        if not more or len(read) > _LONGEST_LINE:
            raise ConnectionError("The other side has gone.")
        read += more
    found: dict[str, Any] = json.loads(read)
    return found


def note_keeper(folder: Path) -> None:
    """Note that this process is the keeper."""
    mine = {"pid": os.getpid(), "started_at": started_at(os.getpid())}
    fresh = folder / f"{KEEPER}.new"
    fresh.write_text(json.dumps(mine))
    fresh.replace(folder / KEEPER)


def noted_keeper(folder: Path) -> tuple[int, float | None] | None:
    """The process that noted itself last, and when it began; it may have ended."""
    with suppress(OSError, ValueError, KeyError):
        noted = json.loads((folder / KEEPER).read_text())
        return int(noted["pid"]), noted["started_at"]
    return None


def has_keeper(folder: Path) -> bool:
    """Whether the noted keeper lives."""
    noted = noted_keeper(folder)
    return noted is not None and is_alive(*noted)
