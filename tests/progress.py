"""What is told while the suite runs: a failure at once, since a run that is broken off tells nothing at its end; where several processes
share the files (`-n`), a line for each file that is done; at the end the time of each suite."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import pytest


class Progress:
    """A plugin of the process that shows the output."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._left: dict[str, set[str]] = defaultdict(set)
        self._outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self._seconds: Counter[str] = Counter()

    @property
    def _terminal(self) -> Any:
        return self._config.pluginmanager.getplugin("terminalreporter")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: Sequence[str]) -> None:
        """Every process collects all; which of them runs what is decided later."""
        for name in ids:
            self._left[_file(name)].add(name)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Where files are told, what passed has no dot."""
        if not (hasattr(report, "node") and report.passed):
            return None
        return ("passed" if report.when == "call" else "", "", "")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one case."""
        name = _file(report.nodeid)
        self._seconds[name] += report.duration
        if report.failed:
            self._terminal.ensure_newline()
            self._terminal.write_sep("-", f"{report.nodeid} ({report.when})")
            self._terminal.write_line(report.longreprtext)
        if not hasattr(report, "node"):
            return
        if report.when == "call" or not report.passed:
            self._outcomes[name][report.outcome] += 1
        if report.when == "teardown":
            self._left[name].discard(report.nodeid)
            if not self._left[name]:
                told = ", ".join(f"{n} {outcome}" for outcome, n in self._outcomes[name].items())
                self._terminal.ensure_newline()
                self._terminal.write_line(f"{name}: {told}, {self._seconds[name]:.1f} s")

    def pytest_terminal_summary(self) -> None:
        """Seconds of tests, which may run side by side."""
        suites: Counter[str] = Counter()
        for name, seconds in self._seconds.items():
            suites["/".join(name.split("/")[:2])] += seconds
        told = ", ".join(f"{suite} {seconds:.0f} s" for suite, seconds in suites.items())
        self._terminal.write_line(told)


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]
