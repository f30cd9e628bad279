"""The path of the files: which parts are a table's name and a delivery's name, and which files
fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from pyarrow import fs

from replicators.connectors.files import open_url
from replicators.connectors.locations import location_fault

_PLACE = re.compile(r"\{(\w*)\}|\*")
_KNOWN = ("table", "delivery")
_QUIET = ("_", ".")


def fault(text: str) -> str:
    """What is wrong with the path, as a sentence."""
    if not text:
        return ""
    named = [m[1] for m in _PLACE.finditer(text) if m[0] != "*"]
    odd = [n for n in named if n not in _KNOWN]
    if odd:
        return f"may have only {{table}}, {{delivery}} and * , not {{{odd[0]}}}"
    if len(set(named)) < len(named):
        return "may have {table} and {delivery} only once"
    if not _parts(text)[1]:
        return "must name a file below a folder"
    return location_fault(_PLACE.sub("x", text))


def _parts(text: str) -> tuple[str, list[str]]:
    """The folder before the first part that varies, and the parts below it."""
    head, mark, rest = text.partition("://")
    names = (rest if mark else head).split("/")
    at = next((i for i, n in enumerate(names) if _PLACE.search(n)), len(names) - 1)
    folder = "/".join(names[:at]) or ("" if mark else "/")
    return (f"{head}://{folder}" if mark else folder), [n for n in names[at:] if n]


def fixed_folder(text: str) -> str:
    """The folder that all files lie in."""
    return _parts(text)[0]


def default_table(text: str) -> str:
    """The table's name where the path has no {table}: the name of the file, or of the folder that
    the files lie in."""
    folder, names = _parts(text)
    if len(names) == 1 and not _PLACE.search(names[0]):
        return names[0].partition(".")[0]
    return urlsplit(folder).path.rstrip("/").rpartition("/")[2] or "rows"


@dataclass(frozen=True, slots=True)
class Found:
    """A file that fits. `table` and `delivery` are empty where the path does not name them."""

    path: str
    folder: str
    table: str
    delivery: str
    size: int
    changed_at: float


def found(text: str) -> Iterator[Found]:
    """All files that fit. A folder at the last part stands for the files in it. Names that begin
    with _ or . are left out. OSError; FileNotFoundError where the fixed folder does not exist."""
    folder, names = _parts(text)
    system, inner = open_url(folder)
    if system.get_file_info(inner).type != fs.FileType.Directory:
        raise FileNotFoundError(folder)
    prefix = folder[: len(folder) - len(inner)] if folder.endswith(inner) else ""
    tests = [_test(name) for name in names]
    yield from _walk(system, inner.rstrip("/") or "/", tests, {}, prefix)


def _test(name: str) -> re.Pattern[str]:
    at, text = 0, ""
    for place in _PLACE.finditer(name):
        text += re.escape(name[at : place.start()])
        text += "[^/]*" if place[0] == "*" else f"(?P<{place[1]}>[^/]+?)"
        at = place.end()
    return re.compile(text + re.escape(name[at:]))


def _walk(
    system: fs.FileSystem,
    folder: str,
    tests: list[re.Pattern[str]],
    named: dict[str, str],
    prefix: str,
) -> Iterator[Found]:
    infos = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    for info in sorted(infos, key=lambda i: i.base_name):
        match = tests[0].fullmatch(info.base_name) if tests else None
        if info.base_name.startswith(_QUIET) or (tests and match is None):
            continue
        here = named | (match.groupdict() if match else {})
        if info.type == fs.FileType.Directory and tests:
            yield from _walk(system, info.path, tests[1:], here, prefix)
        elif info.type == fs.FileType.File and len(tests) <= 1:
            yield Found(
                prefix + info.path,
                prefix + folder,
                here.get("table", ""),
                here.get("delivery", ""),
                info.size or 0,
                (info.mtime_ns or 0) / 1e9,
            )
