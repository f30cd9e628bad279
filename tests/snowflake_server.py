"""A private Snowflake emulator (fakesnow, in an environment of its own), for the tests. It checks
no rights, bills nothing, and knows no warehouses."""

from __future__ import annotations

import contextlib
import http.client
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from demo.embedded import EmbeddedServer
from demo.postgres import HOST

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / "var" / "fakesnow" / "bin" / "python"
MENDED = Path(__file__).with_name("fakesnow_mended.py")


class SnowflakeServerError(RuntimeError):
    """The emulator is not set up, or did not start. The text ends with its log."""


@dataclass
class SnowflakeServer(EmbeddedServer):
    """One emulator. Its data is gone when it ends."""

    label = "fakesnow"
    title = "The Snowflake emulator"
    start_seconds = 60.0
    error = SnowflakeServerError

    @property
    def url(self) -> str:
        """Its address, as the target's params have it."""
        return f"http://{HOST}:{self.port}"

    def start(self) -> Self:
        """Start the emulator and wait until it answers."""
        if not PYTHON.exists():
            raise SnowflakeServerError(f"{PYTHON} is missing: `make setup-tests` installs it.")
        return super().start()

    def _command(self) -> Sequence[str]:
        return [str(PYTHON), str(MENDED), HOST, str(self.port)]

    def _environment(self) -> Mapping[str, str]:
        return {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=5)
        faults = (OSError, http.client.HTTPException)
        with contextlib.closing(connection), contextlib.suppress(*faults):
            connection.request("GET", "/")
            return connection.getresponse().status == http.client.NOT_FOUND
        return False
