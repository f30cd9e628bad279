"""The client of docs/subscribers.md, as it stands there, against a real server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.contract.sink import Change
from replicators.connectors.model.changes import Op
from replicators.tokens import token_create
from runners.subscribing.services import subscriber_register
from tests.app.factories import make_user
from tests.app.subscriber_world import FeedWorld

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = Path(__file__).resolve().parents[2] / "docs/subscribers.md"


def test_the_client_of_the_page_follows_every_change(
    tmp_path: Path, live_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the page: a snapshot at the start, the changes after it, and a new copy on the way."""
    world = FeedWorld(tmp_path)
    subscriber_register(replicator=world.replicator, name="search", actor=None)
    world.copy([(1, "a"), (2, "b")])
    world.change(Change(11, Op.INSERT, 3, "c", 11), Change(12, Op.DELETE, 1, at=12))
    where = f"{live_server.url}/api/v1/replicators/{world.replicator.pk}/subscribers/search/"
    reader = make_user("reader", "editor")
    _, token = token_create(user=reader, name="client", scope="read")
    monkeypatch.setenv("SUBSCRIBER_URL", where)
    monkeypatch.setenv("REPLICATOR_TOKEN", token)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - our own page

    rows: dict[int, str] = {}
    copies = 0

    def handle(line: dict[str, Any]) -> None:
        nonlocal copies
        if line["type"] == "snapshot":
            rows.clear()
            copies += 1
        elif line["type"] == "change" and line["operation"] == "delete":
            rows.pop(line["key"][0], None)
        elif line["type"] == "change":
            rows[line["key"][0]] = line["value"]["note"]

    names["follow"](handle, lambda: rows == {2: "b", 3: "c"})
    world.change(Change(13, Op.UPDATE, 2, "x", 13))
    names["follow"](handle, lambda: rows == {2: "x", 3: "c"})
    assert copies == 2, "the first call ended before it confirmed its snapshot"
    world.copy([(9, "new")], at=50)
    world.change(Change(51, Op.INSERT, 10, "more", 51))
    names["follow"](handle, lambda: rows == {9: "new", 10: "more"})
    assert copies == 3
