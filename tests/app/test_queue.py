"""Sending a task never makes a page wait for a broker that is away."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import Any

import pytest

from runners.supervision import dispatch


@pytest.mark.parametrize("listens", [True, False])
def test_a_task_goes_only_to_a_broker_that_listens(
    settings: Any, monkeypatch: pytest.MonkeyPatch, listens: bool
) -> None:
    """The look for a listener before Celery tries for seconds."""
    sent: list[str] = []
    monkeypatch.setattr(dispatch.current_app, "send_task", lambda name, **more: sent.append(name))
    with closing(socket.socket()) as place:
        place.bind(("127.0.0.1", 0))
        if listens:
            place.listen()
        settings.REDIS_URL = f"redis://127.0.0.1:{place.getsockname()[1]}/0"
        dispatch.send("reconcile_runs")
    assert sent == (["runners.tasks.reconcile_runs"] if listens else [])
