"""What is kept for subscribers: until the slowest has read it, up to the limits; and the page."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from replicators.connectors.contract.sink import START, Change
from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import String
from runners.models import Event
from runners.subscribers import Subscriber
from runners.subscribing import keeping
from runners.subscribing.feeds import feed_of, forget, kept_table
from runners.subscribing.waiting import Waiter
from tests.app.subscriber_world import SCHEMA, FeedWorld, Reader, found

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(tmp_path: Path) -> FeedWorld:
    made = FeedWorld(tmp_path, keep_hours=24)
    made.copy([(1, "a"), (2, "b")])
    return made


@pytest.fixture
def reader(world: FeedWorld, browser: Client) -> Reader:
    made = Reader(browser, world)
    made.register()
    return made


def keep(world: FeedWorld, hours: float) -> None:
    """The task's turn, so many hours after the first change. It is another process than the one
    that readers ask, which has nothing in its memory then."""
    now = datetime.fromtimestamp(START.timestamp(), UTC) + timedelta(hours=hours)
    keeping.keep_feeds(now)
    forget()


def kept(world: FeedWorld) -> Any:
    table = world.table
    return feed_of(world.replicator).kept(kept_table(table), table.merged_sequence)


def fill(world: FeedWorld, count: int = 10, first: int = 11) -> None:
    for i in range(count):
        world.change(Change(first + i, Op.UPDATE, 1 + i % 2, f"v{i}", first + i))


@pytest.fixture
def _worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes are worth a new copy."""
    monkeypatch.setattr(keeping, "FOLD_BYTES", 1)


@pytest.mark.usefixtures("_worth_it")
def test_changes_stay_until_the_slowest_has_read_them(
    world: FeedWorld, reader: Reader, browser: Client
) -> None:
    """Guards `bound`: two subscribers, and the last hour."""
    slow = Reader(browser, world, "slow")
    slow.register()
    fill(world)
    end = reader.lines()[-1]["checkpoint"]
    reader.lines(checkpoint=end)
    keep(world, 5)
    assert kept(world).base == 10
    slow.lines(checkpoint=end)
    keep(world, 0.5)
    assert kept(world).base == 10
    keep(world, 6)
    assert kept(world).base == 20 and kept(world).changes == ()
    rows = reader.lines("snapshot", schema="shop", table="orders")
    assert sorted(found(rows), key=str) == [
        ("read", [1], {"id": 1, "note": "v8"}),
        ("read", [2], {"id": 2, "note": "v9"}),
    ]
    world.change(Change(21, Op.DELETE, 1, at=21))
    assert found(slow.lines()) == [("delete", [1], None)]


def test_past_the_limit_a_subscriber_is_told_that_it_fell_behind(
    world: FeedWorld, reader: Reader
) -> None:
    """Guards the limit, the event, and the way back: a snapshot."""
    fill(world)
    keep(world, 23)
    assert len(found(reader.lines())) == 10
    keep(world, 25)
    told = reader.lines()
    assert [n.get("code") for n in told] == ["subscriber:fell-behind", None]
    assert Event.objects.get(kind="subscriber_fell_behind").facts == {"subscriber": "search"}
    assert reader.client.get(reader.url).json()["positions"][0]["state"] == "fell-behind"
    rows = reader.lines("snapshot", schema="shop", table="orders")
    world.change(Change(21, Op.DELETE, 1, at=21))
    assert found(reader.lines(checkpoint=rows[-1]["checkpoint"])) == [("delete", [1], None)]
    assert reader.client.get(reader.url).json()["positions"][0]["state"] == "ok"


def test_the_size_limit_counts_too(world: FeedWorld, reader: Reader, monkeypatch: Any) -> None:
    fill(world)
    size = kept(world).size_bytes
    limits = keeping.KeepLimits(1e9, size // 2)
    place, must = keeping.bound(kept(world), limits, 10, START.timestamp() + 60)
    assert 10 < place == must < 20


def test_small_files_become_one_and_readers_go_on(
    world: FeedWorld, reader: Reader, monkeypatch: Any
) -> None:
    """Guards `join`, also with another schema between, and a reader whose list is old."""
    monkeypatch.setattr(keeping, "JOINED", 4)
    fill(world, 6)
    more = Column("extra", String(), "text", ordinal=3)
    wider = TableSchema(SCHEMA.id, (*SCHEMA.columns, more), ("id",), ("id",))
    before = found(reader.lines())
    keep(world, 0.1)
    assert len(kept(world).changes) < 6
    assert found(reader.lines()) == before
    world.change(Change(17, Op.INSERT, 5, "x", 17), schema=wider)
    for i in range(4):
        world.change(Change(18 + i, Op.INSERT, 6 + i, "y", 18 + i), schema=wider)
    keep(world, 0.2)
    after = found(reader.lines())
    assert after[:6] == before
    assert after[6][2] == {"id": 5, "note": "x", "extra": None}
    rows = reader.lines("snapshot", schema="shop", table="orders")
    assert ("read", [1], {"id": 1, "note": "v4", "extra": None}) in found(rows)


def test_a_large_table_is_folded_in_portions(
    world: FeedWorld, reader: Reader, monkeypatch: Any
) -> None:
    """Guards `Portion`: the same rows, whatever the number of portions."""
    changes = [Change(11 + i, Op.INSERT, 10 + i, f"n{i}", i) for i in range(50)]
    changes += [
        Change(61 + i, Op.UPDATE, 100 + i, f"m{i}", 61 + i, old_id=10 + i) for i in range(9)
    ]
    world.change(*changes)
    whole = reader.lines("snapshot", schema="shop", table="orders")
    monkeypatch.setattr("runners.subscribing.snapshot.PORTION_BYTES", 200)
    parts = reader.lines("snapshot", schema="shop", table="orders")
    assert sorted(found(parts), key=str) == sorted(found(whole), key=str)
    assert len(found(whole)) == 52
    world.change(Change(70, Op.TRUNCATE, 0, at=70), Change(71, Op.INSERT, 1, "z", 71))
    left = found(reader.lines("snapshot", schema="shop", table="orders"))
    assert left == [("read", [1], {"id": 1, "note": "z"})]


def test_a_table_without_a_key_has_a_snapshot_while_rows_are_only_added(
    world: FeedWorld, reader: Reader
) -> None:
    bare = TableSchema(SCHEMA.id, SCHEMA.columns, (), (), full_before=True)
    world.change(Change(11, Op.INSERT, 1, "a", 11), schema=bare)
    assert len(found(reader.lines())) == 1
    world.change(Change(12, Op.DELETE, 1, at=12), schema=bare)
    answer = reader.raw("snapshot", 409, schema="shop", table="orders").json()
    assert answer["code"] == "subscriber:no-snapshot"


def test_many_wait_and_one_asks() -> None:
    """Guards `Waiter`: fifty threads that wait cost one look a tick, and all wake at a change."""
    at = {"r": (1,)}
    looked = threading.Event()

    def look(asked: list[Any]) -> dict[Any, Any]:
        looked.set()
        return {k: at[k] for k in asked}

    waiter, woken = Waiter(look), []
    threads = [
        threading.Thread(target=lambda: woken.append(waiter.wait("r", (1,), 30))) for _ in range(50)
    ]
    for thread in threads:
        thread.start()
    assert looked.wait(10)
    at["r"] = (2,)
    for thread in threads:
        thread.join(10)
    assert woken == [True] * 50
    assert waiter.looks < 50
    assert waiter.wait("r", (2,), 0.05) is False


def test_the_page_shows_subscribers_and_the_last_changes(
    world: FeedWorld, reader: Reader, browser: Client, viewer: User
) -> None:
    """Guards the page: lag, checkpoint, live changes; masked for those who may not read rows."""
    world.change(Change(11, Op.INSERT, 3, "a secret note", 11))
    page = f"/replicators/{world.replicator.pk}/subscribers/"
    text = browser.get(page).content.decode()
    assert "search" in text and "a secret note" in text
    assert f"{world.table.pk}.1.10" in text
    client = Client()
    client.force_login(viewer)
    masked = client.get(page).content.decode()
    assert "search" in masked and "a secret note" not in masked
    assert client.post(f"{page}register/", {"name": "x"}).status_code == 403


def test_the_page_registers_and_removes(world: FeedWorld, browser: Client) -> None:
    page = f"/replicators/{world.replicator.pk}/subscribers/"
    assert "Register a subscriber" in browser.get(f"{page}register/").content.decode()
    form = {"name": "cache", "which": "some", "table": world.table.pk}
    assert browser.post(f"{page}register/", form).status_code == 302
    row = Subscriber.objects.get(name="cache")
    assert row.tables == [{"schema": "shop", "name": "orders", "ranges": []}]
    assert browser.post(f"{page}register/", {"name": "a b"}).status_code == 409
    assert "Remove cache?" in browser.get(f"{page}{row.pk}/remove/").content.decode()
    assert browser.post(f"{page}{row.pk}/remove/").status_code == 302
    assert not Subscriber.objects.exists()
