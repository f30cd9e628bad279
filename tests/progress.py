"""What is reported beside pytest's own lines: a failure at once, since a run that is broken off
tells nothing at its end, and at the end the time of each suite, of the longest files, of plugins
whose own tests take too long, and of all."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests import plugin_minutes

BUDGET_MINUTES = 25
"""What `make test` may take on two cores."""
LONGEST_FILES = 40
"""Of so many the seconds are said: what makes `make test` shorter begins with these."""


class Progress:
    """A plugin for the terminal."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._begun = time.monotonic()
        self._seconds: Counter[str] = Counter()
        self._files: Counter[str] = Counter()
        self._walks: list[str] = []

    @property
    def _terminal(self) -> Any:
        return self._config.pluginmanager.getplugin("terminalreporter")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one case."""
        self._seconds["/".join(report.nodeid.split("/")[:2])] += report.duration
        self._files[plugin_minutes.file_of(report.nodeid)] += report.duration
        if report.when == "call":
            walks = [str(v) for k, v in report.user_properties if k == "walk"]
            self._walks += [f"{report.nodeid.split('::')[-1]}: {walk}" for walk in walks]
        if report.failed:
            self._terminal.ensure_newline()
            self._terminal.write_sep("-", f"{report.nodeid} ({report.when})")
            self._terminal.write_line(report.longreprtext)

    def pytest_terminal_summary(self) -> None:
        """Minutes of all, seconds by suite (of tests, which may run side by side), and what the
        adversary's walks say of themselves."""
        for walk in self._walks:
            self._terminal.write_line(walk)
        reported = (f"{suite} {seconds:.0f} s" for suite, seconds in self._seconds.items())
        self._terminal.write_line(", ".join(reported))
        longest = (f"{f} {s:.0f} s" for f, s in self._files.most_common(LONGEST_FILES))
        self._terminal.write_line(f"Longest files: {', '.join(longest)}")
        known = plugin_minutes.plugins()
        if over := plugin_minutes.over(self._files, known):
            most = f"of {plugin_minutes.MOST_SECONDS} s for a plugin's own tests"
            self._terminal.write_line(f"Too long: {', '.join(over)}, {most}")
        if named := self._config.getoption("--plugin-minutes"):
            Path(named).write_text(plugin_minutes.table(self._files, known))
        minutes = (time.monotonic() - self._begun) / 60
        self._terminal.write_line(f"{minutes:.1f} minutes, of {BUDGET_MINUTES} for `make test`")
