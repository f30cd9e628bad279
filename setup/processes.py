"""Command lines of the program's long-running processes: one place for make, Docker and the
demo."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from setup.machine import ROOT

CELERY = ("-m", "celery", "-A", "replicators.project", "-q")
WORKER = ("worker", "--without-gossip", "--without-mingle", "--loglevel=INFO")


def web(bind: str = "") -> list[str]:
    """The pages and the REST interface. The environment sets BIND, WEB_THREADS and WEB_WAITERS: a
    thread for each request, and for each subscriber that waits."""
    names = {"WEB_THREADS": "8", "WEB_WAITERS": "64"}
    threads = str(sum(int(os.environ.get(name) or least) for name, least in names.items()))
    return [
        sys.executable, "-m", "gunicorn", "replicators.project.wsgi",
        "--bind", bind or os.environ.get("BIND", "127.0.0.1:8000"),
        "--worker-class", "gthread", "--workers", "1", "--threads", threads,
        "--worker-tmp-dir", "/dev/shm",  # noqa: S108 (gunicorn's heartbeat)
        "--graceful-timeout", "5",
    ]  # fmt: skip


def worker_runs() -> list[str]:
    """Supervises runs, with one thread for each run that may be active at once on this machine."""
    runs = os.environ.get("REPLICATOR_WORKER_RUNS") or os.environ.get("REPLICATOR_MAX_RUNS", "4")
    queue = ["-n", "runs@%h", "-Q", "runs", "-P", "threads", "-c", runs]
    return [sys.executable, *CELERY, *WORKER, *queue]


def worker_default() -> list[str]:
    """All short work, in two processes. Dropping a deleted replicator's target takes Spark a minute
    or more, and runs must be reconciled meanwhile."""
    queue = ["-n", "default@%h", "-Q", "default", "-P", "prefork", "-c", "2"]
    return [sys.executable, *CELERY, *WORKER, *queue]


def beat() -> list[str]:
    """The clock that has runs reconciled. There must be exactly one."""
    return [sys.executable, *CELERY, "beat", "--loglevel=INFO", "--pidfile="]


COMMANDS: dict[str, Callable[[], list[str]]] = {
    "web": web,
    "worker-runs": worker_runs,
    "worker-default": worker_default,
    "beat": beat,
}


def main() -> None:
    """`python -m setup.processes <name>` replaces itself with that process."""
    command = COMMANDS[sys.argv[1]]()
    os.chdir(ROOT)
    os.execv(command[0], command)  # noqa: S606 (an argument list of ours)


if __name__ == "__main__":
    main()
