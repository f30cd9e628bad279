"""The Spark Connect server inside a JVM of ours: its address, its clients' sessions, and the end of
what an ended client left."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

logger = logging.getLogger("replicator.sharing")

_LOOK_SECONDS = 0.1


class Service:
    """What `SparkConnectPlugin` started beside a session of this process. Thread safe."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._jvm = spark._jvm
        self._statuses = spark._jsc.sc().statusStore()
        self._service = getattr(
            getattr(self._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$"),
            "MODULE$",
        )
        # A class's name is looked for in every jar, so what is asked all the time is kept.
        beans = self._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
        self._collectors = tuple(beans)
        self._nothing = self._jvm.scala.Option.empty()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._service.localPort())

    def release(self, user: str, within_seconds: float) -> bool:
        """Interrupt what the user's sessions do, close them, and wait until no thread and no task
        of theirs is left. Returns whether none is. Without that, a commit of a run that was killed
        might come after its successor has looked at the table."""
        until = time.monotonic() + within_seconds
        sessions: dict[str, Any] = {}
        executions: dict[str, Any] = {}
        while True:
            found = self._sessions_of(user)
            for key, holder in found:
                sessions[str(key.sessionId())] = holder
            for execution in self._executions_of(user):
                executions[str(execution.operationId())] = execution
            for key, _ in found:
                self._service.sessionManager().closeSession(key, False)
            if not found and not self._is_busy(user, executions):
                break
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK_SECONDS)
        for holder in sessions.values():
            self._close_catalogs(holder)
        return True

    def _sessions_of(self, user: str) -> list[tuple[Any, Any]]:
        manager = self._service.sessionManager()
        found = []
        for info in _each(manager.listActiveSessions()):
            if info.userId() == user:
                holder = manager.getIsolatedSessionIfPresent(info.key())
                if holder.isDefined():
                    found.append((info.key(), holder.get()))
        return found

    def _executions_of(self, user: str) -> list[Any]:
        listed = _each(self._service.executionManager().listExecuteHolders())
        return [e for e in listed if e.key().userId() == user]

    def _is_busy(self, user: str, executions: dict[str, Any]) -> bool:
        for operation, execution in tuple(executions.items()):
            if execution.isExecuteThreadRunnerAlive():
                return True
            del executions[operation]
        return self._tasks_of(user) > 0

    def _tasks_of(self, user: str) -> int:
        """Tasks of the user's jobs that still run. A job that was cancelled ends before its
        tasks."""
        mark = f"_User_{user}_Session_"
        count = 0
        for job in _each(self._statuses.jobsList(None)):
            if any(mark in str(tag) for tag in _each(job.jobTags())):
                for stage in _each(job.stageIds()):
                    with suppress(Exception):  # a stage that was skipped is not stored
                        count += int(self._statuses.lastStageAttempt(stage).numActiveTasks())
        return count

    def _close_catalogs(self, holder: Any) -> None:
        """Close the connections of Iceberg's catalogs. Spark closes nothing with a session."""
        with suppress(Exception):
            manager = holder.session().sessionState().catalogManager()
            for name in _each(manager.listCatalogs(self._nothing)):
                with suppress(Exception):
                    manager.catalog(name).icebergCatalog().close()

    def milliseconds_of_collections(self) -> int:
        """How long the JVM has collected garbage since its start."""
        return sum(int(collector.getCollectionTime()) for collector in self._collectors)


def _each(found: Any) -> Iterator[Any]:
    """The items of a Scala sequence."""
    for at in range(found.size()):
        yield found.apply(at)
