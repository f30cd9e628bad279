"""Writes what a test session did as a page: `pytest --long --report docs/test-report.md`, which is `make test-long`."""

from __future__ import annotations

import platform
from collections import Counter, defaultdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

PACKAGES = (
    "pytest", "django", "pyspark", "delta-spark", "pyarrow", "numba", "psycopg", "PyMySQL", "pyiceberg",
)  # fmt: skip
SLOWEST = 15
REASON_CHARACTERS = 160


class Report:
    """A plugin that counts cases by file, and keeps failures, durations, and what tests record (`record_property`)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)
        self._seconds: dict[str, float] = defaultdict(float)
        self._cases: list[tuple[float, str]] = []
        self._failures: list[tuple[str, str]] = []
        self._told: list[tuple[str, str, str]] = []
        self._header: list[str] = []

    def pytest_report_header(self, config: pytest.Config) -> None:
        """The command's own words, without anything of the machine."""
        named = config.getoption("markexpr") or config.getoption("keyword")
        if named:
            self._header.append(f"chosen by `{named}`")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one case."""
        file = report.nodeid.partition("::")[0]
        self._seconds[file] += report.duration
        if report.when != "call" and report.passed:
            return
        if report.when != "call" and report.failed:
            self._counts[file]["errors"] += 1
        else:
            self._counts[file][report.outcome] += 1
        if report.when == "call":
            self._cases.append((report.duration, report.nodeid))
            self._told += [(report.nodeid, k, str(v)) for k, v in report.user_properties]
        if report.failed:
            self._failures.append((report.nodeid, _reason(report)))

    def pytest_sessionfinish(self) -> None:
        """Write the page."""
        self._path.write_text(self.text())

    def text(self) -> str:
        """The page."""
        totals = sum(self._counts.values(), Counter())
        minutes = sum(self._seconds.values()) / 60
        lines = [
            "# Test report", "",
            "Written by `make test-long`; not edited by hand.", "",
            f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {_versions()}.",
            f"{_counted(totals)}, in {minutes:.0f} minutes of tests.",
            *self._header, "",
            "| file | cases | passed | failed | skipped | seconds |", "|---|---|---|---|---|---|",
        ]  # fmt: skip
        lines += [self._line(file) for file in sorted(self._counts)]
        lines += ["", "## Failures", ""]
        lines += [f"- `{node}`: {why}" for node, why in self._failures] or ["None."]
        lines += ["", "## Seeds and figures", ""]
        lines += [f"- `{node}`: {key} {value}" for node, key, value in self._told] or ["None."]
        slowest = sorted(self._cases, reverse=True)[:SLOWEST]
        lines += ["", "## Slowest cases", ""]
        lines += [f"- {seconds:.1f} s `{node}`" for seconds, node in slowest]
        return "\n".join(lines) + "\n"

    def _line(self, file: str) -> str:
        counts = self._counts[file]
        failed = counts["failed"] + counts["errors"]
        return (
            f"| `{file}` | {counts.total()} | {counts['passed']} | {failed} | {counts['skipped']}"
            f" | {self._seconds[file]:.0f} |"
        )


def _counted(totals: Counter[str]) -> str:
    failed = totals["failed"] + totals["errors"]
    return f"{totals.total()} cases: {totals['passed']} passed, {failed} failed, {totals['skipped']} skipped"


def _reason(report: pytest.TestReport) -> str:
    crash: Any = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash else report.longrepr)
    return " ".join(text.split())[:REASON_CHARACTERS]


def _versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)
