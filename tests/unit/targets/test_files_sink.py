"""The files target at each step of its order, cut off anywhere; its layout, its settings and its
looks."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replicators.connectors import files
from replicators.connectors.contract.sink import (
    START,
    Change,
    HeldLane,
    as_seen,
    batch,
    resolved,
    rows_of,
    snapshot,
)
from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.params import InvalidParams, parse
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import BatchKind, ChangeBatch, Resolved, TargetTable
from replicators.targets.files import layout, state
from replicators.targets.files.checks import FilesChecks
from replicators.targets.files.params import LENGTHS, FilesParams, places
from replicators.targets.files.writer import AHEAD_MICROS, FilesSink
from runners.engine.tasks.local import LocalTasks
from tests import replayed
from tests.contract.test_files import seen

SCHEMA = TableSchema(
    TableId("shop", "orders"),
    (
        Column("id", Int(64), "bigint", nullable=False, ordinal=1),
        Column("note", String(), "text", ordinal=2),
    ),
    ("id",),
    ("id",),
)
TABLE = TargetTable(SCHEMA.id, "r1", 1)


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


class Killed(BaseException):
    """A process that ended here."""


def sink_in(folder: Path, clock: Callable[[], float] = time.time, **values: Any) -> FilesSink:
    return FilesSink(FilesParams(location=str(folder), **values), LocalTasks(2), clock)


def generation(folder: Path, number: int = 1) -> Path:
    return folder / "shop.orders" / layout.generation_name(number)


def data_files(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.rglob("*.parquet"))


# --- cut off anywhere --------------------------------------------------------------------------------------------  # noqa: E501
CHANGES = [Change(11 + i, Op.UPDATE, i % 5, f"v{i}", at=i * 2) for i in range(120)]


def story(folder: Path) -> list[Callable[[], None]]:
    """The calls of a run, each with a sink of its own as after a crash; a call that was cut off
    comes again, since it was not recorded."""
    actions: list[Callable[[FilesSink], None]] = [
        lambda s: s.begin(TABLE, SCHEMA),
        lambda s: s.deliver(TABLE, snapshot([(1, "a"), (2, "b")], SCHEMA, 1, 10)),
        lambda s: s.deliver(TABLE, snapshot([(3, "c")], SCHEMA, 2, 10)),
        lambda s: s.deliver(TABLE, batch(CHANGES[:70], SCHEMA, 10, 2)),
        lambda s: s.resolved(TABLE, resolved(80, 125)),
        lambda s: s.deliver(TABLE, batch(CHANGES[70:], SCHEMA, 80, 3, resolved=125)),
        lambda s: s.resolved(TABLE, resolved(130, 100_000)),
    ]
    return [lambda act=act: act(sink_in(folder)) for act in actions]  # type: ignore[misc]


def test_a_kill_at_any_write_and_removal_leaves_exactly_the_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the order of writes: files, note, manifests, `_resolved.json`, notes gone. The process
    is killed before and after each action on the disk, once for each; whoever loads closed buckets
    has every change once, and never sees a bucket change."""
    real = {name: getattr(files, name) for name in ("publish", "remove", "remove_folder")}
    count, limit = 0, 0

    def counted(name: str) -> Callable[..., Any]:
        def act(*args: Any) -> Any:
            nonlocal count
            count += 1
            if count == limit:
                raise Killed
            done = real[name](*args)
            count += 1
            if count == limit:
                raise Killed
            return done

        return act

    for name in real:
        monkeypatch.setattr(files, name, counted(name))
    for limit in itertools.count(1):  # noqa: B007 (read by `act`)
        folder = tmp_path / str(limit)
        count, kills, before = 0, 0, []
        for act in story(folder):
            try:
                act()
            except Killed:
                kills += 1
                act()
            whole = replayed.generations(folder / "shop.orders")
            found = list(map(seen, replayed.records(whole[-1]))) if whole else []
            assert found[: len(before)] == before
            before = found
        assert before[3:] == as_seen(CHANGES), limit
        assert sorted(s.note or "" for s in before[:3]) == ["a", "b", "c"]
        named = [f["name"] for m in replayed.manifests(generation(folder)) for f in m["files"]]
        assert data_files(folder) == sorted(named), limit
        assert not kills or kills == 1
        if not kills:
            break
    assert limit > 40


def test_a_task_that_goes_on_after_its_run_adds_nothing(tmp_path: Path) -> None:
    """Guards the notes: a file that a task wrote late, of a try that was given up, is in no
    manifest."""
    sink = sink_in(tmp_path)
    sink.begin(TABLE, SCHEMA)
    sink.deliver(TABLE, batch(CHANGES[:20], SCHEMA, 10))
    (file,) = generation(tmp_path).rglob("*.parquet")
    late = file.with_name(file.name.replace(".parquet", "zombie.parquet"))
    late.write_bytes(file.read_bytes())
    sink.resolved(TABLE, resolved(30, 100_000))
    assert [s.sequence for s in map(seen, replayed.records(generation(tmp_path)))] == [
        c.sequence for c in CHANGES[:20]
    ]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.tuples(st.integers(-200, 900), st.integers(1, 4), st.booleans(), st.integers(0, 400)),
        min_size=1,
        max_size=12,
    )
)
def test_names_sort_as_changes_do_whatever_the_clocks_say(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, bool, int]]
) -> None:
    """Guards buckets that never go back: commit times at random, lanes at random, marks in between,
    other runs. What is closed stays as it was; a change lies in the bucket of its commit time where
    that was open and no later change came before it."""
    folder = tmp_path_factory.mktemp("clocks")
    sink = sink_in(folder)
    sink.begin(TABLE, SCHEMA)
    after, done, mark, before = 10, [], 0.0, []
    for at, count, is_new_run, ahead in steps:
        some = [
            Change(after + 1 + i, Op.UPDATE, 1, f"v{after + i}", at=at + i * 40 * (-1) ** i)
            for i in range(count * 2)
        ]
        sink = sink_in(folder) if is_new_run else sink
        sink.deliver(TABLE, batch(some, SCHEMA, after, count, resolved=mark))
        after, done = some[-1].sequence, [*done, *some]
        mark = max(mark, float(at + ahead - 200), 1.0)
        sink.resolved(TABLE, resolved(after, mark))
        whole = replayed.generations(folder / "shop.orders")
        found = list(map(seen, replayed.records(whole[-1]))) if whole else []
        assert found[: len(before)] == before
        before = found
    sink.resolved(TABLE, resolved(after, 100_000))
    assert list(map(seen, replayed.records(generation(folder)))) == as_seen(done)


# --- buckets -----------------------------------------------------------------------------------------------------  # noqa: E501
def test_a_bucket_has_the_changes_of_its_minute_and_closes_after_it(tmp_path: Path) -> None:
    """Guards what a loader relies on: names, bounds, numbers and operations of a manifest."""
    sink = sink_in(tmp_path)
    sink.begin(TABLE, SCHEMA)
    sink.deliver(TABLE, snapshot([(1, "a")], SCHEMA, 1, 10))
    changes = [
        Change(11, Op.INSERT, 3, "c", 59.999999),
        Change(12, Op.UPDATE, 3, "d", 60),
        Change(13, Op.DELETE, 3, at=180),
    ]
    sink.deliver(TABLE, batch(changes, SCHEMA, 10))
    sink.resolved(TABLE, resolved(13, 59.9))
    assert replayed.generations(tmp_path / "shop.orders") == []
    sink.resolved(TABLE, resolved(13, 179.9))
    first, second = replayed.manifests(generation(tmp_path))
    assert (first["bucket"], second["bucket"]) == ("2024-11-24-07-05", "2024-11-24-07-06")
    assert (first["from"], first["to"]) == (
        "2024-11-24T07:05:00.000000Z",
        "2024-11-24T07:06:00.000000Z",
    )
    assert first["operations"] == {"read": 1, "insert": 1}
    assert first["is_copy_complete"] is True
    assert (second["first_sequence"], second["last_sequence"], second["rows"]) == (12, 12, 1)
    assert second["schema_versions"] == [1]
    (entry,) = second["entries"]
    assert os.path.getsize(entry["url"]) == entry["meta"]["content_length"] == second["bytes"]
    assert replayed.closed_before(generation(tmp_path)) == "2024-11-24T07:07:00.000000Z"


@pytest.mark.parametrize(("bucket", "seconds"), [(n, s) for n, s in LENGTHS.items()])
def test_buckets_of_any_length_have_names_of_their_own(
    tmp_path: Path, bucket: str, seconds: int
) -> None:
    """Guards a bucket's name: two buckets in one folder would have one manifest."""
    sink = sink_in(tmp_path, bucket=bucket)
    sink.begin(TABLE, SCHEMA)
    changes = [Change(11 + i, Op.INSERT, i, "x", at=i * seconds / 2) for i in range(10)]
    sink.deliver(TABLE, batch(changes, SCHEMA, 10, 2))
    sink.resolved(TABLE, resolved(20, 100 * seconds))
    reported = replayed.manifests(generation(tmp_path))
    assert len({m["bucket"] for m in reported}) == len(reported) >= 5
    assert list(map(seen, replayed.records(generation(tmp_path)))) == as_seen(changes)


def test_a_bucket_that_another_run_closed_is_not_closed_again(tmp_path: Path) -> None:
    """Guards manifests that never change, also where two runs write side by side."""
    one, two = sink_in(tmp_path), sink_in(tmp_path)
    one.begin(TABLE, SCHEMA)
    one.deliver(TABLE, batch(CHANGES[:5], SCHEMA, 10))
    two.deliver(TABLE, batch([Change(16, Op.INSERT, 9, "x", at=9)], SCHEMA, 15))
    one.resolved(TABLE, resolved(15, 1000))
    with pytest.raises(ReplicationError) as caught:
        two.resolved(TABLE, resolved(16, 1000))
    assert caught.value.code == "target:table-replaced"


def test_time_that_passed_is_reported_though_nothing_changed(tmp_path: Path) -> None:
    """Guards `_resolved.json`: an empty bucket has no manifest, and a mark within a bucket writes
    nothing."""
    sink = sink_in(tmp_path)
    sink.begin(TABLE, SCHEMA)
    sink.resolved(TABLE, resolved(10, 125))
    reported = generation(tmp_path) / "_resolved.json"
    assert replayed.closed_before(generation(tmp_path)) == "2024-11-24T07:07:00.000000Z"
    stamp = reported.stat().st_mtime_ns
    sink.resolved(TABLE, resolved(10, 170))
    assert reported.stat().st_mtime_ns == stamp
    assert replayed.manifests(generation(tmp_path)) == []


def test_a_clock_that_jumped_ahead_keeps_no_bucket_open_for_years(tmp_path: Path) -> None:
    """Guards the limit of commit times that lie ahead of our clock, of changes and of marks."""
    now = START.timestamp() + 30
    sink = sink_in(tmp_path, lambda: now)
    sink.begin(TABLE, SCHEMA)
    wrong = Change(11, Op.INSERT, 1, "from 2030", at=200_000_000)
    after = [Change(12, Op.UPDATE, 1, "right", at=31), Change(13, Op.UPDATE, 1, "too", at=400)]
    sink.deliver(TABLE, batch([wrong], SCHEMA, 10))
    sink.resolved(TABLE, resolved(11, 200_000_000))
    sink.deliver(TABLE, batch(after, SCHEMA, 11))
    now += AHEAD_MICROS / 1e6 + 200
    sink.resolved(TABLE, resolved(13, 700))
    found = list(replayed.records(generation(tmp_path)))
    assert [r["_sequence"] for r in found] == [11, 12, 13]
    assert found[0]["_committed_at"] > datetime(2030, 1, 1, tzinfo=UTC)


def test_changes_that_are_not_recorded_keep_their_bucket_open(tmp_path: Path) -> None:
    """Guards `resolved` against a delivery beyond the mark: it may be taken back."""
    sink = sink_in(tmp_path)
    sink.begin(TABLE, SCHEMA)
    sink.deliver(TABLE, batch(CHANGES[:10], SCHEMA, 10))
    sink.resolved(TABLE, Resolved(10, START.timestamp() + 100_000))
    assert replayed.manifests(generation(tmp_path)) == []
    again = sink_in(tmp_path)
    again.deliver(TABLE, batch(CHANGES[:5], SCHEMA, 10))
    again.resolved(TABLE, resolved(15, 100_000))
    assert len(list(replayed.records(generation(tmp_path)))) == 5


def test_large_lanes_make_several_files_and_many_deliveries_few_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the bounds of memory and of what a new run reads."""
    monkeypatch.setattr("replicators.targets.files.lanes.FILE_BYTES", 2000)
    monkeypatch.setattr("replicators.targets.files.lanes.SLICE_BYTES", 1000)
    monkeypatch.setattr(state, "JOINED", 10)
    sink = sink_in(tmp_path)
    sink.begin(TABLE, SCHEMA)
    changes = [Change(11 + i, Op.INSERT, i, f"v{i}", at=1) for i in range(600)]
    lane = HeldLane(
        1, 10, 10, 90, rows_of([Change(10, Op.READ, i, "r") for i in range(90)], SCHEMA)
    )
    sink.deliver(TABLE, ChangeBatch(BatchKind.SNAPSHOT, SCHEMA, 10, 10, (lane,)))
    sink.deliver(TABLE, batch(changes[:300], SCHEMA, 10))
    for at in range(300, 600, 10):
        sink.deliver(TABLE, batch(changes[at : at + 10], SCHEMA, 10 + at))
        sink = sink_in(tmp_path) if at % 70 == 0 else sink
    notes = list((generation(tmp_path) / layout.DELIVERIES).iterdir())
    assert 2 < len(notes) < 20
    assert len(data_files(tmp_path)) > 40
    sink.resolved(TABLE, resolved(610, 100_000))
    found = list(replayed.records(generation(tmp_path)))
    assert [r["_sequence"] for r in found] == [10] * 90 + [c.sequence for c in changes]
    assert list((generation(tmp_path) / layout.DELIVERIES).iterdir()) == []


def test_a_schema_is_written_once_and_its_number_is_in_names_and_rows(tmp_path: Path) -> None:
    """Guards schema versions over runs: the same schema is the same version."""
    wider = TableSchema(
        SCHEMA.id, (*SCHEMA.columns, Column("extra", String(), "text", ordinal=3)), ("id",), ("id",)
    )
    for n, schema in enumerate((SCHEMA, wider, SCHEMA)):
        sink = sink_in(tmp_path)
        if n == 0:
            sink.begin(TABLE, SCHEMA)
        sink.deliver(TABLE, batch(CHANGES[n : n + 1], schema, 10 + n))
    sink.resolved(TABLE, resolved(13, 100_000))
    (manifest,) = replayed.manifests(generation(tmp_path))
    assert [f["schema_version"] for f in manifest["files"]] == [1, 2, 1]
    assert manifest["schema_versions"] == [1, 2]
    assert [r["_schema"] for r in replayed.records(generation(tmp_path))] == [1, 2, 1]
    reported = json.loads((generation(tmp_path) / "_schema-0002.json").read_text())["table"]
    assert [c["name"] for c in reported["columns"]] == ["id", "note", "extra"]


# --- names, settings, looks --------------------------------------------------------------------------------------  # noqa: E501
def test_no_two_tables_share_a_folder() -> None:
    """Guards `layout.plain`: names with dots, slashes, tildes, of any length."""
    names = [
        "a",
        "a.b",
        "b",
        "a~2e~b",
        "a/b",
        "..",
        "_x",
        "5f",
        "ä",
        "x" * 300,
        "x" * 301,
        " ",
        "A",
    ]
    found = {layout.table_folder("/l", TableId(s, n)) for s in names for n in names}
    assert len(found) == len(names) ** 2
    assert all(f.count("/") == 2 and len(f.encode()) < 255 for f in found)


@pytest.mark.parametrize(
    ("values", "root"),
    [
        ({"location": "/data/c/"}, "/data/c"),
        ({"location": "file:///data/c"}, "/data/c"),
        ({"location": "s3a://bucket/c/"}, "s3://bucket/c"),
        ({"location": "relative"}, None),
        ({"location": "ftp://host/c"}, None),
        ({"location": "s3://bucket/c?endpoint_override=elsewhere"}, None),
        ({"location": "/c", "format": "JSON lines", "compression": "snappy"}, None),
    ],
)
def test_settings_say_what_is_wrong_with_them(values: dict[str, Any], root: str | None) -> None:
    """Guards `FilesParams`: a location that can't be opened is refused by name."""
    if root is None:
        with pytest.raises(InvalidParams):
            parse(FilesParams, values)
        return
    assert parse(FilesParams, values).root == root


def test_a_location_is_judged_before_it_is_opened() -> None:
    """Guards `places`, by which a folder of the program's own is refused."""
    assert [(p.kind, p.value) for p in places(FilesParams(location="/data/c"))] == [
        ("folder", "/data/c")
    ]
    assert [p.value for p in places(FilesParams(location="abfs://c@acc.host.net/d"))] == [
        "acc.host.net"
    ]


def test_a_look_writes_nothing_and_an_assessment_leaves_nothing(tmp_path: Path) -> None:
    """Guards *Makes and changes nothing* of a test of a connection; the probe of an assessment goes
    again."""
    checks = FilesChecks(FilesParams(location=f"{tmp_path}/new"))
    assert checks.connection() == []
    assert checks.tables([SCHEMA], "r1") == []
    assert list(tmp_path.iterdir()) == []
    here = FilesChecks(FilesParams(location=str(tmp_path)))
    assert here.tables([SCHEMA], "r1") == []
    assert list(tmp_path.iterdir()) == []


def test_a_location_that_takes_no_files_is_found_by_the_assessment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the probe: rights can look right and be refused all the same."""

    def refuse(*_: Any) -> None:
        raise PermissionError(13, "no")

    monkeypatch.setattr(files, "write", refuse)
    checks = FilesChecks(FilesParams(location=str(tmp_path)))
    assert [p.code for p in checks.tables([SCHEMA], "r1")] == ["target:not-writable"]


def test_a_folder_that_holds_something_else_is_taken(tmp_path: Path) -> None:
    """Guards a table's folder that this program did not make."""
    (tmp_path / "shop.orders").mkdir()
    (tmp_path / "shop.orders" / "mine.txt").write_text("x")
    with pytest.raises(ReplicationError) as caught:
        sink_in(tmp_path).begin(TABLE, SCHEMA)
    assert caught.value.code == "target:table-taken"
    checks = FilesChecks(FilesParams(location=str(tmp_path)))
    assert [p.code for p in checks.tables([SCHEMA], "r1")] == ["target:table-taken"]
