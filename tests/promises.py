"""The one list of what is promised and of the tests that hold it, `promises.toml`, and the page
that is made of it.

`python -m tests.promises docs/guarantees.md` (in `make docs`) writes the page."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NotRequired, TypedDict

TESTS = Path(__file__).resolve().parent
LIST = TESTS / "promises.toml"
PAGE = TESTS.parent / "docs" / "guarantees.md"
HEAD = """# Guarantees

Made by `make docs` from `tests/promises.toml`; change that file, not this one.

What a replicator promises, and the tests that hold it. A promise's test fails when the mechanism behind it is switched off.
Tests are named by file under `tests/` and by name. `long` tests run in `make test-long` only.
[test-report.md](test-report.md) says how each file's tests ended last, and at which commit.

How to check a copy of your own from outside:
`python -m tests.model.verify shop.orders --source postgresql://... --warehouse ... --catalog-uri sqlite:///...`
(or `mysql://...`).
"""  # noqa: E501
FOOT = """
Not promised yet: updates and deletes of tables that have neither a key nor REPLICA IDENTITY FULL (they are appended to;
the assessment says so), and a walk of the adversary longer than those of `docs/nemesis.md`.
"""  # noqa: E501


class Promise(TypedDict):
    """Without `tests`, `no_test` says what shows it instead ("watched"), or "not shown"."""

    text: str
    how: NotRequired[str]
    tests: NotRequired[list[str]]
    no_test: NotRequired[str]


class Area(TypedDict):
    """Promises about one thing."""

    title: str
    text: NotRequired[str]
    promise: list[Promise]


def areas() -> list[Area]:
    """The list."""
    found: list[Area] = tomllib.loads(LIST.read_text(encoding="utf-8"))["area"]
    return found


def named_tests() -> list[str]:
    """Every test that a promise names."""
    return [test for area in areas() for one in area["promise"] for test in one.get("tests", [])]


def page(listed: Iterable[Area]) -> str:
    """The text of the page."""
    return "\n".join([HEAD, *(line for area in listed for line in _section(area))]) + FOOT


def _section(area: Area) -> Iterator[str]:
    yield f"## {area['title']}\n"
    if text := area.get("text"):
        yield f"{text}\n"
    yield "| promise | how it is kept, and what is open | held by |"
    yield "|---|---|---|"
    for one in area["promise"]:
        held = ", ".join(f"`{test}`" for test in one.get("tests", [])) or one.get("no_test", "")
        yield f"| {one['text']} | {one.get('how', '')} | {held} |"
    yield ""


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else PAGE).write_text(page(areas()), encoding="utf-8")
