"""`python -m setup [--tests]`: prepare this clone so that `make demo` (or `make test`) can run."""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
import time
from collections.abc import Callable

from setup import steps
from setup.machine import ROOT, Missing
from setup.work import say


def _steps(with_tests: bool) -> list[tuple[str, Callable[[], None]]]:
    return [
        ("free disk", steps.check_disk),
        ("system packages", lambda: steps.apt_packages(with_tests=with_tests)),
        (
            "Python packages (some minutes the first time)",
            lambda: steps.python_packages(sys.executable, with_tests=with_tests),
        ),
        *(
            [
                (
                    "an environment from requirements.txt alone",
                    lambda: steps.runtime_packages(sys.executable),
                )
            ]
            if with_tests
            else []
        ),
        ("jars for Spark", steps.jars),
        *(
            [
                ("MySQL for the tests", steps.mysql_server),
                ("a search server for the tests", steps.search_server),
                ("Kafka for the tests", steps.kafka_broker),
                ("a schema registry for the tests", steps.schema_registry),
                ("an Iceberg REST catalog for the tests", steps.rest_catalog),
                (
                    "a Snowflake emulator for the tests",
                    lambda: steps.snowflake_emulator(sys.executable),
                ),
            ]
            if with_tests
            else []
        ),
        *(
            [("a BigQuery emulator", lambda: steps.bigquery_emulator(sys.executable))]
            if with_tests or os.environ.get("DEMO_TARGET") == "bigquery"
            else []
        ),
        ("front-end files", steps.front_end),
        ("compiled decoder and Spark's classes", steps.prepare_runs),
    ]


def main() -> int:
    """Run the steps in order. Returns 0, or 1 after a sentence that names what is missing."""
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
        todo = _steps(with_tests)
        for number, (label, step) in enumerate(todo, start=1):
            say(f"[{number}/{len(todo)}] {label}")
            try:
                step()
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
