"""The order of files where two processes share a suite (`make test`)."""

from __future__ import annotations

from collections.abc import Sequence

BUSY = {"crash", "e2e", "model", "spark"}
"""Folders whose files start JVMs, browsers or the demo. One file keeps more than a core busy. Those
of other folders wait for servers half of their time."""
SPREAD = 0.9
"""The last tenth has short files only, so that no process is left with a long one."""


def folder(file: str) -> str:
    """`crash` of `tests/crash/test_sink.py`."""
    return file.split("/")[1] if "/" in file else ""


def turns(files: Sequence[str]) -> dict[str, float]:
    """The place of each file: the busy ones are spread evenly among the others. With one after the
    other, both processes would start JVMs at the same time, and wait at the same time."""
    busy = [f for f in files if folder(f) in BUSY]
    others = [f for f in files if folder(f) not in BUSY]
    found = {f: SPREAD * at / len(busy) for at, f in enumerate(busy)}
    return found | {f: at / len(others) for at, f in enumerate(others)}
