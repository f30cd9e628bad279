"""Writes what was tested as a page: `pytest --long --report docs/test-report.md`, which is `make
test-long`.

The whole takes hours. So what each session did is kept as a part (`var/test-report/`), and the page
is made of all parts of the same commit, on top of what it said before: a run that was broken off,
one in halves side by side, and files on different days give one page. A case that ran more than
once at a commit counts as it ended last."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections import defaultdict
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from tests.report_page import Case, Page, joined, page_of, read, written

PACKAGES = (
    "pytest", "django", "pyspark", "delta-spark", "pyarrow", "numba", "psycopg", "PyMySQL",
    "pyiceberg",
)  # fmt: skip
ROOT = Path(__file__).resolve().parents[1]
PARTS = ROOT / "var" / "test-report"
REASON_CHARACTERS = 160
UNKNOWN = "unknown"


class Report:
    """A plugin that keeps how each case ended, and writes the page at the end. `commit`: what was
    tested."""

    def __init__(self, path: Path, parts: Path = PARTS, commit: str = "",
        root: Path = ROOT) -> None:  # fmt: skip
        self._path = path
        self._root = root
        self._commit = commit or tested_commit()
        self._folder = parts / self._commit
        self._cases: dict[str, Case] = defaultdict(Case)
        self._names: dict[str, str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Every case that there is, also those that are then left out. By its file in this
        repository: a page that lies in another folder makes pytest name cases from there."""
        for item in items:
            file = item.path.relative_to(self._root).as_posix()
            self._names[item.nodeid] = "::".join([file, *item.nodeid.split("::")[1:]])
            self._cases[self._names[item.nodeid]]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one case."""
        case = self._cases[self._names.get(report.nodeid, report.nodeid)]
        case.seconds += report.duration
        if report.failed:
            case.outcome, case.reason = "failed", _reason(report)
        elif report.when == "call" or report.skipped:
            case.outcome = case.outcome or report.outcome
        if report.when == "call":
            case.reported = [(k, str(v)) for k, v in report.user_properties]

    def pytest_sessionfinish(self) -> None:
        """Keep this session's part, and write the page of all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        part = self._folder / f"{time.time_ns()}-{os.getpid()}.json"
        part.write_text(json.dumps({n: asdict(c) for n, c in self._cases.items()}))
        self._path.write_text(self.text())

    def _all(self) -> dict[str, Case]:
        """The cases of every part, in the order of their ends."""
        found: dict[str, Case] = {}
        for part in sorted(self._folder.glob("*.json")):
            for name, reported in json.loads(part.read_text()).items():
                case = Case(**reported)
                if case.outcome or name not in found:
                    found[name] = case
        return found

    def text(self) -> str:
        """The page. Of files that are not there any more it tells nothing."""
        now = datetime.now(UTC)
        old = read(self._path.read_text()) if self._path.is_file() else Page()
        new = page_of(self._all(), self._commit, f"{now:%Y-%m-%d}")
        files = {f for f in {*old.rows, *new.rows} if (self._root / f).is_file()}
        reported = f"Last written {now:%Y-%m-%d %H:%M} UTC at commit {self._commit}, {_versions()}."
        return written(joined(old, new, files), reported)


def _reason(report: pytest.TestReport) -> str:
    crash: Any = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash else report.longrepr)
    return " ".join(text.split())[:REASON_CHARACTERS]


def tested_commit() -> str:
    """The commit that is checked out; with `-changed` where files differ from it."""
    reported = subprocess.run(
        ["git", "describe", "--always", "--exclude=*", "--abbrev=10", "--dirty=-changed"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return reported.stdout.strip() or UNKNOWN


def _versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)
