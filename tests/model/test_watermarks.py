"""The check of watermarks itself."""

from __future__ import annotations

from tests.model.watermarks import is_one_moment, spread

HISTORY = [
    (1, "one", 0, None, "a", 11),
    (1, "two", 0, None, "b", 12),
    (2, "one", 1, "a", "c", 13),
    (2, "two", 2, "b", None, None),
    (3, "two", 3, None, None, None),
    (3, "two", 0, None, "d", 14),
]


def test_tables_of_one_moment_are_told_from_tables_of_two() -> None:
    """Guards the checker: tables that are each right at some moment, but not at one, are found."""
    old = {"z": 3}
    assert is_one_moment(HISTORY, {"one": old, "two": old})
    assert is_one_moment(HISTORY, {"one": {"z": 3, "a": 11}, "two": {"z": 3, "b": 12}})
    assert is_one_moment(HISTORY, {"one": {"z": 3, "c": 13}, "two": {"z": 3}})
    assert is_one_moment(HISTORY, {"one": {"z": 3, "c": 13}, "two": {"d": 14}})
    assert not is_one_moment(HISTORY, {"one": old, "two": {"z": 3, "b": 12}})
    assert not is_one_moment(HISTORY, {"one": {"z": 3, "a": 11}, "two": {"d": 14}})
    assert not is_one_moment(HISTORY, {"one": {"z": 3, "c": 13}, "two": {"z": 3, "d": 14}})


def test_what_a_transaction_left_behind_halfway_is_no_moment() -> None:
    """Guards the checker: with moments after each change, a commit or a watermark in the middle of
    a transaction would pass."""
    old, halfway = {"z": 3}, {"one": {"z": 3, "a": 11}, "two": {"z": 3}}
    assert not is_one_moment(HISTORY, halfway)
    assert is_one_moment([(i, *e[1:]) for i, e in enumerate(HISTORY)], halfway)
    assert not is_one_moment(HISTORY, {"one": {"z": 3, "c": 13}, "two": {"z": 3, "b": 12}})
    assert is_one_moment([], {"one": old}) and is_one_moment(
        HISTORY[:1], {"one": {"z": 3, "a": 11}}
    )


def test_of_many_watermarks_some_are_read_over_all_of_the_time() -> None:
    """Guards `spread`: only the first or the last watermarks of a walk would be held against the
    history."""
    assert spread(range(5), 8) == [0, 1, 2, 3, 4]
    assert spread(range(100), 4) == [0, 33, 66, 99]
    assert spread([], 4) == []
