"""A run's side of the shared Spark."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replicators.connectors.problems.errors import ReplicationError
from runners.engine.tasks.sharing import ways

PATIENCE_SECONDS = 75.0
"""How long a run waits for the shared Spark: it starts, or ends what an earlier run of the same
replicator left there."""
TURN_PATIENCE_SECONDS = 60.0
"""How long statements wait for their turn. Then they go on without one."""
_TURN_SECONDS = 0.2
_RETRIES = 2


@dataclass(frozen=True, slots=True)
class Place:
    """A run's place on the shared Spark. The URL holds the server's token."""

    url: str
    connection: socket.socket
    folder: Path

    @contextmanager
    def turn(self, patience: float = TURN_PATIENCE_SECONDS) -> Iterator[None]:
        """Begin once it is this run's turn. The keeper lets few runs plan statements at a time: the
        cores would need longer for all of them side by side, and nobody would be early."""
        try:
            connection = ways.connected(self.folder)
        except OSError:  # the keeper has ended, and the statement will say so
            yield
            return
        with connection:
            with suppress(OSError):
                connection.settimeout(patience)
                ways.send(connection, {"turn": True})
                ways.receive(connection)
            yield

    def has_ended(self, within_seconds: float) -> bool:
        """Whether the shared Spark has ended, or ends within that time."""
        if self.connection.fileno() < 0:
            return True
        readable, _, _ = select.select([self.connection], [], [], within_seconds)
        return bool(readable)  # the keeper says nothing more: only the end can be read


@contextmanager
def joined(base: str, owner: str, *, patience: float = PATIENCE_SECONDS) -> Iterator[Place]:
    """A place for this replicator's run. It is given once nothing of an earlier run of the same
    replicator goes on there. `run:spark` where there is none in time."""
    connection, said = _asked(base, owner, time.monotonic() + patience)
    try:
        yield Place(said["url"], connection, ways.place_of(base))
    finally:
        connection.close()


def _asked(base: str, owner: str, until: float) -> tuple[socket.socket, dict[str, Any]]:
    folder = ways.place_of(base)
    while True:
        try:
            connection = ways.connected(folder)
            try:
                connection.settimeout(max(_TURN_SECONDS, until - time.monotonic()))
                ways.send(connection, {"owner": owner})
                said = ways.receive(connection)
            except BaseException:
                connection.close()
                raise
            connection.settimeout(None)
            return connection, said
        except OSError as err:  # nobody listens yet, or the keeper ended meanwhile
            if time.monotonic() > until:
                raise ReplicationError("run:spark") from err
            time.sleep(_TURN_SECONDS)


def impatient(session: Any) -> Any:
    """The session and its clones fail soon where the server has gone. PySpark would try again for
    ten minutes; a server on the same machine is there, or has ended."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
    clone: Callable[..., Any] = session.cloneSession
    session.cloneSession = lambda *args: impatient(clone(*args))
    return session
