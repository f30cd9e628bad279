"""Subscribers over REST: registering, GetChanges, GetSnapshot, checkpoints, re-syncs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from replicators.audit import AuditEntry
from replicators.connectors.contract.sink import Change
from replicators.connectors.model.changes import Op
from runners.models import Event, Table
from runners.subscribers import Subscriber, SubscriberPosition
from tests.app.factories import make_replicator
from tests.app.subscriber_world import SCHEMA, FeedWorld, Reader, found, lines_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(tmp_path: Path) -> FeedWorld:
    """A table with two rows that is copied."""
    made = FeedWorld(tmp_path)
    made.copy([(1, "a"), (2, "b")])
    return made


@pytest.fixture
def reader(world: FeedWorld, browser: Client) -> Reader:
    """A registered subscriber."""
    made = Reader(browser, world)
    made.register()
    return made


def insert(sequence: int, key: int, note: str = "n") -> Change:
    return Change(sequence, Op.INSERT, key, note, sequence)


def test_changes_come_in_order_and_a_checkpoint_goes_on(world: FeedWorld, reader: Reader) -> None:
    """Guards GetChanges: every kind of change once, in order, from the checkpoint on."""
    world.change(insert(11, 3), Change(12, Op.UPDATE, 3, "x", 12), Change(13, Op.DELETE, 1, at=13))
    world.resolve(13)
    first = reader.lines()
    assert found(first) == [
        ("insert", [3], {"id": 3, "note": "n"}),
        ("update", [3], {"id": 3, "note": "x"}),
        ("delete", [1], None),
    ]
    assert [n["sequence"] for n in first if n["type"] == "change"] == [11, 12, 13]
    assert first[-2]["type"] == "resolved"
    assert first[-1] == {**first[-1], "type": "checkpoint", "has_more": False}
    world.change(insert(14, 4))
    second = reader.lines(checkpoint=first[-1]["checkpoint"])
    assert found(second) == [("insert", [4], {"id": 4, "note": "n"})]


def test_a_forgotten_checkpoint_is_the_recorded_one(world: FeedWorld, reader: Reader) -> None:
    """Guards `checkpoint_record`: what was not confirmed comes again, what was confirmed does
    not."""
    world.change(insert(11, 3))
    first = reader.lines()
    assert found(reader.lines()) == found(first)
    reader.lines(checkpoint=first[-1]["checkpoint"])
    world.change(insert(12, 4))
    assert found(reader.lines()) == [("insert", [4], {"id": 4, "note": "n"})]


def test_a_limit_cuts_an_answer_and_loses_nothing(world: FeedWorld, reader: Reader) -> None:
    """Guards `Room`: answers of three changes, over parts and tries."""
    world.change(*(insert(11 + i, 10 + i) for i in range(10)))
    seen: list[int] = []
    given: dict[str, str] = {}
    has_more = True
    while has_more:
        answer = reader.lines(limit=3, **given)
        assert len(found(answer)) <= 3
        seen += [n["sequence"] for n in answer if n["type"] == "change"]
        given, has_more = {"checkpoint": answer[-1]["checkpoint"]}, answer[-1]["has_more"]
    assert seen == list(range(11, 21))


def test_what_is_not_recorded_is_not_seen(world: FeedWorld, reader: Reader) -> None:
    """Guards the end that readers see: a delivery that a crash cut off comes again, with other
    rows, and the reader sees only the second one."""
    world.deliver([insert(11, 3, "lost"), insert(12, 4, "lost")])
    assert found(reader.lines()) == []
    world.open()
    world.change(insert(11, 3, "kept"))
    assert found(reader.lines()) == [("insert", [3], {"id": 3, "note": "kept"})]


def test_a_snapshot_joins_the_changes_without_a_gap(world: FeedWorld, reader: Reader) -> None:
    """Guards GetSnapshot: the copied rows with the changes since; its checkpoint goes on where the
    snapshot ends."""
    world.change(
        Change(11, Op.UPDATE, 1, at=11, unsent=True), Change(12, Op.UPDATE, 9, "c", 12, old_id=2),
        insert(13, 3),
    )  # fmt: skip
    rows = reader.lines("snapshot", schema="shop", table="orders")
    assert rows[0]["type"] == "snapshot"
    assert sorted(found(rows), key=str) == [
        ("read", [1], {"id": 1, "note": "a"}),
        ("read", [3], {"id": 3, "note": "n"}),
        ("read", [9], {"id": 9, "note": "c"}),
    ]
    world.change(insert(14, 4))
    after = reader.lines(checkpoint=rows[-1]["checkpoint"])
    assert found(after) == [("insert", [4], {"id": 4, "note": "n"})]
    again = reader.lines(
        "snapshot", schema="shop", table="orders", checkpoint=rows[-1]["checkpoint"]
    )
    assert sorted(found(again), key=str) == sorted(found(rows), key=str)


def test_a_new_copy_is_said_until_a_snapshot_is_taken(world: FeedWorld, reader: Reader) -> None:
    """Guards re-syncs: changes between two copies may be missing, so the stream says so."""
    world.change(insert(11, 3))
    world.copy([(7, "new")], at=50)
    world.change(insert(51, 8))
    for _ in range(2):
        answer = reader.lines()
        assert found(answer) == []
        assert answer[0]["type"] == "snapshot_needed"
        assert answer[0]["code"] == "subscriber:copied-again"
    rows = reader.lines("snapshot", schema="shop", table="orders")
    assert sorted(n["key"] for n in rows if n["type"] == "change") == [[7], [8]]
    world.change(insert(52, 9))
    assert found(reader.lines(checkpoint=rows[-1]["checkpoint"])) == [
        ("insert", [9], {"id": 9, "note": "n"})
    ]


def test_a_table_being_copied_waits(world: FeedWorld, reader: Reader) -> None:
    world.mark(is_snapshot_done=False)
    assert [n["type"] for n in reader.lines()] == ["checkpoint"]
    refused = reader.raw("snapshot", 409, schema="shop", table="orders").json()
    assert refused["code"] == "subscriber:not-copied"


def test_key_ranges_choose_rows(world: FeedWorld, browser: Client) -> None:
    """Guards `in_ranges`: a key that moves out of the range is seen, and a TRUNCATE always is."""
    reader = Reader(browser, world, "some")
    tables = [{"schema": "shop", "name": "orders", "ranges": [[10, 20], [100, None]]}]
    reader.register(tables=tables)
    world.change(
        insert(11, 9), insert(12, 10), insert(13, 20), insert(14, 500),
        Change(15, Op.UPDATE, 30, "m", 15, old_id=10), Change(16, Op.TRUNCATE, 0, at=16),
    )  # fmt: skip
    sequences = [n["sequence"] for n in reader.lines() if n["type"] == "change"]
    assert list(dict.fromkeys(sequences)) == [12, 14, 15, 16]


def test_records_are_chosen_by_the_reader(world: FeedWorld, reader: Reader) -> None:
    world.change(Change(11, Op.UPDATE, 1, at=11, unsent=True))
    ((_, _, changed),) = found(reader.lines(record="CHANGE"))
    assert "note" not in changed


def test_arrow_has_the_same_changes(world: FeedWorld, reader: Reader) -> None:
    """Guards the Arrow form, and its checkpoint."""
    world.change(insert(11, 3), Change(12, Op.UPDATE, 3, at=12, unsent=True))
    world.resolve(12)
    which = {"schema": "shop", "table": "orders", "encoding": "arrow"}
    answer = reader.raw("changes", **which)
    rows = pa.ipc.open_stream(answer.content).read_all().to_pylist()
    assert [(r["_operation"], r["id"], r["note"], r["_unsent"]) for r in rows] == [
        ("insert", 3, "n", None),
        ("update", 3, None, ["note"]),
    ]
    assert answer["X-Resolved-At"] and answer["X-Has-More"] == "false"
    empty = reader.raw("changes", checkpoint=answer["X-Checkpoint"], **which)
    assert pa.ipc.open_stream(empty.content).read_all().num_rows == 0
    copied = reader.raw("snapshot", **which)
    whole = pa.ipc.open_stream(b"".join(copied.streaming_content)).read_all()
    assert sorted(whole.column("id").to_pylist()) == [1, 2, 3]
    assert copied["X-Checkpoint"] == answer["X-Checkpoint"]


def test_a_subscriber_is_registered_listed_and_removed(
    world: FeedWorld, browser: Client, reader: Reader
) -> None:
    world.change(insert(11, 3))
    (shown,) = browser.get(reader.all).json()
    assert shown["name"] == "search" and shown["changes_behind"] == 1
    assert shown["bytes_behind"] > 0 and shown["positions"][0]["state"] == "ok"
    assert reader.register(400)["fields"]["name"]
    assert browser.delete(reader.url).status_code == 204
    assert browser.get(reader.url).status_code == 404
    acts = AuditEntry.objects.filter(act__startswith="subscriber_").values_list("act", flat=True)
    assert sorted(acts) == ["subscriber_registered", "subscriber_removed"]
    assert Event.objects.filter(kind="subscriber_removed").count() == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"name": "a b"}, 400),
        ({"name": "x", "tables": [{"schema": "shop", "name": "nothing"}]}, 404),
        ({"name": "x", "tables": [{"schema": "shop", "name": "orders", "ranges": [[1]]}]}, 400),
        ({"name": "x", "more": 1}, 400),
    ],
)
def test_a_registration_that_makes_no_sense_is_refused(
    world: FeedWorld, browser: Client, body: dict[str, Any], status: int
) -> None:
    where = Reader(browser, world).all
    answer = browser.post(where, json.dumps(body), content_type="application/json")
    assert answer.status_code == status, answer.content


def test_another_target_has_no_subscribers(browser: Client) -> None:
    pk = make_replicator("other").pk
    where = f"/api/v1/replicators/{pk}/subscribers/"
    answer = browser.post(where, json.dumps({"name": "x"}), content_type="application/json")
    assert answer.status_code == 409
    assert "Subscribers (pull API)" in answer.json()["message"]


@pytest.mark.parametrize("checkpoint", ["nonsense", "1.2", "{pk}.1.999", "{pk}.7.1"])
def test_a_checkpoint_that_no_answer_gave_is_refused(
    world: FeedWorld, reader: Reader, checkpoint: str
) -> None:
    text = checkpoint.format(pk=world.table.pk)
    assert reader.raw("changes", 400, checkpoint=text).json()["fields"]["checkpoint"]
    assert SubscriberPosition.objects.get().sequence == 10


def test_rows_need_the_right_to_read_rows(world: FeedWorld, reader: Reader, viewer: User) -> None:
    """Guards the permissions: a viewer sees the lag, and no rows until an administrator says so."""
    world.change(insert(11, 3))
    client = Client()
    client.force_login(viewer)
    mine = Reader(client, world)
    assert client.get(mine.all).status_code == 200
    for what in ("changes", "events"):
        mine.raw(what, 403)
    mine.raw("snapshot", 403, schema="shop", table="orders")
    mine.name = "other"
    mine.register(403)
    viewer.user_permissions.add(Permission.objects.get(codename="read_rows"))
    client.force_login(User.objects.get(pk=viewer.pk))
    assert len(found(mine.lines())) == 1


def test_events_carry_checkpoints(world: FeedWorld, reader: Reader, monkeypatch: Any) -> None:
    """Guards server-sent events: the id of the last event is the checkpoint that a browser sends
    again."""
    monkeypatch.setattr("runners.subscribing.reading.EVENTS_SECONDS", 0.01)
    monkeypatch.setattr("runners.subscribing.reading.ALIVE_SECONDS", 0.01)
    world.change(insert(11, 3))
    text = b"".join(reader.raw("events").streaming_content).decode()
    assert "event: change\ndata: {" in text
    ident = next(n for n in text.splitlines() if n.startswith("id: ")).removeprefix("id: ")
    world.change(insert(12, 4))
    again = reader.client.get(
        f"{reader.url}events/", headers={"Last-Event-ID": ident, "Accept": "text/event-stream"}
    )
    body = b"".join(again.streaming_content).decode()
    assert '"sequence":12' in body and '"sequence":11' not in body


def test_an_answer_that_waits_comes_with_the_change(
    world: FeedWorld, reader: Reader, monkeypatch: Any
) -> None:
    """Guards long polling: the request waits, and answers as soon as there is a change."""
    waits = []

    def wait(*asked: Any) -> bool:
        waits.append(asked)
        if len(waits) == 2:
            world.change(insert(11, 3))
        return True

    monkeypatch.setattr("runners.subscribing.waiting.WAITER.wait", wait)
    answer = reader.raw("changes", wait=30)
    assert len(found(lines_of(answer))) == 1 and len(waits) == 2


def test_key_ranges_are_given_and_shown_on_the_page(world: FeedWorld, browser: Client) -> None:
    """Guards the page's key ranges: they are what REST has, the changes are those of the keys, and
    what is no range of the key says so before anything is registered."""
    Table.objects.update(schema=SCHEMA.to_json())
    page_url = f"/replicators/{world.replicator.pk}/subscribers/"
    pk = world.table.pk
    form = {"name": "some", "which": "some", "table": [str(pk)]}

    def register(text: str) -> Any:
        return browser.post(f"{page_url}register/", {**form, f"ranges-{pk}": text})

    for wrong, said in {
        "5": "from..to", "..": "from..to", "9..5": "no value in it", "a..b": "key&#x27;s type",
    }.items():  # fmt: skip
        answer = register(wrong)
        assert answer.status_code == 409 and said in answer.content.decode(), wrong
    assert not Subscriber.objects.exists()
    assert register(" 2..4, 100.. ").status_code == 302
    (made,) = Subscriber.objects.all()
    assert made.tables[0]["ranges"] == [["2", "4"], ["100", None]]
    assert "2..4, 100.." in browser.get(page_url).content.decode()
    world.change(insert(11, 1), insert(12, 3), insert(13, 4), insert(14, 100))
    url = f"/api/v1/replicators/{world.replicator.pk}/subscribers/some/changes/"
    lines = lines_of(browser.get(url))
    assert [n["sequence"] for n in lines if n["type"] == "change"] == [12, 14]
