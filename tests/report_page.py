"""The page of what was tested, read and written: a row for each file of tests, with the commit at
which it ran last, and lists of cases. A page that is there is kept where nothing newer is known, so
that sessions of some of the files make one page together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

SLOWEST = 15
MOST_LEFT = 100
NONE = "None."
HEAD = """# Test report

Written by `make test-long`; not edited by hand. What each test holds is in [guarantees.md](guarantees.md).
A file's row is of the commit at which it last ran whole, or at which a case of it failed;
after a plus, of the commit at which cases that had failed or not run passed later.
Files have the names that they had at that commit; `git log --follow` finds those of today.
"""  # noqa: E501
COLUMNS = ("file", "cases", "passed", "failed", "skipped", "not run", "seconds", "commit", "day")
SECTIONS = ("Failures", "Not run", "Seeds and figures", "Slowest cases, with their fixtures")
FAILED, LEFT, REPORTED, SLOW = SECTIONS
_ROW = re.compile(r"\| `([^`]+)` \| " + r"(\d+) \| " * 6 + r"(\S+) \| (\S+) \|")
_CASE = re.compile(r"- (?:([\d.]+) s )?`(([^`:]+)::[^`]*)`")


@dataclass
class Case:
    """How a case ended (passed, failed, skipped; "" while it has not), the seconds of all its
    phases, why it failed, and what it recorded (`record_property`)."""

    outcome: str = ""
    seconds: float = 0.0
    reason: str = ""
    reported: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of a file: its cases, how many of them ended how, how many did not run,
    seconds, and where and when that was."""

    cases: int
    passed: int
    failed: int
    skipped: int
    left: int
    seconds: int
    commit: str
    day: str


@dataclass
class Page:
    """Rows by file, lines of cases by section, and, of a page that was not read, how each case
    ended."""

    rows: dict[str, Row] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=lambda: {s: [] for s in SECTIONS})


def page_of(cases: Mapping[str, Case], commit: str, day: str) -> Page:
    """What sessions at one commit saw."""
    page = Page(ends={name: case.outcome for name, case in cases.items()})
    files: dict[str, list[Case]] = {}
    for name, case in cases.items():
        files.setdefault(name.partition("::")[0], []).append(case)
        if case.outcome == "failed":
            page.lines[FAILED].append(f"- `{name}`: {case.reason}")
        if not case.outcome:
            page.lines[LEFT].append(f"- `{name}`")
        page.lines[REPORTED] += [f"- `{name}`: {key} {value}" for key, value in case.reported]
        page.lines[SLOW].append(f"- {case.seconds:.1f} s `{name}`")
    for file, own in files.items():
        ends = Counter(c.outcome for c in own)
        counts = (len(own), ends["passed"], ends["failed"], ends["skipped"], ends[""])
        page.rows[file] = Row(*counts, round(sum(c.seconds for c in own)), commit, day)
    return page


def read(text: str) -> Page:
    """A page as `written` wrote it; what is not understood is left out."""
    page, section = Page(), ""
    for line in text.splitlines():
        if found := _ROW.match(line):
            file, *numbers, commit, day = found.groups()
            page.rows[file] = Row(*map(int, numbers), commit, day)
        elif line.startswith("## "):
            section = line.removeprefix("## ")
        elif section in page.lines and _CASE.match(line):
            page.lines[section].append(line)
    return page


def joined(old: Page, new: Page, files: Iterable[str]) -> Page:
    """The newer of both for each of the `files` that there are. A run of some of a file's cases
    without a failure does not take the place of one of all: it only tells of those that had failed
    or not run."""
    page = Page()
    for file in sorted(files):
        was, now = old.rows.get(file), new.rows.get(file)
        source = new if _is_better(was, now) else old
        if file not in source.rows:
            continue
        page.rows[file] = source.rows[file]
        for section, lines in page.lines.items():
            lines += [x for x in source.lines[section] if _file(x) == file]
        if source is old and now is not None:
            _catch_up(page, file, new)
    return page


def _is_better(old: Row | None, new: Row | None) -> bool:
    if new is None or old is None:
        return old is None
    return bool(new.failed or not new.left)


def _catch_up(page: Page, file: str, new: Page) -> None:
    """Cases of a file that had failed or not run count as they ended since."""
    row = page.rows[file]
    for section, count in ((FAILED, "failed"), (LEFT, "left")):
        for line in [x for x in page.lines[section] if _file(x) == file]:
            end = new.ends.get(_name(line), "")
            if end not in ("passed", "skipped"):
                continue
            page.lines[section].remove(line)
            changed = {count: getattr(row, count) - 1, end: getattr(row, end) + 1}
            first = row.commit.partition("+")[0]
            row = replace(row, **changed, commit=f"{first}+{new.rows[file].commit}")
    page.rows[file] = row


def _file(line: str) -> str:
    found = _CASE.match(line)
    return found[3] if found else ""


def _name(line: str) -> str:
    found = _CASE.match(line)
    return found[2] if found else ""


def _seconds(line: str) -> float:
    found = _CASE.match(line)
    return float(found[1] or 0) if found else 0.0


def written(page: Page, reported: str) -> str:
    """The page; `reported` is a sentence of where it was written."""
    names = ("cases", "passed", "failed", "skipped", "left", "seconds")
    total = [sum(getattr(row, name) for row in page.rows.values()) for name in names]
    cases, passed, failed, skipped, left, seconds = total
    counted = (
        f"{cases} cases: {passed} passed, {failed} failed, {skipped} skipped, {left} not run, "
        f"in {seconds / 60:.0f} minutes of tests."
    )
    rows = [
        f"| `{file}` | {r.cases} | {r.passed} | {r.failed} | {r.skipped} | {r.left} | "
        f"{r.seconds} | {r.commit} | {r.day} |"
        for file, r in sorted(page.rows.items())
    ]
    head = f"| {' | '.join(COLUMNS)} |"
    out = [HEAD, reported, counted, "", head, "|---" * len(COLUMNS) + "|", *rows]
    shown = {
        **page.lines,
        LEFT: page.lines[LEFT][:MOST_LEFT],
        SLOW: sorted(page.lines[SLOW], key=_seconds, reverse=True)[:SLOWEST],
    }
    for section, lines in shown.items():
        unnamed = left - len(lines) if section == LEFT else 0
        more = [f"{unnamed} of the files with cases «not run» above."] if unnamed > 0 else []
        out += ["", f"## {section}", "", *(lines + more or [NONE])]
    return "\n".join(out) + "\n"
