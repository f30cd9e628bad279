"""The check of watermarks itself."""

from __future__ import annotations

from tests.model.watermarks import is_one_moment

HISTORY = [
    ("one", 0, None, "a", 11),
    ("two", 0, None, "b", 12),
    ("one", 1, "a", "c", 13),
    ("two", 2, "b", None, None),
    ("two", 3, None, None, None),
    ("two", 0, None, "d", 14),
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
