"""How long a process waits for answers of an HTTP service: the service's part of a figure."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from requests.adapters import HTTPAdapter

Span = tuple[float, float]


class Waits:
    """Times (seconds since the epoch) at which a request began and its answer had come."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.spans: list[Span] = []

    def add(self, began: float, ended: float) -> None:
        """Note a request."""
        with self._lock:
            self.spans.append((began, ended))

    def write(self, path: Path) -> None:
        """Replace a file by what is known."""
        with self._lock:
            text = json.dumps(self.spans)
        part = path.with_suffix(".part")
        part.write_text(text)
        part.replace(path)


@contextmanager
def counted() -> Iterator[Waits]:
    """Note each request that this process sends by `requests`, until the end."""
    waits, send = Waits(), HTTPAdapter.send

    def timed(*args: Any, **options: Any) -> Any:
        began = time.time()
        try:
            return send(*args, **options)
        finally:
            waits.add(began, time.time())

    _replace(timed)
    try:
        yield waits
    finally:
        _replace(send)


def _replace(send: Callable[..., Any]) -> None:
    HTTPAdapter.send = send  # type: ignore[method-assign]


def read(path: Path) -> list[Span]:
    """What another process wrote; nothing where it wrote nothing."""
    try:
        return [(float(a), float(b)) for a, b in json.loads(path.read_text())]
    except (OSError, ValueError):
        return []


def within(spans: Iterable[Span], since: float, until: float) -> float:
    """The seconds of an interval in which at least one request was under way."""
    waited, upto = 0.0, since
    for began, ended in sorted(spans):
        low, high = max(began, upto), min(ended, until)
        if high > low:
            waited, upto = waited + high - low, high
    return waited
