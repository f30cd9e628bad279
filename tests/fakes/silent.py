"""Servers that sign anybody in and never answer again: as PostgreSQL and as MySQL speak."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Self

_SSL_REQUEST = 80877103


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def _packet(number: int, body: bytes) -> bytes:
    return struct.pack("<I", len(body))[:3] + bytes([number]) + body


def _postgresql(client: socket.socket) -> None:
    """Up to ReadyForQuery."""
    while True:
        (size,) = struct.unpack("!I", client.recv(4, socket.MSG_WAITALL))
        body = client.recv(size - 4, socket.MSG_WAITALL)
        if struct.unpack("!I", body[:4])[0] != _SSL_REQUEST:
            break
        client.sendall(b"N")
    reported = b"".join(
        _message(b"S", name + b"\0" + value + b"\0")
        for name, value in ((b"server_version", b"17.0"), (b"client_encoding", b"UTF8"))
    )
    client.sendall(
        _message(b"R", struct.pack("!I", 0))
        + reported
        + _message(b"K", struct.pack("!II", 1, 2))
        + _message(b"Z", b"I")
    )


def _mysql(client: socket.socket) -> None:
    """Up to the OK that follows the user's name."""
    hello = (
        b"\x0a8.0.40\0" + struct.pack("<I", 1) + b"a" * 8 + b"\0" + b"\xff\xf7\x2d\x02\x00\xff\x81"
        + bytes([21]) + b"\0" * 10 + b"b" * 12 + b"\0" + b"mysql_native_password\0"
    )  # fmt: skip
    client.sendall(_packet(0, hello))
    head = client.recv(4, socket.MSG_WAITALL)
    client.recv(int.from_bytes(head[:3], "little"), socket.MSG_WAITALL)
    client.sendall(_packet(2, b"\x00\x00\x00\x02\x00\x00\x00"))


class SilentServer:
    """Listens on `port` of this machine; `asked` counts the connections that it left without an
    answer."""

    def __init__(self, sign_in: Callable[[socket.socket], None]) -> None:
        self._sign_in = sign_in
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = int(self._listener.getsockname()[1])
        self.asked = 0
        self.gone = threading.Semaphore(0)

    @classmethod
    def postgresql(cls) -> Self:
        return cls(_postgresql)

    @classmethod
    def mysql(cls) -> Self:
        return cls(_mysql)

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        """Sign in, then only listen, until the client is gone."""
        with contextlib.suppress(OSError, struct.error), client:
            self._sign_in(client)
            self.asked += 1
            while client.recv(65536):
                pass
        self.gone.release()
