"""How the log's reader waits for bytes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from replicators.sources.postgresql import log
from replicators.sources.postgresql.log import GATHER_STEPS, LogReader


class Server:
    """The other end of a socket: at each of our short sleeps it sends what is next."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.plan: list[bytes] = []
        self.sleeps = 0
        self.read: list[int] = []
        self.reader: Any = LogReader(SimpleNamespace(skipped_origins=()), "gather")  # type: ignore[arg-type]
        pgconn = SimpleNamespace(socket=self.ours.fileno(), consume_input=self._consume)
        self.reader._link = SimpleNamespace(pgconn=pgconn, close=lambda: None)

    def _consume(self) -> None:
        self.read.append(len(self.ours.recv(1 << 16)))

    def sleep(self, _: float) -> None:
        self.sleeps += 1
        if self.plan:
            self.theirs.send(self.plan.pop(0))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    server = Server()
    monkeypatch.setattr(log.time, "sleep", server.sleep)
    yield server
    server.ours.close()
    server.theirs.close()


def test_small_sends_are_taken_together(server: Server) -> None:
    """Guards `LogReader._gather`: without it each of the server's small sends wakes the reader,
    which slows the server."""
    server.theirs.send(b"a")
    assert server.reader._wait_readable(1.0)
    server.plan = [b"bb", b"ccc"]
    assert server.reader._wait_readable(1.0)
    assert server.read == [1, 5] and server.sleeps == 3


def test_an_idle_stream_is_waited_for_and_a_full_one_is_read_at_once(server: Server) -> None:
    """Guards the two other ways: nothing is slept through while nothing comes, and what is there
    already waits for nothing."""
    assert not server.reader._wait_readable(0.01)
    assert server.sleeps == 0
    server.theirs.send(b"a")
    assert server.reader._wait_readable(1.0)
    server.theirs.send(b"b")
    assert server.reader._wait_readable(1.0)
    assert server.sleeps == 0
    server.plan = [b"c"] * (2 * GATHER_STEPS)
    assert server.reader._wait_readable(1.0)
    assert server.sleeps == GATHER_STEPS and server.read[-1] == GATHER_STEPS
