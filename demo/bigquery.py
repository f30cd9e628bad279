"""A private BigQuery emulator (bqemulator, in an environment of its own), for the demo and the
tests. It has no quotas, checks no rights and bills nothing."""

from __future__ import annotations

import contextlib
import http.client
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from demo.embedded import EmbeddedServer
from demo.postgres import HOST, free_port

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = ROOT / "var" / "bqemulator"
MENDED = Path(__file__).with_name("bigquery_mended.py")
NOT_SET_UP = (
    "The BigQuery emulator is not set up here (var/bqemulator is missing).\n"
    "`make demo DEMO_TARGET=bigquery` installs it; so does `make setup-tests`."
)


class BigQueryError(RuntimeError):
    """The emulator is not set up, or did not start. The text ends with its log."""


@dataclass
class EmbeddedBigQuery(EmbeddedServer):
    """One emulator, by REST. With a folder, its data and its port outlive the process.
    `environment` is added to that of the process."""

    environment: Mapping[str, str] = field(default_factory=dict)

    label = "bigquery"
    title = "The BigQuery emulator"
    start_seconds = 60.0
    error = BigQueryError

    @property
    def url(self) -> str:
        """The address of its REST interface."""
        return f"http://{HOST}:{self.port}"

    def start(self) -> Self:
        """Start the emulator and wait until it answers."""
        if not _python().exists():
            raise BigQueryError(NOT_SET_UP)
        return super().start()

    def _command(self) -> Sequence[str]:
        data = self.home / "data"
        data.mkdir(exist_ok=True)
        return [
            str(_python()), str(MENDED), "start", "--persistent", "--log-level", "warning",
            "--rest-port", str(self.port), "--grpc-port", str(free_port()),
            "--data-dir", str(data),
        ]  # fmt: skip

    def _environment(self) -> Mapping[str, str]:
        """DuckDB's extensions lie in the environment's own home: nothing is downloaded."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
        ours = {"HOME": str(ENVIRONMENT / "home"), "BQEMU_ENABLE_FORMAT_EXTENSIONS": "false"}
        return {**kept, **ours, **self.environment}

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=5)
        faults = (OSError, http.client.HTTPException)
        with contextlib.closing(connection), contextlib.suppress(*faults):
            connection.request("GET", "/")
            return connection.getresponse().status < 500
        return False


def _python() -> Path:
    return ENVIRONMENT / "bin" / "python"
