"""Starts runs as copies of one process that has imported what runs need, with its compiled loops.
Their memory is that process's until they write to it."""

from __future__ import annotations

import gc
import logging
import os
import pkgutil
import selectors
import socket
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from replicators.private import opened_privately, private_folder
from runners.engine.processes import LEASE, UNKNOWN, Adopted, Process, Spawn, started_at
from runners.engine.tasks.sharing import ways
from runners.engine.tasks.worker import load_all

logger = logging.getLogger(__name__)

SOCKET = "starter"
PATIENCE_SECONDS = 20.0
_ANSWER_SECONDS = 5.0
_SPAWN_SECONDS = 30.0
_TURN_SECONDS = 0.2
_MODULES = (
    "pyspark.sql.connect.session",
    "pyspark.sql.connect.dataframe",
    "pyspark.sql.connect.catalog",
    "grpc._channel",
    "pyspark.cloudpickle",
    "runners.engine.run",
    "runners.store.django",
)

Work = Callable[[str], None]


def begin(
    folder: Path, packages: Iterable[ModuleType], modules: Iterable[str], work: Work, close: int
) -> None:
    """Fork the starter. The caller must have no other thread yet. `packages`: the plugins that runs
    use; `modules`: what else they import; `work`: does a run to its end and exits; `close`: a file
    that only the caller may keep."""
    listener = ways.listening(folder, SOCKET)
    if os.fork():
        listener.close()
        return
    code = 1
    try:
        os.close(close)
        _load(packages, modules)
        _serve(listener, work)
    except Exception:
        logger.exception("The starter of runs has failed.")
    finally:
        os._exit(code)


def _load(packages: Iterable[ModuleType], modules: Iterable[str]) -> None:
    names = [*_MODULES, *modules]
    for package in packages:
        names += [m.name for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    load_all(names)
    gc.collect()
    gc.freeze()


def _serve(listener: socket.socket, work: Work) -> None:
    with selectors.DefaultSelector() as waiting:
        waiting.register(listener, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select():
                if key.data is None:
                    with suppress(OSError, ValueError, KeyError):
                        _begin(listener, waiting, work)
                else:
                    waiting.unregister(key.fd)
                    _end(key.fd, *key.data)


def _begin(listener: socket.socket, waiting: selectors.BaseSelector, work: Work) -> None:
    """Take one client: its run begins, and its connection stays until that ends."""
    connection, _ = listener.accept()
    try:
        connection.settimeout(_ANSWER_SECONDS)
        ways.send(connection, {})  # ready: who waited too long asks nothing
        asked = ways.receive(connection)
        pid = os.fork()
        if pid == 0:
            for key in tuple(waiting.get_map().values()):
                if key.data is not None:
                    os.close(key.fd)
                    key.data[1].close()
            waiting.close()
            listener.close()
            connection.close()
            _run(asked["run"], asked["lease"], asked["log"], work)
    except BaseException:
        connection.close()
        raise
    waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, connection))
    ways.send(connection, {"pid": pid})


def _end(watched: int, pid: int, connection: socket.socket) -> None:
    """A copy has ended: tell its supervisor how, where that still listens."""
    os.close(watched)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with connection, suppress(OSError):
        ways.send(connection, {"code": code})


def _run(run_id: str, lease: str, log: str, work: Work) -> None:
    """The copy: what `spawn_command` gives a process, and then the run."""
    try:
        os.setsid()
        with open(log, "ab", opener=opened_privately) as output, open(os.devnull, "rb") as nothing:
            for source, number in ((nothing, 0), (output, 1), (output, 2)):
                os.dup2(source.fileno(), number)
        os.environ[LEASE] = lease
        work(run_id)
    except BaseException:
        logger.exception("The run could not begin.")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


class Copy(Adopted):
    """A copy as its supervisor sees it. The starter tells its exit code."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        super().__init__(pid, started_at(pid))
        self._connection = connection
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit code, `UNKNOWN` where the starter ended too."""
        if self._code is None and super().poll() is not None:
            self._code = UNKNOWN
            with self._connection, suppress(OSError, ValueError, KeyError):
                self._connection.settimeout(_ANSWER_SECONDS)
                self._code = int(ways.receive(self._connection)["code"])
        return self._code


def _ready(folder: Path, until: float) -> socket.socket | None:
    """A connection to the starter once it takes runs; None where it is not there yet. It imports
    for some seconds at first, and compiles for a minute where nothing is compiled yet."""
    try:
        connection = ways.connected(folder, SOCKET)
    except OSError:
        return None
    try:
        connection.settimeout(max(_TURN_SECONDS, until - time.monotonic()))
        ways.receive(connection)
    except OSError:
        connection.close()
        return None
    return connection


def spawn_copies(logs: Path, base: str, otherwise: Spawn) -> Spawn:
    """A `Spawn` that asks this machine's starter. `otherwise` starts a process of its own where
    there is no starter in time."""

    def spawn(run_id: str, lease: str) -> Process:
        private_folder(logs)
        folder = ways.place_of(base)
        asked = {"run": run_id, "lease": lease, "log": str(logs.absolute() / f"{run_id}.log")}
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            connection = _ready(folder, until)
            if connection is None:
                time.sleep(_TURN_SECONDS)
                continue
            try:
                connection.settimeout(_SPAWN_SECONDS)
                ways.send(connection, asked)
                return Copy(int(ways.receive(connection)["pid"]), connection)
            except BaseException:
                connection.close()
                raise
        return otherwise(run_id, lease)

    return spawn
