"""A pool of Spark sessions. A call has one at a time, and returns it unchanged."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from replicators.connectors.spark import (
    Conf,
    Frame,
    FrameReader,
    Session,
    SessionCatalog,
    turn_of,
)

logger = logging.getLogger("replicator.sessions")

PER_SESSION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.sources.partitionOverwriteMode": "static",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.optimizer.inSetSwitchThreshold": "0",
    "spark.sql.variable.substitute": "false",
}
"""The last setting keeps `${...}` in a name or a key's literal unchanged. Otherwise Spark replaces
it in every statement before it parses the statement."""


class LentConf:
    """A session's conf that remembers the values from before a call set them. `known`: values that
    the session has between calls. Each question is a request where Spark is a server."""

    def __init__(self, conf: Conf, known: dict[str, str | None] | None = None) -> None:
        self._conf = conf
        self._known = {} if known is None else known
        self._before: dict[str, str | None] = {}

    def _note(self, name: str) -> None:
        if name in self._before:
            return
        if name not in self._known:
            self._known[name] = self._conf.get(name, None)
        self._before[name] = self._known[name]

    def set(self, name: str, value: str) -> None:
        """Set a value until `restore`."""
        self._note(name)
        self._conf.set(name, value)

    def restore(self) -> None:
        """Give every name the value that it had before it was set. A name that had no value has
        none again."""
        while self._before:
            name, value = self._before.popitem()
            if value is None:
                self._conf.unset(name)
            else:
                self._conf.set(name, value)

    def get(self, name: str, default: str | None = None) -> str | None:
        """The present value."""
        return self._conf.get(name, default)

    def unset(self, name: str) -> None:
        """Remove a value until `restore`."""
        self._note(name)
        self._conf.unset(name)


@contextmanager
def lent_conf(conf: Conf, values: Mapping[str, str]) -> Iterator[None]:
    """Set these values while the context lasts."""
    lent = LentConf(conf)
    try:
        for name, value in values.items():
            lent.set(name, value)
        yield
    finally:
        lent.restore()


class LentSession:
    """A Spark session that one call uses. Its `conf` and temporary views last as long as the call.
    `spark` is the session itself, for what needs Spark's own object."""

    def __init__(self, spark: Session, known: dict[str, str | None]) -> None:
        self.spark = spark
        self._views: list[str] = []
        self.conf = LentConf(spark.conf, known)

    @property
    def catalog(self) -> SessionCatalog:
        return self.spark.catalog

    @property
    def read(self) -> FrameReader:
        return self.spark.read

    def sql(self, text: str) -> Frame:
        return self.spark.sql(text)

    def table(self, name: str) -> Frame:
        return self.spark.table(name)

    def range(self, start: int, end: int, step: int, partitions: int) -> Frame:
        return self.spark.range(start, end, step, partitions)

    def createDataFrame(self, rows: Any, schema: Any) -> Frame:
        return self.spark.createDataFrame(rows, schema)

    def show(self, frame: Frame, view: str) -> None:
        """Make the frame readable in the session's statements as a temporary view."""
        self._views.append(view)
        frame.createOrReplaceTempView(view)

    def clear(self) -> None:
        """Restore the session to its state before the call."""
        while self._views:
            self.spark.catalog.dropTempView(self._views.pop())
        self.conf.restore()


class Sessions:
    """Sessions beside `spark`: as many as there were parallel calls. Two calls never share one,
    since tokens travel by session conf (CORRECTNESS 14). The sessions are kept, because Spark
    closes nothing with a session: each one that opens a JDBC catalog holds its connection for ever.
    Thread safe."""

    def __init__(self, spark: Session, conf: Mapping[str, str]) -> None:
        self._spark = spark
        self._conf = {**PER_SESSION, **conf}
        self._idle: list[tuple[Session, dict[str, str | None]]] = []
        self._lock = threading.Lock()
        self._turn = turn_of(spark)

    @contextmanager
    def lent(self) -> Iterator[LentSession]:
        """A session for this call alone, once it is this run's turn. It is restored afterwards,
        also after an error. A session that can't be restored is discarded."""
        with self._turn():
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            session, known = idle if idle is not None else (self._made(), {})
            lent = LentSession(session, known)
            try:
                yield lent
            finally:
                self._take_back(lent, session, known)

    def _made(self) -> Session:
        """A new session with its own conf, in the same process or over Spark Connect."""
        spark: Any = self._spark  # the one or the other has the method
        session: Session = (
            spark.newSession() if hasattr(spark, "newSession") else spark.cloneSession()
        )
        for name, value in self._conf.items():
            session.conf.set(name, value)
        return session

    def _take_back(self, lent: LentSession, session: Session, known: dict[str, str | None]) -> None:
        try:
            lent.clear()
        except Exception as err:  # noqa: BLE001 - Spark is gone, or a server closed the session
            logger.debug("A session was given up: %s", err)
            return
        with self._lock:
            self._idle.append((session, known))
