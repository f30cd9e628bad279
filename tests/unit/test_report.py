"""The page that `make test-long` writes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.report import Report

X = "tests/unit/test_x.py"


def case(
    outcome: str, *, when: str = "call", name: str = "test_a", file: str = X, **more: object
) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=f"{file}::{name}", location=("x", 1, name), keywords={},
        outcome=outcome, longrepr=more.pop("longrepr", None), when=when, duration=2.0, **more,
    )  # type: ignore[arg-type]  # fmt: skip


def done(folder: Path, *cases: pytest.TestReport, commit: str = "abc") -> str:
    """The page after a session with these."""
    report = Report(folder / "report.md", folder / "parts", commit, folder)
    for one in cases:
        file = folder / one.nodeid.partition("::")[0]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
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
    assert "| `tests/unit/test_x.py` | 5 | 1 | 3 | 1 | 0 | 14 | abc | 20" in text
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
    assert "2 cases: 2 passed, 0 failed, 0 skipped, 0 not run" in text
    assert "no disk" not in text and "test_old" not in text and "| 4 | abc |" in text


def test_a_file_that_did_not_run_again_keeps_its_row_with_its_commit(tmp_path: Path) -> None:
    """Without it, what is run in parts on different days would never be on a page as a whole."""
    other = "tests/unit/test_y.py"
    seed = [("seed", 7)]
    done(tmp_path, case("failed", file=other, longrepr="no disk", user_properties=seed),
        commit="older")  # fmt: skip
    text = done(tmp_path, case("passed"))
    assert "2 cases: 1 passed, 1 failed" in text
    assert f"| `{other}` | 1 | 0 | 1 | 0 | 0 | 2 | older |" in text
    assert f"| `{X}` | 1 | 1 | 0 | 0 | 0 | 2 | abc |" in text
    assert f"- `{other}::test_a`: no disk" in text and f"- `{other}::test_a`: seed 7" in text
    assert f"- 2.0 s `{other}::test_a`" in text
    text = done(tmp_path, case("passed", file=other), commit="newer")
    assert "2 cases: 2 passed, 0 failed" in text and "no disk" not in text
    (tmp_path / other).unlink()
    assert other not in done(tmp_path, case("passed"), commit="newer")


def partly(folder: Path, *ran: pytest.TestReport, commit: str = "abc") -> str:
    """The page after a session that collected three cases and ran these."""
    report = Report(folder / "report.md", folder / "parts", commit, folder)
    (folder / X).parent.mkdir(parents=True, exist_ok=True)
    (folder / X).touch()
    items = [
        SimpleNamespace(nodeid=f"{X}::{n}", path=folder / X) for n in ("test_a", "test_b", "test_c")
    ]
    report.pytest_collection_modifyitems(items)  # type: ignore[arg-type]
    for one in ran:
        report.pytest_runtest_logreport(one)
    report.pytest_sessionfinish()
    return (folder / "report.md").read_text()


def test_a_case_that_no_part_ran_is_listed(tmp_path: Path) -> None:
    """Otherwise a page of some of the cases looks like one of all."""
    partly(tmp_path, case("passed"))
    text = partly(tmp_path, case("passed", name="test_b"))
    assert "3 cases: 2 passed, 0 failed, 0 skipped, 1 not run" in text
    assert text.count("::test_c`") == 2 and f"## Not run\n\n- `{X}::test_c`" in text


def test_some_cases_of_a_file_take_the_place_of_all_only_where_one_fails(tmp_path: Path) -> None:
    """What was seen whole is not forgotten for a part, and a failure is never hidden by an older
    success."""
    partly(tmp_path, *(case("passed", name=n) for n in ("test_a", "test_b", "test_c")),
        commit="whole")  # fmt: skip
    assert f"| `{X}` | 3 | 3 | 0 | 0 | 0 | 6 | whole |" in partly(tmp_path, case("passed"),
        commit="part")  # fmt: skip
    assert f"| `{X}` | 3 | 3 | 0 | 0 | 0 | 6 | whole |" in partly(tmp_path, commit="none")
    text = partly(tmp_path, case("failed", longrepr="assert 1 == 2"), commit="bad")
    assert f"| `{X}` | 3 | 0 | 1 | 0 | 2 | 2 | bad |" in text and "assert 1 == 2" in text


def test_a_case_that_passes_later_is_counted_so_and_both_commits_are_named(tmp_path: Path) -> None:
    """Otherwise one failure of a file of hours stays on the page until all of it has run again."""
    bad = case("failed", name="test_b", longrepr="assert 1 == 2")
    partly(tmp_path, case("passed"), bad, commit="bad")
    text = partly(tmp_path, case("passed", name="test_b"), commit="mended")
    assert f"| `{X}` | 3 | 2 | 0 | 0 | 1 | 4 | bad+mended |" in text and "1 == 2" not in text
    text = partly(tmp_path, case("passed"), commit="other")
    assert f"| `{X}` | 3 | 2 | 0 | 0 | 1 | 4 | bad+mended |" in text, (
        "nothing new was told of these"
    )
    text = partly(tmp_path, case("skipped", name="test_c"), commit="last")
    assert f"| `{X}` | 3 | 2 | 0 | 1 | 0 | 4 | bad+last |" in text
    assert "## Not run\n\nNone.\n\n" in text


def test_a_case_is_named_by_its_file_here_wherever_pytest_counts_from(tmp_path: Path) -> None:
    """With a page in another folder pytest takes that one for its root, and names cases without
    their files: their results were on no line of the page."""
    (tmp_path / X).parent.mkdir(parents=True)
    (tmp_path / X).touch()
    report = Report(tmp_path / "report.md", tmp_path / "parts", "abc", tmp_path)
    item = SimpleNamespace(nodeid="::test_a", path=tmp_path / X)
    report.pytest_collection_modifyitems([item])  # type: ignore[list-item]
    report.pytest_runtest_logreport(case("passed", file=""))
    report.pytest_sessionfinish()
    assert f"| `{X}` | 1 | 1 | 0 |" in (tmp_path / "report.md").read_text()
