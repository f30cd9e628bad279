"""Positions and GTID sets of both flavours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicators.connectors.offsets import Position
from replicators.sources.mysql.offsets import (
    MARIADB,
    MYSQL,
    Coordinates,
    MariadbGtids,
    MysqlGtids,
    file_number,
    is_within,
    offset_of,
    value_at,
)

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"


def test_a_position_comes_back_from_json_and_orders_by_file_and_offset() -> None:
    first = Coordinates(MARIADB, "1", "log.with.dots.000009", 4_000_000_000, "0-1-5", 17)
    later = Coordinates(MARIADB, "1", "log.with.dots.000010", 4)
    position = Position.from_json(first.position().to_json())
    assert Coordinates.of(position) == first
    assert position.value < later.value
    assert offset_of(position.value) == 4_000_000_000


@pytest.mark.parametrize("name", ["binlog", "binlog.index", "binlog.", ""])
def test_a_name_without_a_number_is_no_binlog_file(name: str) -> None:
    with pytest.raises(ValueError, match="not a binlog file"):
        file_number(name)


@given(
    st.integers(1, 2**27),
    st.integers(4, 2**35 - 1),
    st.integers(1, 2**27),
    st.integers(4, 2**35 - 1),
)
def test_values_order_like_pairs(a: int, b: int, c: int, d: int) -> None:
    assert (value_at(a, b) < value_at(c, d)) == ((a, b) < (c, d))
    assert value_at(a, b) < 2**63


def test_the_last_of_each_domain_counts() -> None:
    gtids = MariadbGtids("0-1-100,1-5-7")
    gtids.add(0, 2, 101)
    assert str(gtids) == "0-2-101,1-5-7"
    assert is_within(MARIADB, "0-1-100", str(gtids))
    assert not is_within(MARIADB, "0-1-102", str(gtids))
    assert not is_within(MARIADB, "9-1-1", str(gtids))
    assert is_within(MARIADB, "", "")


def test_ranges_are_joined_and_compared_with_their_gaps() -> None:
    gtids = MysqlGtids(f"{A}:1-3:5,\n{B}:7:tag:1-2")
    gtids.add(A, 4, 4)
    gtids.add(A, 6, 9)
    assert str(gtids) == f"{A}:1-9,{B}:7,{B}:tag:1-2"
    assert is_within(MYSQL, f"{A}:2-8,{B}:7", str(gtids))
    assert not is_within(MYSQL, f"{A}:2-10", str(gtids))
    assert not is_within(MYSQL, f"{A}:1-9", f"{A}:1-4:6-9")


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 5)), max_size=30))
def test_ranges_hold_what_was_added(runs: list[tuple[int, int]]) -> None:
    gtids = MysqlGtids()
    expected = set()
    for first, more in runs:
        gtids.add(A, first, first + more)
        expected |= set(range(first, first + more + 1))
    again = MysqlGtids(str(gtids))
    found = {n for n in range(1, 80) if MysqlGtids(f"{A}:{n}").is_within(again)}
    assert found == expected
