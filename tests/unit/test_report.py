"""The page that `make test-long` writes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.report import Report


def case(outcome: str, *, when: str = "call", name: str = "test_a", **more: object) -> pytest.TestReport:  # fmt: skip
    return pytest.TestReport(
        nodeid=f"tests/unit/test_x.py::{name}", location=("x", 1, name), keywords={},
        outcome=outcome, longrepr=more.pop("longrepr", None), when=when, duration=2.0, **more,
    )  # type: ignore[arg-type]  # fmt: skip


def done(folder: Path, *cases: pytest.TestReport, commit: str = "abc") -> str:
    """The page after a session with these."""
    report = Report(folder / "report.md", folder / "parts", commit)
    for one in cases:
        report.pytest_runtest_logreport(one)
    report.pytest_sessionfinish()
    return (folder / "report.md").read_text()


def test_it_counts_cases_and_keeps_failures_seeds_and_durations(tmp_path: Path) -> None:
    """A report that left out a failure, or an error of a fixture, would be worse than none."""
    text = done(
        tmp_path,
        case("passed", when="setup"),
        case("passed", user_properties=[("seed", 7)]),
        case("failed", name="test_b", longrepr="assert 1 == 2"),
        case("failed", when="setup", name="test_c", longrepr="no disk"),
        case("skipped", when="setup", name="test_d"),
        case("passed", name="test_e"),
        case("failed", when="teardown", name="test_e", longrepr="still open"),
    )
    assert "5 cases: 1 passed, 3 failed, 1 skipped, 0 not run" in text
    assert "| `tests/unit/test_x.py` | 5 | 1 | 3 | 1 | 0 | 14 |" in text
    assert "- `tests/unit/test_x.py::test_b`: assert 1 == 2" in text
    assert "- `tests/unit/test_x.py::test_c`: no disk" in text
    assert "- `tests/unit/test_x.py::test_e`: still open" in text
    assert "- `tests/unit/test_x.py::test_a`: seed 7" in text
    assert "- 4.0 s `tests/unit/test_x.py::test_a`" in text


def test_parts_of_one_commit_are_one_page_and_the_last_end_of_a_case_counts(tmp_path: Path) -> None:
    """Another commit's results must not be taken for this one's."""
    done(tmp_path, case("passed", name="test_old"), commit="older")
    done(tmp_path, case("failed", longrepr="no disk"), case("passed", name="test_b"))
    text = done(tmp_path, case("passed"))
    assert "2 cases: 2 passed, 0 failed, 0 skipped, 0 not run" in text and "2 sessions" in text
    assert "no disk" not in text and "test_old" not in text and "commit abc" in text


def test_a_case_that_no_part_ran_is_listed(tmp_path: Path) -> None:
    """Otherwise a page of some of the cases looks like one of all."""
    for ran in ("test_a", "test_b"):
        report = Report(tmp_path / "report.md", tmp_path / "parts", "abc")
        names = ("test_a", "test_b", "test_c")
        items = [SimpleNamespace(nodeid=f"tests/unit/test_x.py::{n}") for n in names]
        report.pytest_collection_modifyitems(items)  # type: ignore[arg-type]
        report.pytest_runtest_logreport(case("passed", name=ran))
        report.pytest_sessionfinish()
    text = (tmp_path / "report.md").read_text()
    assert "3 cases: 2 passed, 0 failed, 0 skipped, 1 not run" in text
    assert text.count("::test_c`") == 2 and "## Not run\n\n- `tests/unit/test_x.py::test_c`" in text
