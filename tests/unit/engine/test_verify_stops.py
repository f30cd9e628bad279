"""A verification that is asked to stop while a long job of Spark goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from runners.engine.verify import reading
from runners.engine.verify.following import Stopped
from runners.engine.verify.reading import Source, Tools
from runners.engine.verify.throttle import Throttle

SECONDS = 30.0


class LongJob:
    """Tasks whose job goes on until the test lets it end."""

    spark, folder = None, ""

    def __init__(self) -> None:
        self.has_begun, self.may_end, self.has_ended = (threading.Event() for _ in range(3))

    def map(self, function: Callable[[Any], Any], items: Sequence[Any], **_: Any) -> list[Any]:
        self.has_begun.set()
        assert self.may_end.wait(SECONDS)
        self.has_ended.set()
        return [function(i) for i in items]


class Session:
    def is_alive(self) -> bool:
        return True


@pytest.mark.timeout(60)
def test_a_stop_does_not_wait_for_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards a cancelled verification: it ends while its job still reads."""
    monkeypatch.setattr(reading, "TURN_SECONDS", 0.01)
    job = LongJob()
    tools = Tools(job, Throttle(0, 0, job.has_begun.is_set), job.has_begun.is_set)
    source = Source(cast(Any, Session()), cast(Any, None))
    try:
        with pytest.raises(Stopped):
            list(source.mapped(tools, str, cast(Any, [1, 2])))
        assert not job.has_ended.is_set()
    finally:
        job.may_end.set()
    assert job.has_ended.wait(SECONDS)


def test_without_a_stop_every_chunk_is_read() -> None:
    job = LongJob()
    job.may_end.set()
    tools = Tools(job, Throttle(0, 0, lambda: False), lambda: False)
    source = Source(cast(Any, Session()), cast(Any, None))
    assert list(source.mapped(tools, str, cast(Any, [1, 2]))) == [["1", "2"]]
