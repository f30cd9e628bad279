"""Parts of a key's range: estimates that come to what the table holds, and neighbours that become
one."""

from __future__ import annotations

from replicators.sources.mysql.ranges import _joined, _levelled


def test_estimates_twice_too_large_do_not_halve_the_chunks() -> None:
    """Guards the levelling: without it a copy has twice the tasks, and says that it is half done at
    its end."""
    said = [(n * 100, n * 100 + 99, 250_000) for n in range(32)]
    parts = _joined(_levelled(said, 3_980_000), 250_000)
    assert len(parts) == 16
    assert (parts[0][0], parts[-1][1]) == (0, 3199)
    assert abs(sum(rows for _, _, rows in parts) - 3_980_000) < 100


def test_estimates_that_come_to_less_than_the_table_are_kept() -> None:
    """Guards against chunks that grow because the whole table's estimate is old: the parts' are
    newer."""
    said = [(0, 9, 100), (10, 19, 100)]
    assert _levelled(said, 1000) == said


def test_parts_follow_each_other_whatever_is_joined() -> None:
    """Guards that every key stays covered once."""
    parts = _joined([(0, 9, 5), (10, 19, 90), (20, 29, 40), (30, 39, 0)], 100)
    assert [p[:2] for p in parts] == [(0, 19), (20, 39)]
