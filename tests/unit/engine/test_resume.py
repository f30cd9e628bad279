"""When a snapshot can be gone on with, and which rows have to be read again."""

from __future__ import annotations

import datetime as dt
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors.model.changes import Op, OpCounts, change_schema, first_sequence
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.target import SnapshotPlace
from runners.engine.snapshot import resume
from runners.engine.store.copies import CopyChunk, CopyRow
from runners.engine.store.protocol import ChangeFileRow, MemoryStore, SegmentRow

TABLE = TableId("shop", "pairs")
SCHEMA = TableSchema(
    TABLE,
    (
        Column("word", String(), "text", wire="text"),
        Column("part", Int(16), "smallint", wire="int2"),
        Column("v", String(), "text", wire="text"),
    ),
    ("word", "part"),
    ("word", "part"),
)
PLACE = SnapshotPlace(
    "", pa.schema([("word", pa.string()), ("part", pa.int32()), ("v", pa.string())])
)
COPY = CopyRow(TABLE, 1, SCHEMA, "here", 100, 4, "", (CopyChunk(0, "a"), CopyChunk(1, "b")))
AT = dt.datetime(2025, 1, 1, tzinfo=dt.UTC)

Change = tuple[Op, int, tuple[str, int], tuple[str, int] | None]


def change_file(folder: Path, number: int, changes: list[Change]) -> ChangeFileRow:
    """A listed change file; each change is its operation, position, key and old key."""
    rows = [
        {
            "_sequence": first_sequence(number) + i,
            "_op": int(op),
            "_committed_at": AT,
            "_transaction": 1,
            "_position": position,
            "_unchanged": None,
            "word": key[0],
            "part": key[1],
            "v": "x",
            "_before": None if old is None else {"word": old[0], "part": old[1]},
        }
        for i, (op, position, key, old) in enumerate(changes)
    ]
    path = folder / f"{number}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=change_schema(SCHEMA)), path)
    return ChangeFileRow(
        TABLE, number, str(path), "v", SCHEMA, OpCounts(len(rows)), first_sequence(number),
        first_sequence(number) + len(rows), 1.0, 1.0, min(c[1] for c in changes),
        max(c[1] for c in changes), 1, zlib.crc32(path.read_bytes()),
    )  # fmt: skip


def touched(files: list[ChangeFileRow]) -> set[tuple[str, int]]:
    keys = resume.touched_keys(files, COPY, PLACE)
    assert keys.num_rows == len({tuple(k.values()) for k in keys.to_pylist()})
    return {(k["word"], k["part"]) for k in keys.to_pylist()}


def test_keys_that_rows_have_and_had_since_the_first_view_are_touched(tmp_path: Path) -> None:
    """Guards `resume.touched_keys` (CORRECTNESS 17): a key left out, also one that a row had
    before, keeps a row of an earlier moment, or twice."""
    files = [
        change_file(
            tmp_path,
            5,
            [
                (Op.INSERT, 99, ("before", 1), None),
                (Op.INSERT, 100, ("new", 1), None),
                (Op.UPDATE, 101, ("new", 1), None),
                (Op.UPDATE, 101, ("to", 2), ("from", 2)),
                (Op.UPDATE, 101, ("here", 4), ("there", 4)),
                (Op.DELETE, 102, ("gone", 3), ("gone", 3)),
            ],
        ),
        change_file(tmp_path, 6, [(Op.UPDATE, 103, ("from", 2), None)]),
    ]
    moved = {("to", 2), ("from", 2), ("here", 4), ("there", 4)}
    assert touched(files) == {("new", 1), ("gone", 3), *moved}
    assert touched([]) == set()


def test_a_truncate_or_another_key_or_too_much_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `StartAgain` (CORRECTNESS 17): after a TRUNCATE or under another key the touched rows
    can't be told, and chunks that were kept would bring back what is gone."""
    fine = change_file(tmp_path, 5, [(Op.INSERT, 100, ("new", 1), None)])
    emptied = change_file(tmp_path, 6, [(Op.TRUNCATE, 100, ("", 0), None)])
    with pytest.raises(resume.StartAgain, match="emptied"):
        touched([fine, emptied])
    wider = Column("part", Int(32), "integer", wire="int4")
    columns = (SCHEMA.columns[0], wider, SCHEMA.columns[2])
    other = TableSchema(TABLE, columns, SCHEMA.key, SCHEMA.primary_key)
    object.__setattr__(fine, "schema", other)
    with pytest.raises(resume.StartAgain, match="key"):
        touched([fine])
    monkeypatch.setattr(resume, "TOUCHED_ROWS", 0)
    with pytest.raises(resume.StartAgain, match="too many"):
        touched([fine])


@pytest.mark.parametrize("keep", [True, False])
def test_rows_are_chosen_by_whole_keys_in_order(keep: bool) -> None:
    """Guards `resume.filtered`: compared by a part of the key, or without regard to case, it would
    drop rows that nobody touched."""
    rows = pa.table(
        {"word": ["a", "a", "A", "b"], "part": [1, 2, 1, 1], "v": ["w", "x", "y", "z"]},
        schema=PLACE.arrow,
    )
    keys = pa.table({"word": ["a", "b", "c"], "part": [1, 1, 9]})
    found = resume.filtered(rows, keys, SCHEMA, keep=keep)
    assert found.column("v").to_pylist() == (["w", "z"] if keep else ["x", "y"])
    assert found.schema == rows.schema
    assert resume.filtered(rows.slice(0, 0), keys, SCHEMA, keep=keep).num_rows == 0


def segment(number: int) -> SegmentRow:
    return SegmentRow(number, "", 1, 1, Position(number * 50), True)


@pytest.mark.parametrize(("first", "is_whole"), [(3, True), (5, True), (6, False)])
def test_the_log_is_whole_while_it_reaches_back_to_the_first_view(
    first: int, is_whole: bool
) -> None:
    """Guards `resume.is_log_whole` (CORRECTNESS 17): with a gap since the first view, keys that
    were touched in it would keep their old rows."""
    store = MemoryStore([TABLE])
    for number in range(1, 8):
        store.record_segment(segment(number), Position(number * 50))
    store.forget(list(range(1, first)))
    assert resume.is_log_whole(store, COPY) is is_whole


class Until(MemoryStore):
    """Does the next thing each time it is looked at, as the capture and decode threads would."""

    steps: list[Callable[[], Any]]

    def memory(self) -> Any:
        if self.steps:
            self.steps.pop(0)()
        return super().memory()


def test_the_log_is_waited_for_until_all_before_the_view_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `resume.wait_for_log`: asked sooner, while the log is not captured or not decoded up
    to the view, it would miss touched keys; a stop ends the wait."""
    monkeypatch.setattr(resume, "WAIT_SECONDS", 0.0)
    store = Until([TABLE])
    old = change_file(tmp_path, 1, [(Op.INSERT, 40, ("old", 1), None)])
    new = change_file(tmp_path, 5, [(Op.INSERT, 220, ("new", 1), None)])
    seen: list[str] = []
    store.steps = [
        lambda: store.record_segment(segment(1), Position(50)),
        lambda: store.record_decoded([1], [old]),
        lambda: seen.append("decoded, but not captured far enough"),
        lambda: store.record_segment(segment(5), Position(250)),
        lambda: seen.append("captured, but not decoded"),
        lambda: store.record_decoded([5], [new]),
    ]
    assert resume.wait_for_log(store, COPY, 250, lambda: False) == [new]
    assert len(seen) == 2
    assert not store.steps
    assert resume.wait_for_log(store, COPY, 251, lambda: True) is None


def test_a_chunk_whose_file_is_not_as_it_was_is_not_done(tmp_path: Path) -> None:
    """Guards `resume.finished`: a chunk that is recorded, and whose file is gone or cut, would
    leave its rows out of the copy."""
    path = tmp_path / "0.parquet"
    pq.write_table(pa.table({"word": ["a"]}), path)
    done = CopyChunk(0, "a", path=str(path), rows=1, is_done=True)
    other = CopyChunk(1, "b", path=str(tmp_path / "1.parquet"), rows=1, is_done=True)
    found = resume.finished(COPY.marked([done, other]), PLACE)
    assert [c.is_done for c in found.chunks] == [True, False]
    (tmp_path / "0.parquet").write_bytes(path.read_bytes()[:-5])
    assert not any(c.is_done for c in resume.finished(COPY.marked([done]), PLACE).chunks)


class Waiting:
    """A log that is captured and decoded by hand while a copy waits for it; each look takes a
    minute."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *turns: Callable[[MemoryStore], None]
    ) -> None:
        self.store, self.now, self.turns = MemoryStore([TABLE]), 0.0, list(turns)
        self.progress: list[float] = []
        monkeypatch.setattr(resume.time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += 60.0
        assert self.now < 10_000
        if self.turns:
            self.turns.pop(0)(self.store)

    def wait(self, *, is_full: bool) -> list[ChangeFileRow] | None:
        return resume.wait_for_log(
            self.store, COPY, 300, lambda: False, is_log_full=lambda: is_full,
            on_progress=lambda: self.progress.append(self.now), timer=lambda: self.now,
        )  # fmt: skip


def sealed(number: int) -> Callable[[MemoryStore], None]:
    row = SegmentRow(number, "", 1, 0, Position(number * 100), True)
    return lambda store: store.record_segment(row, row.position)


def decoded(number: int) -> Callable[[MemoryStore], None]:
    return lambda store: store.record_decoded([number], [])


def test_a_log_that_comes_slowly_is_no_standstill(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards `on_progress` of `wait_for_log`: a copy that goes on after hours of pause waits for
    hours of log, and without it the run is killed at the step's deadline, in each run anew."""
    log = Waiting(monkeypatch, sealed(1), sealed(2), sealed(3), decoded(1), decoded(2), decoded(3))
    assert log.wait(is_full=True) == []
    assert log.progress == [0.0, 60.0, 120.0, 180.0, 240.0, 300.0]


def test_a_copy_that_a_full_log_waits_for_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards the way out where the log waits for the copy and the copy for the log: neither would
    ever end."""
    log = Waiting(monkeypatch, sealed(1))
    with pytest.raises(resume.StartAgain, match="full"):
        log.wait(is_full=True)
    assert 60.0 + resume.FULL_SECONDS < log.now < 60.0 + resume.FULL_SECONDS + 120.0
