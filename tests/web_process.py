"""A real web process of a test: gunicorn on a free port, ended with the test."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.postgres import free_port

ROOT = Path(__file__).resolve().parents[1]
DEADLINE_SECONDS = 60.0


@contextmanager
def web_process(environment: Mapping[str, str], path: str) -> Iterator[str]:
    """Its address, once `path` answers."""
    port = free_port()
    command = [
        sys.executable, "-m", "gunicorn", "replicators.project.wsgi", "--threads", "4",
        "--bind", f"127.0.0.1:{port}", "--log-level", "warning",
    ]  # fmt: skip
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    try:
        _wait(f"http://127.0.0.1:{port}{path}", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            continue
    pytest.fail(f"The web process did not answer (exit code {process.poll()}).")
