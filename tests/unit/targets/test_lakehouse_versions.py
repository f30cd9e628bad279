"""Which older versions of a table are found, and which are kept by tags (Iceberg) and by marks
(Delta)."""

from __future__ import annotations

import pytest

from replicators.connectors.target import KeptVersion, Token
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.state import token_values
from replicators.targets.lakehouse.versions import (
    TAG,
    Snapshot,
    Snapshots,
    apart_seconds,
    marked_at,
    read_marks,
    remark,
    retag,
    written_marks,
)

ICEBERG = LakehouseParams(warehouse="/w", catalog_uri="sqlite:////w/c.db", history_minutes=30)
DAY = 86400.0
OWNER = Token("r", 1, 0, "u")


def snapshots(
    count: int, *, first: int = 1, tags: tuple[int, ...] = (), generation: int = 1
) -> Snapshots:
    """Versions 1 to `count`, one every 100 s from 0 on, whose sequence is ten times their number.
    Those before `first` are there only where a tag keeps them."""
    known = {
        n: Snapshot(
            n,
            n - 1 if n > 1 else None,
            token_values(Token("r", generation, 10 * n, "u")),
            100.0 * (n - 1),
        )
        for n in range(1, count + 1)
        if n >= first or n in tags
    }
    return Snapshots(count, known, {"mine": 1} | {f"{TAG}{n}": n for n in tags})


def test_a_version_before_the_history_is_found_by_its_tag() -> None:
    """Fails where only the line of ancestors is followed: it ends at the first one that was
    removed."""
    found = snapshots(9, first=6, tags=(1, 4))
    wanted = {5: 10, 15: 10, 39: 10, 45: 40, 59: 40, 65: 60, 99: 90}
    for sequence, expected in wanted.items():
        kept = found.at(OWNER, sequence)
        assert kept is not None and kept.sequence == expected, sequence


def test_what_another_generation_wrote_is_not_found() -> None:
    """Guards `Snapshots.of` (CORRECTNESS 15): a rewind to rows of another generation would apply
    changes to a copy that they do not belong to."""
    assert snapshots(5, generation=2).at(OWNER, 30) is None


def test_a_tag_in_the_line_is_not_found_twice() -> None:
    """Guards the order in `Snapshots.line`: a tagged version that is still in the line would come
    again, behind older ones."""
    assert [s.version for s in snapshots(5, tags=(2, 3)).line()] == [5, 4, 3, 2, 1]


def test_of_what_would_go_a_version_is_kept_for_each_stretch_of_time() -> None:
    """Without the tags a rewind would reach only as far back as the history does."""
    due = retag(snapshots(9), OWNER, ends_at=700.0, since=-1000.0, apart=250.0)
    assert due.made == {f"{TAG}1": 1, f"{TAG}4": 4, f"{TAG}7": 7}
    assert due.dropped == ()
    again = retag(snapshots(9, first=8, tags=(1, 4, 7)), OWNER, ends_at=700.0, since=-1000.0,
        apart=250.0)  # fmt: skip
    assert (again.made, again.dropped) == ({}, ())


def test_a_tag_goes_once_the_next_one_lies_before_what_is_kept() -> None:
    """The last one before the changes that are kept has to stay: a rewind to the oldest of them
    begins there."""
    found = snapshots(9, first=8, tags=(1, 4, 7))
    assert retag(found, OWNER, ends_at=700.0, since=299.0, apart=300.0).dropped == ()
    assert retag(found, OWNER, ends_at=700.0, since=300.0, apart=300.0).dropped == (f"{TAG}1",)
    assert retag(found, OWNER, ends_at=700.0, since=DAY, apart=300.0).dropped == (f"{TAG}1",
        f"{TAG}4")  # fmt: skip


def test_tags_of_another_generation_and_all_of_them_once_switched_off_go_and_others_stay() -> None:
    """Otherwise files that nobody can use any more stay for ever. A tag that somebody else made is
    not ours to drop."""
    found = snapshots(9, first=8, tags=(1, 4))
    both = (f"{TAG}1", f"{TAG}4")
    assert retag(found, OWNER, ends_at=0.0, since=0.0, apart=0.0).dropped == both
    renewed = Token("r", 2, 0, "u")
    assert retag(found, renewed, ends_at=0.0, since=0.0, apart=300.0).dropped == both


@pytest.mark.parametrize(
    ("changes", "keep", "apart"),
    [
        ({}, DAY, DAY / 3),
        ({"rewind_versions": 12}, DAY, 7200.0),
        ({"rewind_versions": 0}, DAY, 0.0),
        ({"history_minutes": 1440}, DAY, 0.0),
        ({}, 0.0, 0.0),
        ({"format": "delta"}, DAY, DAY / 3),
    ],
)
def test_single_versions_are_kept_where_changes_are_kept_longer_than_the_history(
    changes: dict[str, object], keep: float, apart: float
) -> None:
    """Guards `apart_seconds`: without single versions beyond the history no rewind has a place to
    begin; where none are needed, none are kept."""
    values = {"warehouse": "/w", "catalog_uri": "sqlite:////w/c.db", "history_minutes": 30}
    params = LakehouseParams(**{**values, **changes})  # type: ignore[arg-type]
    assert apart_seconds(params, keep) == apart


def version(number: int, at: float) -> KeptVersion:
    return KeptVersion(str(number), 10 * number, at)


def test_marks_are_read_as_they_were_written() -> None:
    """Guards the marks of Delta in `written_marks` and `read_marks`: one that is read with another
    sequence would begin a rewind too late, and lose changes."""
    marks = (version(3, 1.5), version(7, 1795358965.157))
    assert read_marks(written_marks(marks)) == marks
    assert read_marks("") == ()


def test_a_generations_first_version_is_marked_and_then_one_for_each_stretch_of_time() -> None:
    """Without the first, a rewind to before the first upkeep would be refused once the history has
    passed."""

    def after(marks: tuple[KeptVersion, ...], number: int, at: float) -> tuple[KeptVersion, ...]:
        return remark(marks, version(number, at), lambda: version(1, 0.0), since=-1.0, apart=300.0)

    first = after((), 2, 100.0)
    assert first == (version(1, 0.0),)
    assert after(first, 4, 299.0) == first
    second = after(first, 5, 300.0)
    assert second == (version(1, 0.0), version(5, 300.0))
    assert after(second, 9, 599.0) == second
    assert remark((), version(2, 100.0), lambda: None, since=-1.0,
        apart=300.0) == (version(2, 100.0),)  # fmt: skip


def test_a_mark_goes_once_the_next_one_lies_before_what_is_kept() -> None:
    """The last one before the changes that are kept has to stay: a rewind to the oldest of them
    begins there."""
    marks = (version(1, 0.0), version(4, 300.0), version(7, 600.0))

    def left(since: float, apart: float = 1000.0) -> list[str]:
        kept = remark(marks, version(9, 700.0), lambda: None, since=since, apart=apart)
        return [m.version for m in kept]

    assert left(299.0) == ["1", "4", "7"]
    assert left(300.0) == ["4", "7"]
    assert left(599.0) == ["4", "7"]
    assert left(DAY) == ["7"]
    assert left(0.0, apart=0.0) == []


def test_the_newest_mark_before_a_sequence_is_found_or_else_the_oldest() -> None:
    """Guards `marked_at` (CORRECTNESS 15): a mark after the asked sequence would leave the changes
    from there to it applied, though they were to be taken back."""
    marks = (version(1, 0.0), version(4, 300.0))
    found = {at: marked_at(marks, at) for at in (5, 10, 39, 40, 99)}
    assert {at: m and m.version for at, m in found.items()} == {5: "1", 10: "1", 39: "1", 40: "4",
        99: "4"}  # fmt: skip
    assert marked_at((), 99) is None
