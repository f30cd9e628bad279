"""The Spark that runs of a machine share, started as their supervisor starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil

from runners.engine.processes import end_session
from runners.engine.tasks.sharing import ways
from tests.harness import ROOT, until


class SharedServer:
    """A keeper of the test's own, which runs find by `environment`."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.environment = {"REPLICATOR_SPARK_SHARED_DIR": str(base), "REPLICATOR_SPARK": "shared"}
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def folder(self) -> Path:
        """Where its socket lies."""
        return ways.place_of(str(self.base))

    def start(self, environment: dict[str, str]) -> None:
        """Start it; returns at once."""
        with open(self.base / "output.log", "ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "share_spark"],
                cwd=ROOT, env={**os.environ, **environment, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def jvm(self) -> psutil.Process:
        """Its JVM."""
        assert self.process is not None
        children = psutil.Process(self.process.pid).children(recursive=True)
        (found,) = [p for p in children if p.name() == "java"]
        return found

    def kill_jvm(self) -> int:
        """SIGKILL to its JVM: the keeper's exit code."""
        self.jvm().kill()
        assert self.process is not None
        return self.process.wait(30)

    def until_ready(self) -> None:
        """Wait until it takes clients."""
        until((self.folder / ways.SOCKET).exists, lambda: self.output(), 120)

    def output(self) -> str:
        """What it wrote."""
        return (self.base / "output.log").read_text(errors="replace")[-6000:]

    def close(self) -> None:
        """End all of it."""
        if self.process is not None:
            end_session(self.process.pid)
            self.process.wait(10)
