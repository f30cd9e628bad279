"""How runs find the Spark that they share, and what becomes of a client's rest; no JVM."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from replicators.connectors import registry
from replicators.connectors.params import parse
from replicators.connectors.problems.errors import ReplicationError
from runners.engine.settings import RunnerSettings
from runners.engine.tasks.opening import TASKS
from runners.engine.tasks.sharing import keeper, ways
from runners.engine.tasks.sharing.client import Place, impatient, joined
from runners.engine.tasks.sharing.fitness import can_share, server_conf
from runners.engine.tasks.sharing.keeper import Keeper
from runners.engine.tasks.spark import jvm_ended
from runners.engine.tasks.worker import MODULES
from runners.supervision import starter
from tests.harness import ROOT, until


class Service:
    """The JVM's side: `release` waits until it is let go on."""

    def __init__(self) -> None:
        self.released: list[str] = []
        self.may_go = threading.Event()
        self.may_go.set()
        self.is_done = True

    def release(self, user: str, within_seconds: float) -> bool:
        assert self.may_go.wait(10)
        self.released.append(user)
        return self.is_done


class Kept:
    """A keeper that takes clients, without a JVM."""

    def __init__(self, base: Path) -> None:
        self.base = str(base)
        self.service = Service()
        self.keeper = Keeper(RunnerSettings(spark_shared_dir=self.base), 60)
        self.keeper._service = self.service  # type: ignore[assignment]
        self.keeper._url = "sc://localhost:1/;user_id="
        self.listener = ways.listening(ways.place_of(self.base))
        threading.Thread(target=self.keeper._take, args=(self.listener,), daemon=True).start()


class Turns(threading.Semaphore):
    """Counts who asked."""

    asked = 0

    def __enter__(self, *_: object) -> bool:
        self.asked += 1
        return self.acquire()


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path / ("a" * 60) / ("b" * 60))
    yield made
    made.listener.close()


def test_a_successor_waits_until_nothing_of_its_predecessor_is_left(kept: Kept) -> None:
    """Guards `Keeper._begin`: a killed run's commit could come after its successor has read the
    table. The socket's path is longer than a socket's path may be."""
    with joined(kept.base, "one") as first:
        assert first.url == "sc://localhost:1/;user_id=one.1"
        kept.service.may_go.clear()
    with joined(kept.base, "another", patience=5) as other:
        assert other.url.endswith("another.2"), "another replicator need not wait"
    with pytest.raises(ReplicationError, match="run:spark"), joined(kept.base, "one", patience=0.3):
        pass
    kept.service.may_go.set()
    with joined(kept.base, "one", patience=5) as second:
        assert "one.1" in kept.service.released
        assert second.url.startswith("sc://localhost:1/;user_id=one.")


def test_turns_come_in_order_and_are_given_on(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards `Keeper._give_turn`: fifty runs that plan side by side need longer for all of it, and
    each is as late as the last. A run that is killed or takes too long must keep no turn."""
    kept.keeper._turns = turns = Turns(1)
    began: list[int] = []
    may_end = threading.Event()

    def work(place: Place, number: int) -> None:
        with place.turn():
            began.append(number)
            assert may_end.wait(10)

    with joined(kept.base, "one") as one:
        threads = []
        for number in range(3):
            threads.append(threading.Thread(target=work, args=(one, number)))
            threads[-1].start()
            until(lambda: turns.asked == len(threads), "it has asked", 10)
        assert began == [0]
        monkeypatch.setattr(keeper, "HELD_SECONDS", 0.05)
        with one.turn(patience=0.05):
            assert began == [0], "whoever waits too long goes on without a turn"
        may_end.set()
        for thread in threads:
            thread.join(10)
        assert began == [0, 1, 2]
        may_end.clear()
        slow = threading.Thread(target=work, args=(one, 3))
        slow.start()
        until(lambda: 3 in began, "it has its turn", 10)
        with one.turn():
            assert slow.is_alive(), "the slow one goes on, and its turn was given on"
        may_end.set()
        slow.join(10)
        dead = ways.connected(one.folder)
        ways.send(dead, {"turn": True})
        ways.receive(dead)
        dead.close()
        with one.turn(patience=10):
            pass
    kept.listener.close()
    with one.turn():
        pass


def test_what_cant_be_interrupted_ends_the_shared_spark(kept: Kept) -> None:
    """Guards `Keeper._end`: a task that goes on would write beside its successor's."""
    kept.service.is_done = False
    with joined(kept.base, "one"):
        assert not kept.keeper._failed.is_set()
    assert kept.keeper._failed.wait(5)


def test_a_client_hears_of_the_end(tmp_path: Path) -> None:
    """Guards `jvm_ended`: without it a run waits for a server that is gone, until PySpark gives up
    after ten minutes."""
    folder = ways.place_of(str(tmp_path))
    with ways.listening(folder) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            ways.receive(connection)
            ways.send(connection, {"url": "sc://localhost:1"})
            assert may_end.wait(10)
            connection.close()

        may_end = threading.Event()
        threading.Thread(target=answer, daemon=True).start()
        with joined(str(tmp_path), "one") as place:

            class Session:
                shared_place = place

            assert not jvm_ended(Session(), 0.05)
            may_end.set()
            assert jvm_ended(Session(), 5)


def test_the_socket_is_for_this_user_only(kept: Kept) -> None:
    """Guards `ways.listening`: whoever enters it gets the server's token."""
    folder = ways.place_of(kept.base)
    assert (folder / ways.SOCKET).stat().st_mode & 0o077 == 0
    assert folder.stat().st_mode & 0o077 == 0


def test_clones_are_as_impatient_as_their_session() -> None:
    """Guards `impatient`: merges are done in clones, which had PySpark's own ten minutes."""

    class Client:
        policies: list[Any] = []

        def set_retry_policies(self, policies: list[Any]) -> None:
            self.policies = policies

    class Session:
        def __init__(self) -> None:
            self.client = Client()

        def cloneSession(self) -> Session:
            return Session()

    session = impatient(Session())
    for found in (session, session.cloneSession(), session.cloneSession().cloneSession()):
        assert [p.max_retries for p in found.client.policies] == [2]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"catalog_uri": "sqlite:////tmp/c.db", "warehouse": "/tmp/w"}, True),
        ({"format": "delta", "warehouse": "/tmp/w"}, True),
        (
            {
                "catalog_uri": "postgresql://db/c",
                "catalog_user": "u",
                "catalog_password": "p",
                "warehouse": "/tmp/w",
            },
            False,
        ),
        (
            {
                "catalog_uri": "sqlite:////tmp/c.db",
                "warehouse": "s3://bucket/w",
                "s3_access_key": "a",
                "s3_secret_key": "b",
            },
            False,
        ),
    ],
    ids=["iceberg", "delta", "a catalog's password", "keys of S3"],
)
def test_who_needs_the_jvm_for_itself_has_its_own(values: dict[str, Any], *, wanted: bool) -> None:
    """Guards `can_share`: one replicator's password or keys would be every other's too."""
    target = registry.targets()["lakehouse"]
    assert can_share(target, parse(target.params, values)) is wanted


def test_the_server_has_every_targets_extensions() -> None:
    """Guards `server_conf`: extensions are fixed at the start of a JVM; a session without its
    format's can't merge."""
    extensions = server_conf()["spark.sql.extensions"]
    assert "iceberg" in extensions
    assert "delta" in extensions


def test_the_workers_get_their_limit_and_their_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `Keeper._opened`, and the daemon's start: Spark Connect passes no `spark.executorEnv`
    on, so a task took 11 GB over a limit of 700 MB, and each worker imported for seconds."""
    given: dict[str, Any] = {}

    def opened(settings: RunnerSettings, *_: Any, **values: Any) -> None:
        given.update(values, master=settings.spark_master)

    monkeypatch.setattr(keeper, "open_session", opened)
    settings = RunnerSettings(
        spark_local_dir=str(tmp_path),
        jars_dir=str(tmp_path),
        spark_shared_worker_bytes=700 << 20,
        spark_shared_master="local[7]",
    )
    Keeper(settings, 60)._opened()
    assert given["master"] == "local[7]"
    variables = given["variables"]
    assert {*TASKS, "replicators.sources.postgresql.decode"} <= {*variables[MODULES].split(",")}
    with subprocess.Popen(
        [sys.executable, "-m", "runners.engine.tasks.worker", "pyspark.worker"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, **variables, MODULES: "sqlalchemy"},
    ) as daemon:  # fmt: skip
        assert daemon.stdin is not None and daemon.stdout is not None
        assert len(daemon.stdout.read(4)) == 4, "the port that it listens at"
        process = psutil.Process(daemon.pid)
        assert process.rlimit(psutil.RLIMIT_DATA) == (700 << 20, 700 << 20)
        assert any("sqlalchemy" in m.path for m in process.memory_maps()), "it imported nothing"
        daemon.stdin.close()
        daemon.wait(10)


def test_a_starter_that_is_not_ready_is_asked_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the starter's first word: while it compiled, a supervisor asked and went away, and the
    run would have been started twice."""
    monkeypatch.setattr(starter, "PATIENCE_SECONDS", 0.3)
    with ways.listening(ways.place_of(str(tmp_path)), starter.SOCKET) as busy:
        spawn = starter.spawn_copies(tmp_path / "logs", str(tmp_path), lambda *asked: asked)  # type: ignore[arg-type,return-value]
        assert spawn("a-run", "a-lease") == ("a-run", "a-lease"), "a process of its own"
        connection, _ = busy.accept()
        with connection, pytest.raises(ConnectionError):
            ways.receive(connection)


STARTER = """
import os, sys, django
django.setup()
from pathlib import Path
from runners.supervision import starter
def work(run_id):
    is_own, loaded = os.getsid(0) == os.getpid(), "sqlalchemy" in sys.modules
    print(run_id, os.environ["REPLICATOR_RUN_LEASE"], is_own, loaded, flush=True)
    if run_id == "killed":
        os.kill(os.getpid(), 9)
    os._exit(4)
lock = os.open(sys.argv[1] + "/lock", os.O_CREAT | os.O_RDWR)
starter.begin(Path(sys.argv[1]), [], ["sqlalchemy"], work, lock)
sys.stdin.read()
"""


@pytest.mark.long
def test_a_copy_is_a_run_like_another(tmp_path: Path) -> None:
    """Guards `starter`: a copy has its own session, which is what ends a run, its lease, its output
    in the run's log, and an exit code: without that, an end because the program's own database was
    away counted as a lost run."""
    from runners.engine.processes import end_session
    from runners.supervision.starter import spawn_copies
    from runners.supervision.supervisor import EXIT_DATABASE

    def otherwise(*_: str) -> Any:
        raise AssertionError("no copy was made")

    folder = ways.place_of(str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, str(folder)],
        cwd=ROOT, stdin=subprocess.PIPE, start_new_session=True,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
    ) as parent:  # fmt: skip
        spawn = spawn_copies(tmp_path / "logs", str(tmp_path), otherwise)
        process = spawn("a-run", "a-lease")
        log = tmp_path / "logs" / "a-run.log"
        until(lambda: process.poll() is not None, "the copy ends", 20)
        assert log.read_text() == "a-run a-lease True True\n"
        assert log.stat().st_mode & 0o077 == 0
        assert process.poll() == EXIT_DATABASE
        killed = spawn("killed", "a-lease")
        until(lambda: killed.poll() is not None, "the killed copy ends", 20)
        assert killed.poll() == -9
        end_session(parent.pid)
        parent.wait(10)
        assert process.poll() == EXIT_DATABASE, "the code is kept"
