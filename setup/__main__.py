"""`python -m setup [--tests]`: prepare this clone so that `make demo` (or `make test`) can run."""

from __future__ import annotations

import argparse
import fcntl
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from setup import steps
from setup.machine import ROOT, Missing
from setup.work import say

Step = tuple[str, Callable[[], None]]


def first_steps(with_tests: bool) -> list[Step]:
    """What must be there before anything else."""
    return [
        ("free disk", steps.check_disk),
        ("system packages", lambda: steps.apt_packages(with_tests=with_tests)),
    ]


def lanes(with_tests: bool) -> list[list[Step]]:
    """Lists of steps that are done side by side: a step waits for the network, or keeps one
    processor busy. Maven's steps are in one list, since they write to one folder."""
    python = sys.executable
    own: list[Step] = [
        (
            "Python packages (some minutes the first time)",
            lambda: steps.python_packages(python, with_tests=with_tests),
        ),
        ("front-end files", steps.front_end),
    ]
    other: list[Step] = [("jars for Spark", steps.jars)]
    if with_tests:
        other += [
            ("a search server for the tests", steps.search_server),
            ("Kafka for the tests", steps.kafka_broker),
            ("a schema registry for the tests", steps.schema_registry),
            ("an Iceberg REST catalog for the tests", steps.rest_catalog),
            ("MySQL for the tests", steps.mysql_server),
            ("an environment from requirements.txt alone", lambda: steps.runtime_packages(python)),
            ("a Snowflake emulator for the tests", lambda: steps.snowflake_emulator(python)),
            ("a DuckDB for the tests that reads tables", lambda: steps.duckdb_reader(python)),
        ]
    if with_tests or os.environ.get("DEMO_TARGET") == "bigquery":
        own.append(("a BigQuery emulator", lambda: steps.bigquery_emulator(python)))
    return [own, other]


def last_steps() -> list[Step]:
    """What needs all the others."""
    return [("compiled decoder and Spark's classes", steps.prepare_runs)]


class Work:
    """Does lists of steps, says which step begins, and stops at the first failure."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._numbers = itertools.count(1)
        self._failed = threading.Event()

    def do(self, todo: Iterable[Step]) -> None:
        """One after the other."""
        for label, step in todo:
            if self._failed.is_set():
                return
            say(f"[{next(self._numbers)}/{self._total}] {label}")
            try:
                step()
            except BaseException:
                self._failed.set()
                raise

    def side_by_side(self, lists: Sequence[Sequence[Step]]) -> None:
        """Each list in a thread of its own. The first failure is raised once all have stopped."""
        with ThreadPoolExecutor(len(lists)) as pool:
            done = [pool.submit(self.do, todo) for todo in lists]
        for one in done:
            one.result()


def main() -> int:
    """Do all steps. Returns 0, or 1 after a sentence that names what is missing."""
    parser = argparse.ArgumentParser(prog="setup", description=__doc__)
    parser.add_argument("--tests", action="store_true", help="also what checks and tests need")
    with_tests = parser.parse_args().tests
    if sys.version_info < (3, 11):  # noqa: UP036 (it runs before anything checked the version)
        say("Python 3.11 or newer is needed: make PYTHON=python3.11 ...")
        return 1
    (ROOT / "var").mkdir(exist_ok=True)
    with (ROOT / "var" / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        started = time.monotonic()
        before, beside, after = first_steps(with_tests), lanes(with_tests), last_steps()
        work = Work(len(before) + sum(map(len, beside)) + len(after))
        try:
            work.do(before)
            work.side_by_side(beside)
            work.do(after)
        except Missing as problem:
            say(f"\n{problem}")
            return 1
        say(f"Set-up is complete ({time.monotonic() - started:.0f} s).")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("\nStopped. The same command goes on from here.")
        sys.exit(130)
