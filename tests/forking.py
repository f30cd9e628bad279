"""Processes of runs as copies of one process that has imported what runs need. A start costs half a
second of CPU instead of four. The product does the same for runs that share a Spark
(`runners.supervision.starter`).

`python -m tests.forking FD` is the process that is copied. Each message on its socket asks for a
copy, and brings the writing end of a pipe, into which the copy's exit code is written."""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import random
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 1 << 20
MODULES = (
    "django.core.management",
    "django.db.models",
    "pyspark.sql",
    "rest_framework",
    "runners.engine.run",
    "runners.engine.tasks.local",
    "tests.local.duck",
    "tests.local.target",
)
PLUGINS = ("replicators.sources", "replicators.targets")


class Copy:
    """A process that was forked for us: `subprocess.Popen`, as far as tests use it."""

    def __init__(self, pid: int, ended: int) -> None:
        self.pid = pid
        self._ended = ended
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it lives."""
        return self._look(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code. `subprocess.TimeoutExpired` at the deadline."""
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"run {self.pid}", timeout or 0.0)
        return code

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def send_signal(self, number: int) -> None:
        """A signal, if it lives."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def _look(self, timeout: float | None) -> int | None:
        if self._code is None:
            with selectors.DefaultSelector() as ready:
                ready.register(self._ended, selectors.EVENT_READ)
                if not ready.select(timeout):
                    return None
            said = os.read(self._ended, 64)
            os.close(self._ended)
            self._code = int(said) if said else -signal.SIGKILL
        return self._code


class Forks:
    """The process that is copied, as its owner sees it."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
        with theirs:
            subprocess.Popen(
                [sys.executable, "-m", "tests.forking", str(theirs.fileno())],
                cwd=ROOT, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
            )  # fmt: skip
        atexit.register(self._socket.close)

    def start(self, program: Sequence[str], environment: Mapping[str, str], output: Path) -> Copy:
        """Run `python PROGRAM...` in a session of its own, with its output in a file."""
        output.touch()
        asked = {"program": list(program), "env": dict(environment), "output": str(output)}
        reads, writes = os.pipe()
        socket.send_fds(self._socket, [json.dumps(asked).encode()], [writes])
        os.close(writes)
        return Copy(int(self._socket.recv(64)), reads)


@cache
def forks() -> Forks:
    """This test process's own."""
    return Forks()


def serve(number: int) -> None:
    """Import everything, and fork for each message until the owner has ended."""
    _load()
    listener = socket.socket(fileno=number)
    with selectors.DefaultSelector() as ready:
        ready.register(listener, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fileobj is not listener:
                    ready.unregister(key.fileobj)
                    _told(key.fd, *key.data)
                    continue
                said, ends, _, _ = socket.recv_fds(listener, LONGEST, 1)
                if not said:
                    return
                pid = os.fork()
                if pid == 0:
                    _become(json.loads(said))
                ready.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, ends[0]))
                listener.send(str(pid).encode())


def _load() -> None:
    from runners.engine.tasks.worker import load_all

    names = list(MODULES)
    for plugin in PLUGINS:
        found = pkgutil.walk_packages([str(ROOT / plugin.replace(".", "/"))], f"{plugin}.")
        names += [m.name for m in found]
    load_all(names)
    gc.collect()
    gc.freeze()


def _told(pidfd: int, pid: int, end: int) -> None:
    os.close(pidfd)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(BrokenPipeError):
        os.write(end, str(code).encode())
    os.close(end)


def _become(asked: dict[str, Any]) -> None:
    """What `subprocess` and Python's own start do."""
    code = 1
    try:
        os.setsid()
        with open(asked["output"], "ab") as output, open(os.devnull, "rb") as nothing:
            for source, number in ((nothing, 0), (output, 1), (output, 2)):
                os.dup2(source.fileno(), number)
        os.closerange(3, 256)
        os.environ.clear()
        os.environ.update(asked["env"])
        random.seed()
        first, *rest = asked["program"]
        if first == "-m":
            sys.argv = rest
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv = [first, *rest]
            runpy.run_path(first, run_name="__main__")
        code = 0
    except SystemExit as err:
        code = err.code if isinstance(err.code, int) else int(err.code is not None)
    except BaseException:  # noqa: BLE001 - printed, as at the end of any program
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
