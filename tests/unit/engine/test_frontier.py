"""Merges never pass the decode frontier and end at transactions' ends (CORRECTNESS 2 and 3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from replicators.connectors.model.changes import OpCounts, first_sequence, last_sequence
from replicators.connectors.model.positions import Position
from runners.engine.apply.merge import Merger, next_batch
from runners.engine.changelog.backlog import TRIM_PAST, Backlog
from runners.engine.changelog.frontier import Frontier, frontier
from runners.engine.decode.thread import one_job
from runners.engine.fold.plan import FoldPlan
from runners.engine.store.protocol import ChangeFileRow, MemoryStore, SegmentRow
from tests.unit.engine.changes import SCHEMA


def segment(number: int, *, closed: bool = True, decoded: bool = False) -> SegmentRow:
    return SegmentRow(number, f"{number}.raw", 1, 0, Position(number * 100), closed, 1, decoded)


def change_file(number: int, rows: int = 10, version: str = "v1") -> ChangeFileRow:
    return ChangeFileRow(
        table=SCHEMA.id,
        segment=number,
        path=f"{number}.parquet",
        version=version,
        schema=SCHEMA,
        counts=OpCounts(inserts=rows),
        first_sequence=first_sequence(number),
        last_sequence=first_sequence(number) + rows - 1,
        first_committed_at=float(number),
        last_committed_at=float(number),
        first_position=number,
        last_position=number,
        size_bytes=1,
        crc32=0,
    )


def test_a_segment_decoded_before_an_earlier_one_does_not_move_the_frontier() -> None:
    """Guards CORRECTNESS 2 in `merge.frontier`: with segment 7 merged before 6, what 6 holds would
    be below the merged sequence for ever."""
    assert frontier([(5, True, True), (6, True, False), (7, True, True)], 7).segment == 5


def test_an_open_transaction_holds_the_frontier_until_its_last_segment() -> None:
    """Guards CORRECTNESS 3: merged up to a segment in its midst, half a transaction would be seen,
    and kept beside the whole one after a cut."""
    open_ones = [(5, True, True), (6, False, True), (7, False, True)]
    assert frontier(open_ones, 7).segment == 5
    assert frontier([*open_ones, (8, True, True)], 8) == Frontier(8, (5, 8))


def test_without_segments_everything_known_is_done() -> None:
    """Guards `merge.frontier` after pruning: back at 0, tables would seem behind a log of which
    nothing is left."""
    assert frontier([], 41).segment == 41


def test_a_batch_is_cut_only_where_a_transaction_ends() -> None:
    """Guards `next_batch` (CORRECTNESS 3): cut at the row limit alone, the first part of a
    transaction would be published without the rest."""
    files = [change_file(n) for n in (5, 6, 7, 8, 9)]
    taken, sequence = next_batch(files, Frontier(9, (5, 8, 9)), limit=15)
    assert [f.segment for f in taken] == [5, 6, 7, 8]
    assert sequence == last_sequence(8)


def test_a_batch_of_large_rows_is_cut_by_its_bytes() -> None:
    """Guards the bound of bytes in `next_batch`, and in `FoldPlan.is_small`: a backlog of a few
    large documents is below every bound of rows, and read at once it would end the run for want of
    memory, again after each start."""
    files = [replace(change_file(n), size_bytes=10 << 20) for n in (5, 6, 7, 8)]
    taken, sequence = next_batch(files, Frontier(8, (5, 7, 8)), limit_bytes=15 << 20)
    assert [f.segment for f in taken] == [5, 6, 7]
    assert sequence == last_sequence(7)
    plan = FoldPlan(SCHEMA, tuple(files), 0, 0, 0, "")
    assert plan.rows == 40 and not plan.is_small
    assert replace(plan, files=tuple(files[:3])).is_small


def test_a_batch_never_crosses_a_schema_version() -> None:
    """Guards CORRECTNESS 5 in `next_batch`: rows of two schemas in one merge would be written in
    one of them; its sequence ends right before the first of the next schema."""
    files = [change_file(5), change_file(6, version="v2"), change_file(7, version="v2")]
    taken, sequence = next_batch(files, Frontier(7, (5, 6, 7)))
    assert [f.segment for f in taken] == [5]
    assert sequence == files[1].first_sequence - 1


def test_a_file_listed_while_its_table_is_merged_is_not_forgotten() -> None:
    """Guards `Backlog.mark`: an answer of the store that is older than a listing would say that
    nothing waits, and lag would be 0."""
    backlog = Backlog([segment(1)], 1)
    touched = backlog.touched(SCHEMA.id)
    backlog.decoded([1], [change_file(1)])
    backlog.mark(SCHEMA.id, [], touched)
    assert backlog.oldest(SCHEMA.id) == 1.0
    backlog.mark(SCHEMA.id, [], backlog.touched(SCHEMA.id))
    assert backlog.oldest(SCHEMA.id) is None


def test_a_snapshot_starts_after_the_segments_that_end_before_its_point() -> None:
    """Guards `Backlog.last_before` (CORRECTNESS 16): too low, changes that the copy holds are
    merged over it; too high, changes after its point are lost."""
    backlog = Backlog([segment(1, decoded=True), segment(2, decoded=True), segment(3)], 3)
    assert backlog.last_before(250) == 2
    assert backlog.last_before(50) == 0


def test_a_log_that_begins_again_lower_leaves_nothing_that_counts_as_later() -> None:
    """Guards a copy that is made after a position was lost, as of a server that was restored:
    changes of the old log, whose positions may be higher, would be merged over it."""
    backlog = Backlog([segment(1, decoded=True), segment(2, decoded=True), segment(3)], 3)
    backlog.begun_again(Position(150))
    assert backlog.last_before(150) == 3
    assert backlog.last_before(149) == 1


def test_a_decode_job_takes_many_small_segments_but_few_large_ones() -> None:
    """Guards the bound of `decoding.one_job`: a job over everything that waits would list no file
    for minutes; one segment is taken whatever its size."""
    small = [segment(n) for n in range(32)]
    large = [replace(segment(n), size_bytes=100 << 20) for n in range(32)]
    assert one_job(small) == small
    assert one_job(large) == large[:2]
    assert one_job([replace(segment(1), size_bytes=1 << 40)]) != []


def test_a_table_is_done_up_to_a_place_once_that_is_decoded_and_its_files_are_merged() -> None:
    """Guards what the catalog says of a table against the log that is behind it."""
    backlog = Backlog([segment(5, decoded=True), segment(6)], 6)
    assert backlog.is_done(SCHEMA.id, 500, 600)
    assert not backlog.is_done(SCHEMA.id, 501, 600)
    backlog.decoded([6], [change_file(6)])
    assert not backlog.is_done(SCHEMA.id, 501, 600), "not merged"
    backlog.mark(SCHEMA.id, (), backlog.touched(SCHEMA.id))
    assert backlog.is_done(SCHEMA.id, 650, 650), "nothing came after the last segment"
    assert not backlog.is_done(SCHEMA.id, 651, 650)


def many(count: int) -> Backlog:
    """So many segments, decoded one after the other, the third of them within a transaction; of
    these the backlog holds the last."""
    backlog = Backlog([], 0)
    for number in range(1, count + 1):
        backlog.sealed(segment(number, closed=number != 3))
        backlog.decoded([number], [])
    assert len(backlog._segments) <= TRIM_PAST
    return backlog


def test_a_view_of_long_ago_begins_where_it_did_then() -> None:
    """Guards `Backlog._ends`: tables that wait for their turn in one view may be copied more than
    4,096 segments after it was opened. Where only later segments are known, what lies in between
    counts as copied, and is lost."""
    backlog = many(TRIM_PAST + 2)
    assert [backlog.last_before(p) for p in (50, 100, 250, 399, 400)] == [0, 1, 2, 2, 4]
    assert backlog.last_before(TRIM_PAST * 100) == TRIM_PAST
    backlog.dropped(range(1, 11))
    assert [backlog.last_before(p) for p in (400, 1100)] == [10, 11]
    backlog.begun_again(Position(2000))
    assert backlog.last_before(2000) == TRIM_PAST + 2


def test_a_table_that_is_far_behind_is_merged_in_parts_too() -> None:
    """Guards `Merger.with_ends`: the backlog knows late ends only, and without one before them all
    that is older would be one merge, however large."""
    store, count = MemoryStore([SCHEMA.id]), TRIM_PAST + 2
    for number in range(1, count + 1):
        store.record_segment(segment(number, decoded=True), Position(number * 100))
    files = [change_file(number) for number in range(1, count + 1)]
    nothing: Any = None
    merger = Merger(nothing, nothing, store, nothing, "r1", nothing, nothing)
    reached = many(count).frontier
    assert reached.closed[0] > 1
    taken, sequence = next_batch(files, merger.with_ends(files, reached), limit=10)
    assert (len(taken), sequence) == (1, last_sequence(1))
    late = files[-5:]
    assert merger.with_ends(late, reached) is reached
