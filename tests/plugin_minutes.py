"""Whose tests take how long: a plugin's own tests may take three minutes of `make test`. `pytest
--plugin-minutes docs/plugin-tests.md` writes the table of what just ran.

A plugin's own tests are the files named after it in `unit`, `contract`, `spark` and `integration`:
`test_<plugin>.py`, `test_<plugin>_<about>.py`, and `test_<plugin>_target_<about>.py` of a target
that has a source of the same name. Everything else that names a plugin tests the engine with it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

MOST_SECONDS = 180
SUITES = ("unit", "contract", "spark", "integration")
ROOT = Path(__file__).resolve().parents[1]
HEAD = f"""# Minutes of each plugin's own tests

Written by `pytest --plugin-minutes docs/plugin-tests.md`; not edited by hand.

A plugin's own tests may take {MOST_SECONDS // 60} minutes of `make test` on two cores. They are the
files `test_<plugin>*.py` in {", ".join(f"`tests/{s}`" for s in SUITES)}. A target that
has a source of the same name calls its files `test_<plugin>_target*.py`. Tests of the engine that
name a plugin (`crash`, `e2e`, `test_engine_*`) are in the last column, and have no limit of their
own.

| plugin | unit | contract | spark | integration | own tests | limit | engine's tests with it |
|---|---|---|---|---|---|---|---|
"""


def plugins(root: Path = ROOT) -> list[tuple[str, str]]:
    """Role and name of each plugin of this repository."""
    return [
        (role, folder.name)
        for role in ("source", "target")
        for folder in sorted((root / "replicators" / f"{role}s").iterdir())
        if (folder / "__init__.py").is_file()
    ]


def owner(file: str, known: Iterable[tuple[str, str]]) -> tuple[str, str, bool] | None:
    """Role and name of the plugin that a file of tests belongs to, and whether the test is the
    plugin's own; None where the file names no plugin."""
    parts = Path(file).parts
    words = Path(file).stem.removeprefix("test_").split("_")
    roles = {name: [r for r, n in known if n == name] for _, name in known}
    for at, word in enumerate(words):
        if word not in roles:
            continue
        is_own = at == 0 and parts[1] in SUITES
        return _role(parts, words[at + 1 :], roles[word]), word, is_own
    return None


def _role(parts: tuple[str, ...], after: list[str], roles: list[str]) -> str:
    for role in ("source", "target"):
        if f"{role}s" in parts or after[:1] == [role]:
            return role
    return roles[0]


def table(seconds: Mapping[str, float], known: Iterable[tuple[str, str]]) -> str:
    """The page; `seconds` by file of tests."""
    known = list(known)
    own: Counter[tuple[str, str, str]] = Counter()
    engine: Counter[tuple[str, str]] = Counter()
    for file, took in seconds.items():
        found = owner(file, known)
        if found is None:
            continue
        role, name, is_own = found
        if is_own:
            own[role, name, Path(file).parts[1]] += took
        else:
            engine[role, name] += took
    lines = []
    for role, name in known:
        by_suite = [own[role, name, suite] for suite in SUITES]
        total = sum(by_suite)
        cells = [*by_suite, total, engine[role, name]]
        shown = [f"{seconds:.0f} s" if seconds else "" for seconds in cells]
        shown.insert(-1, "over" if total > MOST_SECONDS else "within")
        lines.append(f"| {' | '.join([f'{role} {name}', *shown])} |")
    return HEAD + "\n".join(lines) + "\n"


def over(seconds: Mapping[str, float], known: Iterable[tuple[str, str]]) -> list[str]:
    """The plugins whose own tests take longer than they may, with their seconds."""
    known = list(known)
    took: Counter[str] = Counter()
    for file, part in seconds.items():
        found = owner(file, known)
        if found and found[2]:
            took[f"{found[0]} {found[1]}"] += part
    return [f"{name} {part:.0f} s" for name, part in took.items() if part > MOST_SECONDS]


_FILE = re.compile(r"^[^:]+")


def file_of(nodeid: str) -> str:
    """The file of a case."""
    found = _FILE.match(nodeid)
    return found[0] if found else nodeid
