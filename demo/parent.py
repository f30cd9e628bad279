"""The demo's parent process in the foreground. It starts every part in order, keeps the parts
alive, and stops them in order."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from demo import shop
from demo.broker import EmbeddedBroker
from demo.place import ROOT, Place
from demo.postgres import HOST, EmbeddedPostgres, free_port
from demo.processes import (
    Identity,
    Service,
    become_subreaper,
    descendants,
    marked,
    reap,
    stop_all,
    wait_until,
)
from demo.targets import TARGETS, Opened
from setup import processes

WEB_PORT = 8000
STOP_SECONDS = 20.0
NOT_FOR_PRODUCTION = (
    "Not for production: plain HTTP, keys beside the data. See «Production» in docs/operations.md."
)
STOP_ORDER = ("traffic", "web", "beat", "worker-runs", "worker-default")


class StopAsked(BaseException):
    """Ctrl-C, SIGTERM or SIGHUP asked us to stop."""


class StartFailed(RuntimeError):
    """A part did not start. The text has the end of its log."""


def say(text: str = "") -> None:
    """Print a line for the person at the terminal. A closed terminal is no reason to stop."""
    with contextlib.suppress(OSError):
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class Parent:
    """Owns all parts of the demo. `run` blocks until somebody asks it to stop."""

    def __init__(
        self, place: Place, *, orders: int = shop.ORDERS, target: str = "lakehouse"
    ) -> None:
        self.place = place
        self.orders = orders
        self.target = TARGETS[target]
        self.opened = Opened({})
        self.postgres: EmbeddedPostgres | None = None
        self.broker: EmbeddedBroker | None = None
        self.services: dict[str, Service] = {}
        self.web_port = WEB_PORT
        self.is_stopping = False
        self.is_hurried = False

    # -- the main path

    def run(self) -> int:
        """Start, watch and stop all parts. Returns the exit code."""
        become_subreaper()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        code = 0
        try:
            self.start()
            self.watch()
        except StopAsked:
            say("\nStopping: traffic, web, beat, workers and runs, broker, PostgreSQL ...")
        except (StartFailed, RuntimeError, OSError) as problem:
            say(f"\n{problem}")
            code = 1
        self.is_stopping = True
        self.stop()
        say("Stopped." if code == 0 else "Stopped after a failure.")
        return code

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.is_stopping:
            self.is_hurried = True
            return
        self.is_stopping = True
        raise StopAsked

    # -- start

    def start(self) -> None:
        """Start every part; each is ready before the parts that need it."""
        self.place.prepare()
        self._clear_leftovers()
        if not self.place.is_dev:
            self._open_target(self._start_postgres())
        broker = self._start_broker()
        environment = self.place.environment(redis_url=broker.url)
        self._prepare_django(environment)
        self._start_services(environment)
        if self.place.is_dev:
            self._wait_services()
            say(f"\nhttp://{HOST}:{self.web_port}/ (make a login with: manage.py createsuperuser)")
            say(NOT_FOR_PRODUCTION)
            return
        seeded = self._seed(environment)
        self._wait_services()
        self._start_traffic(environment)
        self._tell(seeded)

    def forget(self) -> None:
        """Remove everything that an earlier demo made, and end processes that it may have left."""
        self._clear_leftovers()
        recorded = self.place.postgres_folder()
        EmbeddedPostgres(folder=recorded).stop_leftover()
        self.place.reset()

    def _clear_leftovers(self) -> None:
        """End the processes that an earlier, killed parent left. PostgreSQL is stopped by its own
        `start`."""
        noted = self.place.read(self.place.processes)
        left = {Identity(pid, started) for pid, started in noted.get("processes", [])}

        def find() -> set[Identity]:
            alive = {process for process in left if process.is_alive()}
            return alive | descendants(p.pid for p in alive) | marked(self.place.folder)

        if found := find():
            say(f"Stopping {len(found)} processes that an earlier start left behind ...")
            stop_all(find, STOP_SECONDS)

    def _note(self) -> None:
        """Write down the identities of our children."""
        pids = [s.process.pid for s in self.services.values() if s.process is not None]
        servers = [s for s in (self.broker, self.opened.server) if s is not None]
        pids += [pid for s in servers if (pid := s.pid)]
        known = [identity for pid in pids if (identity := Identity.of(pid))]
        text = json.dumps({"processes": [[k.pid, k.started] for k in known]})
        self.place.write_private(self.place.processes, text)

    def _open_target(self, postgres: EmbeddedPostgres) -> None:
        say(f"the target, {self.target.label} ...")
        self.opened = self.target.open(self.place, postgres)
        self._note()

    def _start_postgres(self) -> EmbeddedPostgres:
        say("PostgreSQL ...")
        ports = self.place.read(self.place.folder / "ports.json")
        self.postgres = EmbeddedPostgres(
            folder=self.place.postgres_folder(),
            port=ports.get("postgres", 0),
            dies_with_parent=False,
            options={"max_slot_wal_keep_size": "4GB"},
        )
        self.postgres.start()
        text = json.dumps({"postgres": self.postgres.port})
        self.place.write_private(self.place.folder / "ports.json", text)
        if shop.install(self.postgres, orders=self.orders):
            say(f"  made the shop, {self.orders:,} orders")
        shop.grant_login(self.postgres)
        return self.postgres

    def _start_broker(self) -> EmbeddedBroker:
        say("broker ...")
        self.broker = EmbeddedBroker(folder=self.place.folder / "broker", dies_with_parent=False)
        self.broker.start()
        self._note()
        return self.broker

    def _prepare_django(self, environment: Mapping[str, str]) -> None:
        say("database of the program ...")
        todo = [("migrate", "--noinput")]
        if not self.place.is_dev:
            todo.append(("collectstatic", "--noinput"))
        running = []
        for arguments in todo:
            log = self.place.logs / f"{arguments[0]}.log"
            with log.open("wb") as out:
                command = [sys.executable, "manage.py", *arguments]
                child = subprocess.Popen(
                    command, cwd=ROOT, env=dict(environment), stdout=out, stderr=out
                )
            running.append((child, arguments[0], log))
        for child, name, log in running:
            if child.wait():
                raise StartFailed(f"{name} failed:\n{log.read_text()[-2000:]}")

    def _service(
        self,
        name: str,
        command: list[str],
        environment: Mapping[str, str],
        ready: Callable[[Path], bool],
    ) -> None:
        log = self.place.logs / f"{name}.log"
        if log.exists():
            log.replace(log.with_suffix(".log.1"))
        service = Service(name, command, environment, ROOT, log, lambda: ready(log))
        service.spawn()
        self.services[name] = service
        self._note()

    def _start_services(self, environment: Mapping[str, str]) -> None:
        say("web, workers, beat ...")
        self.web_port = WEB_PORT if _is_free(WEB_PORT) else free_port()

        def said(text: str) -> Callable[[Path], bool]:
            return lambda log: log.exists() and text in log.read_text(errors="replace")

        self._service("web", self._web_command(), environment, lambda _: _answers(self.web_port))
        self._service("worker-runs", processes.worker_runs(), environment, said(" ready."))
        self._service("worker-default", processes.worker_default(), environment, said(" ready."))
        self._service("beat", processes.beat(), environment, said("beat: Starting"))

    def _web_command(self) -> list[str]:
        bind = f"{HOST}:{self.web_port}"
        if self.place.is_dev:
            return [sys.executable, "manage.py", "runserver", "--noreload", bind]
        return processes.web(bind)

    def _wait_services(self) -> None:
        for service in self.services.values():
            if not service.wait_ready():
                raise StartFailed(f"«{service.name}» did not start:\n{service.log_tail()}")

    def _seed(self, environment: Mapping[str, str]) -> dict[str, Any]:
        say(f"the replicator «{self.target.replicator}» ...")
        assert self.postgres is not None
        given = {
            "source": {**self.postgres.params(shop.DATABASE), "user": shop.LOGIN},
            "name": self.target.replicator,
            "target_kind": self.target.kind,
            "target": dict(self.opened.params),
            "options": dict(self.opened.options or {}),
            "schema": shop.SCHEMA,
            "tables": list(shop.TABLES),
            "known": self.place.read(self.place.result),
        }
        made = subprocess.run(
            [sys.executable, "-m", "demo.seed"],
            cwd=ROOT,
            env=dict(environment),
            input=json.dumps(given),
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise StartFailed(f"The replicator could not be made:\n{made.stderr[-2000:]}")
        return dict(json.loads(made.stdout.splitlines()[-1]))

    def _start_traffic(self, environment: Mapping[str, str]) -> None:
        assert self.postgres is not None
        dsn = self.postgres.dsn(shop.DATABASE)
        command = [sys.executable, "-m", "demo.traffic"]
        self._service("traffic", command, {**environment, "DEMO_SOURCE_DSN": dsn}, lambda _: True)

    def _tell(self, seeded: Mapping[str, Any]) -> None:
        assert self.postgres is not None
        url = f"http://{HOST}:{self.web_port}/"
        result = {
            "url": url.rstrip("/"),
            "user": seeded["user"],
            "password": seeded["password"],
            "token": seeded["token"],
            "replicator": self.target.replicator,
            "replicator_id": seeded["replicator_id"],
            "source": {"dsn": self.postgres.dsn(shop.DATABASE)},
            "target": seeded["target"],
        }
        self.place.write_private(self.place.result, json.dumps(result, indent=2) + "\n")
        say(f"\n  {url}\n  user      {result['user']}\n  password  {result['password']}\n")
        say(f"A program finds these, and a token, in {self.place.result}. Ctrl-C stops everything.")
        say(NOT_FOR_PRODUCTION)

    # -- while it runs

    def watch(self) -> None:
        """Restart parts that died, with growing pauses, until a signal comes."""
        while True:
            time.sleep(0.5)
            reap(self._own_pids())
            for service in self.services.values():
                if not service.is_running and self._may_restart(service):
                    say(f"«{service.name}» ended; starting it again")
                    service.spawn()
                    self._note()
            if self.broker is not None and self.broker.pid is None:
                say("The broker ended; starting it again")
                self.broker.start()
                self._note()
            if self.opened.server is not None and self.opened.server.pid is None:
                say(f"{self.target.label} ended; starting it again")
                self.opened.server.start()
                self._note()
            if self.postgres is not None and self.postgres.pid is None:
                say("PostgreSQL ended; starting it again")
                self.postgres.start()

    def _may_restart(self, service: Service) -> bool:
        now = time.monotonic()
        recent = [at for at in service.deaths if now - at < 60.0]
        if recent and now - recent[-1] < min(10.0, 2.0 ** (len(recent) - 1)):
            return False
        service.deaths = [*recent, now]
        return True

    def _own_pids(self) -> set[int]:
        pids = {s.process.pid for s in self.services.values() if s.process is not None}
        pids |= {s.pid or 0 for s in (self.broker, self.opened.server) if s is not None}
        return pids | ({self.postgres.pid or 0} if self.postgres is not None else set())

    # -- the end

    def stop(self) -> None:
        """Stop in order: traffic, web, beat, workers with their runs, broker, the target's server,
        PostgreSQL. After 20 s, SIGKILL."""
        end = time.monotonic() + STOP_SECONDS
        for name in STOP_ORDER:
            service = self.services.get(name)
            if service is not None:
                service.ask_to_stop()
                if not name.startswith("worker"):
                    wait_until(lambda s=service: self._is_over(s), min(5.0, end - time.monotonic()))  # type: ignore[misc]
        for service in self.services.values():
            wait_until(lambda s=service: self._is_over(s), end - time.monotonic())  # type: ignore[misc]
        self._stop_runs(end)
        if self.broker is not None:
            self.broker.stop()
        if self.opened.server is not None:
            self.opened.server.stop()
        if self.postgres is not None:
            self.postgres.stop("immediate" if self.is_hurried else "fast")
        self.place.processes.unlink(missing_ok=True)

    def _is_over(self, service: Service) -> bool:
        return self.is_hurried or not service.is_running

    def _stop_runs(self, end: float) -> None:
        """Stop the remaining workers and runs: SIGTERM, and when the time is over SIGKILL."""
        known = (self.broker, self.postgres, self.opened.server)
        servers = {pid for s in known if s is not None and (pid := s.pid)}

        def find() -> set[Identity]:
            reap(self._own_pids())
            found = descendants([os.getpid()]) | marked(self.place.folder)
            spared = servers | {process.pid for process in descendants(servers)}
            return {process for process in found if process.pid not in spared}

        stop_all(find, 0.0 if self.is_hurried else max(0.5, end - time.monotonic()))
        for service in self.services.values():
            if service.process is not None:
                service.process.poll()
        reap(self._own_pids())
