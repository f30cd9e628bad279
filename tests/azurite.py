"""Azurite, a server of the tests' own that speaks the protocol of Azure's blobs, in a process of
its own. It checks the account's key."""

from __future__ import annotations

import base64
import os
import secrets
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from azure.storage.blob import BlobServiceClient, generate_container_sas

from setup import steps

_UP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Azurite:
    """Where it listens, its account, and the account's one container."""

    endpoint: str
    key: str = field(repr=False)
    account: str = "lakeaccount"
    container: str = "lake"

    def sas(self, rights: str = "racwdl") -> str:
        """A token for the container, for an hour."""
        ends = datetime.now(UTC) + timedelta(hours=1)
        return str(generate_container_sas(
            self.account, self.container, account_key=self.key, permission=rights, expiry=ends,
        ))  # fmt: skip

    @property
    def host(self) -> str:
        """The server's name in the account's URLs."""
        return f"{self.account}.dfs.core.windows.net"

    def url(self, folder: str, container: str = "") -> str:
        """A folder in a container, as people write it."""
        return f"abfss://{container or self.container}@{self.host}/{folder}"


@contextmanager
def azurite() -> Iterator[Azurite]:
    """A server with one empty container. It is installed where it is missing."""
    command = steps.azure_emulator()
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    word = base64.b64encode(secrets.token_bytes(32)).decode()
    made = Azurite(f"http://127.0.0.1:{port}", word)
    around = {**os.environ, "AZURITE_ACCOUNTS": f"{made.account}:{made.key}"}
    options = [
        "--blobHost", "127.0.0.1", "--blobPort", str(port), "--skipApiVersionCheck",
        "--inMemoryPersistence", "--silent", "--disableTelemetry",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as home:
        process = subprocess.Popen([*command, *options], env=around, cwd=home,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        try:
            end = time.monotonic() + _UP_SECONDS
            while not _listens(port):
                assert process.poll() is None and time.monotonic() < end, "no Azurite"
                time.sleep(0.05)
            client = BlobServiceClient(f"{made.endpoint}/{made.account}", made.key)
            client.create_container(made.container)
            yield made
        finally:
            process.terminate()
            process.wait(20)


def _listens(port: int) -> bool:
    with closing(socket.socket()) as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
