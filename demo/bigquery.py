"""A private BigQuery emulator (bqemulator, in an environment of its own), for the demo and the
tests. It has no quotas, checks no rights and bills nothing."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from demo.postgres import HOST, free_port

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = ROOT / "var" / "bqemulator"
MENDED = Path(__file__).with_name("bigquery_mended.py")
START_SECONDS = 60.0
STOP_SECONDS = 10.0
NOT_SET_UP = (
    "The BigQuery emulator is not set up here (var/bqemulator is missing).\n"
    "`make demo DEMO_TARGET=bigquery` installs it; so does `make setup-tests`."
)


class BigQueryError(RuntimeError):
    """The emulator is not set up, or did not start. The text ends with its log."""


@dataclass
class EmbeddedBigQuery:
    """One emulator on 127.0.0.1, by REST. With a folder, its data and its port outlive the process;
    without one it uses a new folder, which `close` removes. `environment` is added to that of the
    process."""

    folder: Path | None = None
    port: int = 0
    dies_with_parent: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._temporary = self.folder is None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def home(self) -> Path:
        """This emulator's folder. It is made at the first call."""
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="replicators-bigquery-"))
        return self.folder

    @property
    def url(self) -> str:
        """The address of its REST interface."""
        return f"http://{HOST}:{self.port}"

    @property
    def pid(self) -> int | None:
        """The emulator's pid; None if it does not run."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def start(self) -> Self:
        """Start the emulator and wait until it answers."""
        python = ENVIRONMENT / "bin" / "python"
        if not python.exists():
            raise BigQueryError(NOT_SET_UP)
        data = self.home / "data"
        data.mkdir(parents=True, exist_ok=True)
        for _ in range(3):
            self.port = self.port or free_port()
            command = [str(python), str(MENDED), "start", "--persistent", "--log-level", "warning"]
            command += ["--rest-port", str(self.port), "--grpc-port", str(free_port())]
            command += ["--data-dir", str(data)]
            if self.dies_with_parent:
                command = ["setpriv", "--pdeathsig", "TERM", *command]
            with (self.home / "bigquery.log").open("ab") as log:
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
        raise BigQueryError(f"The BigQuery emulator did not start.\n{self._log_tail()}")

    def stop(self) -> None:
        """Stop the emulator cleanly; after ten seconds, kill it with SIGKILL."""
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
        """Kill the emulator with SIGKILL."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def restart(self) -> None:
        """Stop the emulator and start it on the same port with the same data."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop the emulator. Remove its folder if it is temporary."""
        self.stop()
        if self._temporary and self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _environment(self) -> dict[str, str]:
        """DuckDB's extensions lie in the environment's own home: nothing is downloaded."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
        ours = {"HOME": str(ENVIRONMENT / "home"), "BQEMU_ENABLE_FORMAT_EXTENSIONS": "false"}
        return {**kept, **ours, **self.environment}

    def _wait(self) -> bool:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.pid is not None:
            if self._answers():
                return True
            time.sleep(0.05)
        self.kill()
        return False

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=5)
        faults = (OSError, http.client.HTTPException)
        with contextlib.closing(connection), contextlib.suppress(*faults):
            connection.request("GET", "/")
            return connection.getresponse().status < 500
        return False

    def _log_tail(self) -> str:
        with contextlib.suppress(OSError):
            path = self.home / "bigquery.log"
            return "\n".join(path.read_text(errors="replace").splitlines()[-20:])
        return ""
