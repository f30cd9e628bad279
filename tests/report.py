"""Writes what was tested as a page: `pytest --long --report docs/test-report.md`, which is `make test-long`.

The whole takes hours. So what each session did is kept as a part (`var/test-report/`), and the page is made of all parts of the same
commit: a run that was broken off, or one in halves side by side, gives one page. A case that ran more than once counts as it ended last."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

PACKAGES = (
    "pytest", "django", "pyspark", "delta-spark", "pyarrow", "numba", "psycopg", "PyMySQL", "pyiceberg",
)  # fmt: skip
ROOT = Path(__file__).resolve().parents[1]
PARTS = ROOT / "var" / "test-report"
SLOWEST = 15
MOST_LEFT = 100
REASON_CHARACTERS = 160
UNKNOWN = "unknown"


@dataclass
class Case:
    """How a case ended (passed, failed, skipped; "" while it has not), the seconds of all its phases, why it failed, and what it
    recorded (`record_property`)."""

    outcome: str = ""
    seconds: float = 0.0
    reason: str = ""
    told: list[tuple[str, str]] = field(default_factory=list)


class Report:
    """A plugin that keeps how each case ended, and writes the page at the end. `commit`: what was tested."""

    def __init__(self, path: Path, parts: Path = PARTS, commit: str = "") -> None:
        self._path = path
        self._commit = commit or tested_commit()
        self._folder = parts / self._commit
        self._cases: dict[str, Case] = defaultdict(Case)
        self._sessions = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Every case that there is, also those that are then left out."""
        for item in items:
            self._cases[item.nodeid]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one case."""
        case = self._cases[report.nodeid]
        case.seconds += report.duration
        if report.failed:
            case.outcome, case.reason = "failed", _reason(report)
        elif report.when == "call" or report.skipped:
            case.outcome = case.outcome or report.outcome
        if report.when == "call":
            case.told = [(k, str(v)) for k, v in report.user_properties]

    def pytest_sessionfinish(self) -> None:
        """Keep this session's part, and write the page of all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        part = self._folder / f"{time.time_ns()}-{os.getpid()}.json"
        part.write_text(json.dumps({n: asdict(c) for n, c in self._cases.items()}))
        self._path.write_text(self.text())

    def _all(self) -> dict[str, Case]:
        """The cases of every part, in the order of their ends."""
        found: dict[str, Case] = {}
        parts = sorted(self._folder.glob("*.json"))
        self._sessions = len(parts)
        for part in parts:
            for name, told in json.loads(part.read_text()).items():
                case = Case(**told)
                if case.outcome or name not in found:
                    found[name] = case
        return found

    def text(self) -> str:
        """The page."""
        cases = self._all()
        files: dict[str, list[Case]] = defaultdict(list)
        for name, case in cases.items():
            files[name.partition("::")[0]].append(case)
        minutes = sum(c.seconds for c in cases.values()) / 60
        lines = [
            "# Test report", "",
            "Written by `make test-long`; not edited by hand.", "",
            f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {self._commit}, {_versions()}.",
            f"{_counted(list(cases.values()))}, in {minutes:.0f} minutes of tests and {self._sessions} sessions.", "",
            "| file | cases | passed | failed | skipped | not run | seconds |", "|---|---|---|---|---|---|---|",
        ]  # fmt: skip
        lines += [_line(file, files[file]) for file in sorted(files)]
        lines += ["", "## Failures", ""]
        failed = [(n, c) for n, c in cases.items() if c.outcome == "failed"]
        lines += [f"- `{node}`: {case.reason}" for node, case in failed] or ["None."]
        left = [node for node, case in cases.items() if not case.outcome]
        lines += ["", "## Not run", ""]
        lines += [f"- `{node}`" for node in left[:MOST_LEFT]] or ["None."]
        lines += [f"- and {len(left) - MOST_LEFT} more"] if len(left) > MOST_LEFT else []
        lines += ["", "## Seeds and figures", ""]
        told = [f"- `{n}`: {key} {value}" for n, c in cases.items() for key, value in c.told]
        lines += told or ["None."]
        slowest = sorted(cases.items(), key=lambda item: -item[1].seconds)[:SLOWEST]
        lines += ["", "## Slowest cases, with their fixtures", ""]
        lines += [f"- {case.seconds:.1f} s `{node}`" for node, case in slowest]
        return "\n".join(lines) + "\n"


def _line(file: str, cases: list[Case]) -> str:
    counts = Counter(c.outcome for c in cases)
    seconds = sum(c.seconds for c in cases)
    return (
        f"| `{file}` | {len(cases)} | {counts['passed']} | {counts['failed']} | {counts['skipped']}"
        f" | {counts['']} | {seconds:.0f} |"
    )


def _counted(cases: list[Case]) -> str:
    counts = Counter(c.outcome for c in cases)
    return f"{len(cases)} cases: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped, {counts['']} not run"


def _reason(report: pytest.TestReport) -> str:
    crash: Any = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash else report.longrepr)
    return " ".join(text.split())[:REASON_CHARACTERS]


def tested_commit() -> str:
    """The commit that is checked out; with `-changed` where files differ from it."""
    told = subprocess.run(
        ["git", "describe", "--always", "--exclude=*", "--abbrev=10", "--dirty=-changed"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return told.stdout.strip() or UNKNOWN


def _versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)
