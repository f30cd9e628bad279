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
    ("size", "jobs"), [(BYTES_HERE // 2, 0), (BYTES_HERE // 2 + 1, 1), (BYTES_HERE * 9, 1)]
)
def test_few_bytes_are_decoded_without_a_job(tmp_path: Path, size: int, jobs: int) -> None:
    """Two segments. Guards many small replicators on one Spark: a job for each of their changes
    would take the cores. Guards large segments, which belong into tasks."""
    log = ChangeLog(str(tmp_path), "here", "test", "")
    rows = []
    for number in (1, 2):
        sealed = log.begin_segment(number, {"segment": number}).seal()
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
        lambda table, code, _: None,
    )  # fmt: skip
    assert decoding._decode_some()
    assert tasks.jobs == jobs
    assert [s.is_decoded for s in store.segments()] == [True, True]
    assert not decoding._decode_some()
    assert replace(rows[0], is_decoded=True) in store.segments()
