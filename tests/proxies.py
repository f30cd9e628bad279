"""A TCP proxy in front of a test server, which cuts its connections where a test says."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from typing import Any, Self

BLOCK = 4096


class CuttingProxy:
    """Forwards to `port` on this machine. `cut_after` lets so many more bytes pass from the server,
    whichever connection they are of, then cuts that connection within whatever it was sending;
    `cuts` counts these. `stall` holds back all that the server sends; `damage` changes a byte of
    it."""

    def __init__(self, port: int) -> None:
        self._to = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._left: int | None = None
        self._marker = b""
        self._is_stalled = False
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.cuts = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._listener.close()

    def lead_to(self, port: int) -> None:
        """New connections go there from now on."""
        self._to = ("127.0.0.1", port)

    def cut_after(self, size: int) -> None:
        """The connection that brings the server's next `size` bytes to an end is cut there."""
        with self._lock:
            self._left = size

    def stall(self) -> None:
        """Nothing comes from the server any more, though every connection stays."""
        self._is_stalled = True

    def damage(self, marker: bytes) -> None:
        """The last byte of the first `marker` that the server sends arrives as another one."""
        with self._lock:
            self._marker = marker

    def _accept(self) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(OSError):
                client, _ = self._listener.accept()
                threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, socket.create_connection(self._to) as server:
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            chosen: Any = selectors.DefaultSelector()
            chosen.register(client, selectors.EVENT_READ, server)
            chosen.register(server, selectors.EVENT_READ, client)
            while not self._stop.is_set():
                for key, _ in chosen.select(0.2):
                    if self._is_stalled and key.fileobj is server:
                        self._stop.wait(0.05)
                        continue
                    data = key.fileobj.recv(BLOCK)
                    if not data:
                        return
                    is_said = key.fileobj is client
                    allowed = len(data) if is_said else self._allowed(len(data))
                    data = data if is_said else self._damaged(data)
                    key.data.sendall(data[:allowed])
                    if allowed < len(data):
                        return

    def _damaged(self, data: bytes) -> bytes:
        with self._lock:
            at = data.find(self._marker) + len(self._marker) - 1
            if not self._marker or at < len(self._marker) - 1:
                return data
            self._marker = b""
            return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    def _allowed(self, size: int) -> int:
        """How many of so many bytes may pass."""
        with self._lock:
            if self._left is None:
                return size
            self._left -= size
            if self._left >= 0:
                return size
            allowed, self._left = size + self._left, None
            self.cuts += 1
            return allowed
