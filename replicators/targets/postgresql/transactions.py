"""Transactions whose outcome is known even if the connection is lost while they commit."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.postgresql.connections import Connection, Connections
from replicators.targets.postgresql.errors import translate

logger = logging.getLogger("replicator.target.postgresql")
OUTCOME_SECONDS = 20.0
_TURN_SECONDS = 0.2


class Transactions:
    """Runs a job as one transaction. It knows the number that the server gave the transaction of
    each job whose answer was lost."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._doubtful: dict[str, str] = {}

    def is_done(self, job: str) -> bool:
        """Whether an earlier try of this job, whose answer was lost, was committed after all."""
        number = self._doubtful.get(job)
        if number is None:
            return False
        is_done = self._outcome(number)
        del self._doubtful[job]
        return is_done

    @contextmanager
    def begin(self, job: str) -> Iterator[Connection]:
        """A transaction, committed at the end of the block. If the server's answer to the COMMIT is
        lost, the server is asked what became of it. ReplicationErrors and drivers' errors roll it
        back."""
        connection, number, is_committing = self._connections.get(), "", False
        try:
            with connection.transaction():
                row = connection.execute("SELECT pg_catalog.pg_current_xact_id()::text").fetchone()
                number = str(row[0]) if row else ""
                yield connection
                is_committing = True
        except psycopg.Error as err:
            if not (is_committing and connection.closed):
                raise translate(err, self._connections.params) from err
            self._doubtful[job] = number
            logger.info("the connection was lost while a transaction was committed")
            if not self.is_done(job):
                raise translate(err, self._connections.params) from err

    def _outcome(self, number: str) -> bool:
        """Whether the transaction with this number was committed. The server may still be busy with
        it for a moment."""
        ends_at = time.monotonic() + OUTCOME_SECONDS
        while True:
            state = self._state(number)
            if state != "in progress":
                return state == "committed"
            if time.monotonic() > ends_at:
                raise ReplicationError("target:postgresql-lost")
            time.sleep(_TURN_SECONDS)

    def _state(self, number: str) -> str:
        try:
            row = (
                self._connections.get()
                .execute("SELECT pg_catalog.pg_xact_status(%s::xid8)", [number])
                .fetchone()
            )
        except psycopg.Error as err:
            raise translate(err, self._connections.params) from err
        return str(row[0]) if row else ""
