"""The page that `make test-long` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report import Report


def case(outcome: str, *, when: str = "call", name: str = "test_a", **more: object) -> pytest.TestReport:  # fmt: skip
    return pytest.TestReport(
        nodeid=f"tests/unit/test_x.py::{name}", location=("x", 1, name), keywords={},
        outcome=outcome, longrepr=more.pop("longrepr", None), when=when, duration=2.0, **more,
    )  # type: ignore[arg-type]  # fmt: skip


def test_it_counts_cases_and_keeps_failures_seeds_and_durations(tmp_path: Path) -> None:
    """A report that left out a failure, or an error of a fixture, would be worse than none."""
    report = Report(tmp_path / "report.md")
    report.pytest_runtest_logreport(case("passed", when="setup"))
    report.pytest_runtest_logreport(case("passed", user_properties=[("seed", 7)]))
    report.pytest_runtest_logreport(case("failed", name="test_b", longrepr="assert 1 == 2"))
    report.pytest_runtest_logreport(case("failed", when="setup", name="test_c", longrepr="no disk"))
    report.pytest_runtest_logreport(case("skipped", when="setup", name="test_d"))
    report.pytest_sessionfinish()
    text = (tmp_path / "report.md").read_text()
    assert "4 cases: 1 passed, 2 failed, 1 skipped" in text
    assert "| `tests/unit/test_x.py` | 4 | 1 | 2 | 1 | 10 |" in text
    assert "- `tests/unit/test_x.py::test_b`: assert 1 == 2" in text
    assert "- `tests/unit/test_x.py::test_c`: no disk" in text
    assert "- `tests/unit/test_x.py::test_a`: seed 7" in text
    assert "- 2.0 s `tests/unit/test_x.py::test_a`" in text
