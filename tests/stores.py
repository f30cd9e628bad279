"""An S3 server of the tests' own, in a process of its own; the change log's files go there as to a
real one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

_UP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Where it listens, and what a process needs in its environment to reach it."""

    endpoint: str
    bucket: str = "logs"

    @property
    def url(self) -> str:
        """A folder in its bucket."""
        return f"s3://{self.bucket}/change-log"

    @property
    def environment(self) -> dict[str, str]:
        """As the SDKs read it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "tester",
            "AWS_SECRET_ACCESS_KEY": "not-a-secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """A server with one empty bucket."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = ObjectStore(f"http://127.0.0.1:{port}")
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(
        command, env={**os.environ, **store.environment},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        end = time.monotonic() + _UP_SECONDS
        while not _answers(f"{store.endpoint}/moto-api/data.json"):
            assert process.poll() is None and time.monotonic() < end, "no S3 server"
            time.sleep(0.05)
        made = urllib.request.Request(f"{store.endpoint}/{store.bucket}", method="PUT")
        urllib.request.urlopen(made, timeout=10).close()
        yield store
    finally:
        process.terminate()
        process.wait(20)
