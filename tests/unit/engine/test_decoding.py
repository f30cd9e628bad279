"""Where segments are decoded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.model.positions import Position
from runners.engine.changelog.backlog import Backlog
from runners.engine.changelog.segments import ChangeLog
from runners.engine.decode.thread import BYTES_HERE, Decoding
from runners.engine.store.protocol import MemoryStore, SegmentRow


def nothing(head: dict[str, Any], body: Any, segment: int) -> Iterator[Any]:
    """A decoder of segments without changes."""
    return iter(())


def grows(body: Any) -> bool:
    """Whether a segment of these tests is compressed: it says so."""
    return bytes(body) == b"compressed"


class CountedTasks:
    """Runs tasks here, and counts jobs."""

    def __init__(self) -> None:
        self.jobs = 0

    def map(
        self, function: Callable[[Any], Any], items: Sequence[Any], *, is_urgent: bool = False
    ) -> list[Any]:
        self.jobs += 1
        return [function(item) for item in items]


@pytest.mark.parametrize(
    ("size", "body", "jobs"),
    [
        (BYTES_HERE // 2, b"", 0),
        (BYTES_HERE // 2, b"compressed", 1),
        (BYTES_HERE // 2 + 1, b"", 1),
        (BYTES_HERE * 9, b"", 1),
    ],
)
def test_few_bytes_are_decoded_without_a_job(
    tmp_path: Path, size: int, body: bytes, jobs: int
) -> None:
    """Two segments. Guards many small replicators on one Spark: a job for each of their changes
    would take the cores. Guards large segments, and compressed ones, which belong into tasks: they
    would take the run's own memory."""
    log = ChangeLog(str(tmp_path), "here", "test", "")
    rows = []
    for number in (1, 2):
        file = log.begin_segment(number, {"segment": number})
        file.append(body)
        sealed = file.seal()
        rows.append(
            SegmentRow(
                number=number, path=sealed.path, size_bytes=size, crc32=sealed.crc32,
                position=Position(number), is_closed=True, is_decoded=False, sealed_at=1,
            )
        )  # fmt: skip
    tasks, backlog = CountedTasks(), Backlog(rows, 2)
    store = MemoryStore()
    for row in rows:
        store.record_segment(row, row.position)
    watchdog: Any = type("W", (), {"step": lambda *_: nullcontext()})()
    decoding = Decoding(
        tasks, f"{__name__}:nothing", store, log, backlog, watchdog, threading.Event(),
        lambda table, code, _: None, grows=f"{__name__}:grows",
    )  # fmt: skip
    assert decoding._decode_some()
    assert tasks.jobs == jobs
    assert [s.is_decoded for s in store.segments()] == [True, True]
    assert not decoding._decode_some()
    assert replace(rows[0], is_decoded=True) in store.segments()
