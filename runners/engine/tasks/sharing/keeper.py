"""The process that keeps the shared Spark of a machine. It takes runs as clients and ends what an
ended client left. It ends where its JVM is of no use any more, or where nobody needs it. The
supervisor of a run starts it again."""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from replicators.connectors import registry
from runners.engine.processes import Adopted, session_members, signal_all
from runners.engine.settings import RunnerSettings
from runners.engine.tasks.errors import LIMIT
from runners.engine.tasks.opening import TASKS, with_scratch
from runners.engine.tasks.sharing import ways
from runners.engine.tasks.sharing.fitness import server_conf, server_jars
from runners.engine.tasks.sharing.service import Service
from runners.engine.tasks.spark import jvm_ended, open_session
from runners.engine.tasks.worker import MODULES

logger = logging.getLogger("replicator.sharing")

IDLE_SECONDS = 60.0
RELEASE_SECONDS = 60.0
TURNS_A_CORE = 2
"""How many runs may plan statements at a time, for each core: while one plans, another waits for
the target's files or catalog."""
HELD_SECONDS = 10.0
"""Who has a turn for longer goes on without it: a large merge is no reason to keep others waiting,
and Spark's scheduler shares its tasks out."""
_TURN_SECONDS = 1.0
_SILENT_SECONDS = 30.0
_COLLECTED_SECONDS, _COLLECTED_PART = 15.0, 0.9
"""A JVM that collected garbage for nine tenths of so many seconds has no heap left."""
_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 (the name of a variable)


def keep(
    settings: RunnerSettings,
    *,
    beside: Callable[[Path, int], None] = lambda *_: None,
    idle_seconds: float = IDLE_SECONDS,
) -> int:
    """Keep the shared Spark until nobody needs it; the exit code. 0 where another process keeps it
    already. `beside` is called before any thread begins, with the folder and the lock's file, which
    no other process may keep."""
    folder = ways.place_of(settings.spark_shared_dir)
    lock = os.open(folder / ways.LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        logger.info("Another process keeps the shared Spark.")
        return 0
    _end_earlier(folder)
    ways.note_keeper(folder)
    beside(folder, lock)
    keeper = Keeper(settings, idle_seconds)
    signal.signal(signal.SIGTERM, lambda *_: keeper.stop())
    try:
        return keeper.run(folder)
    finally:
        others = [pid for pid in session_members(os.getsid(0)) if pid != os.getpid()]
        if os.getsid(0) == os.getpid():
            signal_all(others, signal.SIGKILL)


def _end_earlier(folder: Path) -> None:
    """End what an earlier keeper left: its JVM or its workers may outlive it, and go on writing."""
    noted = ways.noted_keeper(folder)
    if noted is not None and noted[0] != os.getpid():
        while not Adopted(*noted).end():
            logger.error("Processes of the earlier shared Spark can't be ended yet.")


class Keeper:
    """The shared Spark and its clients."""

    def __init__(self, settings: RunnerSettings, idle_seconds: float) -> None:
        self._settings = settings
        self._idle_seconds = idle_seconds
        self._token = secrets.token_urlsafe(32)
        self._stop = threading.Event()
        self._failed = threading.Event()
        self._changed = threading.Condition()
        self._clients: Counter[str] = Counter()
        self._used_at = time.monotonic()
        self._answered_at = time.monotonic()
        self._number = 0
        self._turns = threading.Semaphore(TURNS_A_CORE * (os.cpu_count() or 1))

    def stop(self) -> None:
        """End soon."""
        self._stop.set()

    def run(self, folder: Path) -> int:
        """Start Spark, and serve."""
        spark = self._opened()
        try:
            self._service = Service(spark)
            self._url = f"sc://localhost:{self._service.port}/;token={self._token};user_id="
            with ways.listening(folder) as listener:
                threading.Thread(target=self._take, args=(listener,), daemon=True).start()
                threading.Thread(target=self._probe, daemon=True).start()
                logger.info("The shared Spark is ready.")
                self._watch(spark)
                (folder / ways.SOCKET).unlink(missing_ok=True)
        finally:
            if self._failed.is_set() or jvm_ended(spark, 0):
                _kill(spark)
            else:
                spark.stop()
        return 1 if self._failed.is_set() else 0

    def _opened(self) -> Any:
        settings = replace(
            with_scratch(replace(self._settings, spark_remote="")),
            spark_master=self._settings.spark_shared_master,
            spark_driver_memory=self._settings.spark_shared_memory,
            spark_java_options=" ".join(
                filter(
                    None,
                    (
                        "-XX:MaxMetaspaceSize=768m -XX:+ExitOnOutOfMemoryError",
                        self._settings.spark_java_options,
                    ),
                )
            ),
        )
        modules = [m for plugin in registry.sources().values() for m in plugin.task_modules]
        modules += [m for plugin in registry.targets().values() for m in plugin.task_modules]
        conf = {
            **server_conf(),
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
            "spark.connect.session.manager.defaultSessionTimeout": "3650d",
            "spark.sql.artifact.isolation.enabled": "false",
            "spark.sql.artifact.isolation.alwaysApplyClassloader": "false",
            "spark.scheduler.allocation.file": (Path(__file__).parent / "pools.xml").as_uri(),
            "spark.python.daemon.module": "runners.engine.tasks.worker",
        }
        # Spark Connect passes no variables of the configuration on: the daemon has the JVM's own.
        variables = {
            _TOKEN: self._token,
            LIMIT: str(settings.spark_shared_worker_bytes),
            MODULES: ",".join(dict.fromkeys((*TASKS, *modules))),
        }
        jars = server_jars(settings.jars_dir)
        return open_session(settings, "shared", jars, conf, variables=variables)

    # --- clients ---
    def _take(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """One client from its first word to its end, or one turn of a client."""
        with connection, suppress(OSError, ValueError, KeyError):
            connection.settimeout(RELEASE_SECONDS)
            said = ways.receive(connection)
            if "turn" in said:
                self._give_turn(connection)
                return
            owner = str(said["owner"])
            user = self._begin(owner)
            try:
                ways.send(connection, {"url": f"{self._url}{user}"})
                connection.settimeout(None)
                connection.recv(1)  # it says nothing more: this is its end
            finally:
                self._end(owner, user)

    def _give_turn(self, connection: socket.socket) -> None:
        """Say so when it is the client's turn. It has the turn until it closes the connection, or
        dies. Waiting clients come in the order in which they asked."""
        with self._turns:
            ways.send(connection, {})
            connection.settimeout(HELD_SECONDS)
            connection.recv(1)

    def _begin(self, owner: str) -> str:
        with self._changed:
            while self._clients[owner]:
                self._changed.wait()
            self._clients[owner] += 1
            self._number += 1
            return f"{owner}.{self._number}"

    def _end(self, owner: str, user: str) -> None:
        try:
            if not self._service.release(user, RELEASE_SECONDS):
                logger.error("What %s left can't be interrupted; Spark is ended.", user)
                self._failed.set()
                return
        except Exception:
            logger.exception("What %s left can't be looked at; Spark is ended.", user)
            self._failed.set()
            return
        with self._changed:
            del self._clients[owner]
            self._used_at = time.monotonic()
            self._changed.notify_all()

    # --- health ---
    def _probe(self) -> None:
        """Ask the JVM again and again. Whether it still answers is for `_watch` to see."""
        looked_at, before = time.monotonic(), 0
        while True:
            try:
                spent = self._service.milliseconds_of_collections()
            except Exception:  # noqa: BLE001 - the JVM has ended
                self._failed.set()
                return
            now = self._answered_at = time.monotonic()
            if now - looked_at >= _COLLECTED_SECONDS:
                if (spent - before) / 1000 > _COLLECTED_PART * (now - looked_at):
                    logger.error("Spark's heap is full; Spark is ended.")
                    self._failed.set()
                looked_at, before = now, spent
            time.sleep(_TURN_SECONDS)

    def _watch(self, spark: Any) -> None:
        """Return once the shared Spark is to end."""
        while not self._stop.wait(_TURN_SECONDS):
            if self._failed.is_set():
                return
            if jvm_ended(spark, 0):
                logger.error("Spark's process has ended.")
                self._failed.set()
            elif time.monotonic() - self._answered_at > _SILENT_SECONDS:
                logger.error("Spark does not answer; it is ended.")
                self._failed.set()
            elif not self._clients and time.monotonic() - self._used_at > self._idle_seconds:
                logger.info("Nobody needs the shared Spark.")
                return


def _kill(spark: Any) -> None:
    """End the JVM at once."""
    with suppress(OSError, AttributeError):
        spark.sparkContext._gateway.proc.kill()
