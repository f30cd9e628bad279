"""A private server in a process and a folder of its own: what the broker and the BigQuery emulator
have in common."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from demo.postgres import free_port

STOP_SECONDS = 10.0


@dataclass
class EmbeddedServer(ABC):
    """One server on 127.0.0.1. Without `folder` it uses a new folder, which `close` removes.

    `label` names it in folders and logs. `error` is raised where it does not answer within
    `start_seconds`.
    """

    folder: Path | None = None
    port: int = 0
    dies_with_parent: bool = True

    label: ClassVar[str]
    title: ClassVar[str]
    start_seconds: ClassVar[float]
    error: ClassVar[type[RuntimeError]]

    def __post_init__(self) -> None:
        self._temporary = self.folder is None
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def _command(self) -> Sequence[str]:
        """The command that serves `port` from `home`."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether the server serves."""

    def _environment(self) -> Mapping[str, str] | None:
        """The process's environment; None: this program's."""
        return None

    @property
    def home(self) -> Path:
        """This server's folder. It is made at the first call."""
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix=f"replicators-{self.label}-"))
        return self.folder

    @property
    def pid(self) -> int | None:
        """The server's pid; None if it does not run."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    @property
    def _log(self) -> Path:
        return self.home / f"{self.label}.log"

    def start(self) -> Self:
        """Start the server and wait until it answers."""
        self.home.mkdir(parents=True, exist_ok=True)
        for _ in range(3):
            self.port = self.port or free_port()
            command = list(self._command())
            if self.dies_with_parent:
                command = ["setpriv", "--pdeathsig", "TERM", *command]
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self.home,
                    env=self._environment(),
                    start_new_session=True,
                )
            if self._wait():
                return self
            self.port = 0
        raise self.error(f"{self.title} did not start.\n{self._log_tail()}")

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
        """Stop the server and start it on the same port."""
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

    def _wait(self) -> bool:
        end = time.monotonic() + self.start_seconds
        while time.monotonic() < end and self.pid is not None:
            if self._answers():
                return True
            time.sleep(0.02)
        self.kill()
        return False

    def _log_tail(self) -> str:
        with contextlib.suppress(OSError):
            return "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])
        return ""
