"""A table's change log over REST: how far it may be read, which files it has, and their content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from replicators.connectors.log import DecodedTable
from replicators.connectors.model.changes import Op, first_sequence, last_sequence
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.models import Replicator
from runners.engine.decode.job import file_row, write_file
from runners.engine.store.protocol import ChangeFileRow, SegmentRow, TableState
from runners.models import ChangeFile, Table
from runners.store.django import DjangoStore
from tests.app.factories import make_run, make_user
from tests.change_files import Change, changes_table, op_counts

pytestmark = pytest.mark.django_db

ORDERS = TableId("shop", "orders")
SCHEMA = TableSchema(
    ORDERS,
    (Column("id", Int(64), "bigint", False, 1), Column("note", String(), "text", ordinal=2)),
    ("id",),
    ("id",),
    7,
)
WHICH = "schema=shop&table=orders"


class Log:
    """The change log of a replicator's table, written as a run writes it."""

    def __init__(self, replicator: Replicator, folder: Path) -> None:
        self.folder = folder
        self.replicator = replicator
        run = make_run(replicator)
        self.store = DjangoStore(run.pk, run.lease)
        self.mark(state=TableState.REPLICATING, is_snapshot_done=True, generation=1)

    def mark(self, **values: Any) -> None:
        Table.objects.filter(replicator=self.replicator, name="orders").update(**values)

    def file(self, number: int, count: int = 2) -> ChangeFileRow:
        """A change file of a segment, on the disk."""
        first = first_sequence(number)
        changes = [Change(first + i, Op.INSERT, i, f"n{i}") for i in range(1, count + 1)]
        item = DecodedTable(
            SCHEMA, "v1", changes_table(changes, SCHEMA, position=number * 100), op_counts(changes)
        )
        return file_row(number, write_file(str(self.folder / f"{number}.parquet"), item))

    def segment(self, number: int, *, is_closed: bool = True, is_decoded: bool = True) -> None:
        """A sealed segment with one change file."""
        row = SegmentRow(
            number, f"/log/{number}", 10, 1, Position(number * 100), is_closed,
            is_decoded=is_decoded, sealed_at=1000.0,
        )  # fmt: skip
        files = [self.file(number)] if is_decoded else []
        self.store.record_segment(row, Position(number * 100), files)


@pytest.fixture
def log(replicator: Replicator, tmp_path: Path) -> Log:
    """Four segments, of which the third ends within a transaction and the fourth waits."""
    made = Log(replicator, tmp_path)
    made.segment(1)
    made.segment(2)
    made.segment(3, is_closed=False)
    made.segment(4, is_decoded=False)
    return made


@pytest.fixture
def get(browser: Client, log: Log) -> Callable[..., Any]:
    """The answer to a request for changes."""

    def ask(more: str = "", status: int = 200) -> Any:
        url = f"/api/v1/replicators/{log.replicator.pk}/tables/changes/?{WHICH}{more}"
        answer = browser.get(url)
        assert answer.status_code == status, answer.content
        return answer.json()

    return ask


def firsts(answer: Any) -> list[int]:
    return [f["first_sequence"] >> 32 for f in answer["files"]]


def test_files_are_listed_up_to_the_last_whole_transaction(log: Log, get: Any) -> None:
    """Guards `frontier_sequence` (CORRECTNESS 2): the third segment's transaction goes on in the
    fourth, which is not decoded. A reader that got it would have half a transaction."""
    answer = get()
    assert answer["until"] == last_sequence(2)
    assert answer["kept_after"] == first_sequence(1) - 1
    assert firsts(answer) == [1, 2]
    assert answer["columns"][0] == {
        "name": "id",
        "type": {"type": "Int", "bits": 64, "signed": True},
    }
    assert answer["schemas"]["v1"]["key"] == ["id"]
    assert answer["files"][0]["rows"] == 2
    log.store.record_decoded([4], [log.file(4)])
    assert firsts(get()) == [1, 2, 3, 4]


def test_pages_go_on_behind_the_last_sequence(get: Any) -> None:
    first = get("&limit=1")
    assert firsts(first) == [1]
    second = get(f"&limit=1&after={first['after']}")
    assert firsts(second) == [2]
    last = get(f"&limit=1&after={second['after']}")
    assert (last["files"], last["after"]) == ([], second["after"])
    assert firsts(get(f"&upto={first['after']}")) == [1]
    assert get("&limit=0")["files"] == []


@pytest.mark.parametrize(
    "values",
    [
        {"state": TableState.FAILING, "error_code": "log:segment-corrupt"},
        {"state": TableState.SNAPSHOTTING, "is_snapshot_done": False},
        {"is_resync_asked": True},
    ],
)
def test_a_log_that_may_lack_changes_ends_where_the_table_is_merged(
    log: Log, get: Any, values: dict[str, Any]
) -> None:
    """Guards `_is_followed`: files behind a fault are listed, though changes between them are
    missing. A reader would never notice the hole."""
    log.mark(merged_sequence=last_sequence(1), **values)
    answer = get()
    assert answer["until"] == last_sequence(1)
    assert firsts(answer) == [1]


def test_changes_that_came_with_the_copy_are_left_out(log: Log, get: Any) -> None:
    """Guards `position` (CORRECTNESS 16)."""
    log.mark(snapshot_position=150)
    answer = get()
    assert (answer["position"], firsts(answer)) == (150, [2])


def test_pruned_changes_are_said_to_be_gone(log: Log, get: Any, browser: Client) -> None:
    """Guards `kept_after`: without it a reader that was away too long goes on behind the hole."""
    log.store.forget([1])
    assert get()["kept_after"] == first_sequence(2) - 1
    url = f"/api/v1/replicators/{log.replicator.pk}/tables/changes/files/"
    first = first_sequence(1)
    answer = browser.get(f"{url}?{WHICH}&first={first}&last={last_sequence(1)}")
    assert (answer.status_code, answer.json()["code"]) == (410, "changes-pruned")
    log.store.forget([2, 3, 4])
    assert get()["kept_after"] == last_sequence(4)


def test_files_are_sent_one_after_the_other_as_they_are_listed(
    log: Log, get: Any, browser: Client
) -> None:
    listed = get()["files"]
    url = f"/api/v1/replicators/{log.replicator.pk}/tables/changes/files/?{WHICH}"
    answer = browser.get(
        f"{url}&first={listed[0]['first_sequence']}&last={listed[1]['last_sequence']}"
    )
    assert answer.status_code == 200
    sent = b"".join(answer)  # type: ignore[call-overload]
    assert sent == b"".join(Path(f["path"]).read_bytes() for f in listed)
    assert answer["Content-Length"] == str(len(sent)) == str(sum(f["size_bytes"] for f in listed))
    only = browser.get(f"{url}&first={listed[1]['first_sequence']}&last={2**62}")
    assert b"".join(only) == Path(listed[1]["path"]).read_bytes()  # type: ignore[call-overload]


def test_reading_rows_is_a_right_of_its_own(log: Log, get: Any, viewer: Any) -> None:
    """Guards `ReadRows`: who may see states may not see rows, nor where they lie."""
    client = Client()
    client.force_login(viewer)
    base = f"/api/v1/replicators/{log.replicator.pk}/tables/changes/"
    files = f"{base}files/?{WHICH}&first={first_sequence(1)}&last={last_sequence(1)}"
    listed = client.get(f"{base}?{WHICH}").json()["files"]
    assert [f["path"] for f in listed] == ["", ""]
    assert client.get(files).status_code == 403
    reader = make_user("notebook", "viewer")
    reader.user_permissions.add(Permission.objects.get(codename="read_rows"))
    client.force_login(reader)
    assert client.get(files).status_code == 200
    assert client.post(f"/api/v1/replicators/{log.replicator.pk}/pause/").status_code == 403


def test_a_table_with_a_row_filter_is_refused(log: Log, get: Any) -> None:
    """Guards `_refuse_filtered`: the log holds rows that the filter leaves out."""
    log.replicator.tables[0]["filter"] = "id > 5"
    log.replicator.save()
    assert get(status=409)["code"] == "changes-filtered"


def test_an_unknown_table_is_not_found(log: Log, browser: Client) -> None:
    url = f"/api/v1/replicators/{log.replicator.pk}/tables/changes/?schema=shop&table=none"
    assert browser.get(url).status_code == 404


def test_a_list_takes_few_queries(
    log: Log, browser: Client, django_assert_max_num_queries: Any
) -> None:
    for number in range(5, 30):
        log.segment(number)
    log.store.record_decoded([4], [])
    assert ChangeFile.objects.count() == 28
    url = f"/api/v1/replicators/{log.replicator.pk}/tables/changes/?{WHICH}"
    with django_assert_max_num_queries(14):
        assert len(browser.get(url).json()["files"]) == 28
