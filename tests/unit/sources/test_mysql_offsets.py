"""Positions and GTID sets of both flavours."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from replicators.connectors.model.positions import Position
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.mysql.continuity import asked_for
from replicators.sources.mysql.held import held_in
from replicators.sources.mysql.offsets import (
    MARIADB,
    MYSQL,
    Coordinates,
    MariadbGtids,
    MysqlGtids,
    file_number,
    is_within,
    value_at,
)

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"


def test_a_position_comes_back_from_json_and_orders_by_file_and_offset() -> None:
    """Guards `Coordinates` (CORRECTNESS 1): a place that changed in its JSON, or an order by file
    names, would go on elsewhere in the log."""
    first = Coordinates(MARIADB, "1", "log.with.dots.000009", 4_000_000_000, "0-1-5", 17)
    later = Coordinates(MARIADB, "1", "log.with.dots.000010", 4)
    position = Position.from_json(first.position().to_json())
    assert Coordinates.of(position) == first
    assert position.ordinal < later.value
    assert position.ordinal % (1 << 35) == 4_000_000_000


@pytest.mark.parametrize("name", ["binlog", "binlog.index", "binlog.", ""])
def test_a_name_without_a_number_is_no_binlog_file(name: str) -> None:
    """Guards `file_number`: a number made up for such a name would put its positions anywhere in
    the order."""
    with pytest.raises(ValueError, match="not a binlog file"):
        file_number(name)


@given(
    st.integers(1, 2**27),
    st.integers(4, 2**35 - 1),
    st.integers(1, 2**27),
    st.integers(4, 2**35 - 1),
)
@example(2, 2**35 - 1, 3, 4)
def test_values_order_like_pairs(a: int, b: int, c: int, d: int) -> None:
    """Guards `value_at`: were `OFFSET_BITS` too few, a large offset would pass for one in a later
    file."""
    assert (value_at(a, b) < value_at(c, d)) == ((a, b) < (c, d))
    assert value_at(a, b) < 2**63


def test_the_last_of_each_domain_counts() -> None:
    """Guards `MariadbGtids.is_within` (CORRECTNESS 26): a server that lacks a domain, or is behind
    in one, would be taken for one that has everything."""
    gtids = MariadbGtids("0-1-100,1-5-7")
    gtids.add(0, 2, 101)
    assert str(gtids) == "0-2-101,1-5-7"
    assert is_within(MARIADB, "0-1-100", str(gtids))
    assert not is_within(MARIADB, "0-1-102", str(gtids))
    assert not is_within(MARIADB, "9-1-1", str(gtids))
    assert is_within(MARIADB, "", "")


def test_ranges_are_joined_and_compared_with_their_gaps() -> None:
    """Guards `MysqlGtids` (CORRECTNESS 26): a gap that is passed over is a transaction that the
    other server does not have; tags count apart."""
    gtids = MysqlGtids(f"{A}:1-3:5,\n{B}:7:tag:1-2")
    gtids.add(A, 4, 4)
    gtids.add(A, 6, 9)
    assert str(gtids) == f"{A}:1-9,{B}:7,{B}:tag:1-2"
    assert is_within(MYSQL, f"{A}:2-8,{B}:7", str(gtids))
    assert not is_within(MYSQL, f"{A}:2-10", str(gtids))
    assert not is_within(MYSQL, f"{A}:1-9", f"{A}:1-4:6-9")


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 5)), max_size=30))
def test_ranges_hold_what_was_added(runs: list[tuple[int, int]]) -> None:
    """Guards the joining in `MysqlGtids.add` in any order: a range that swallows a gap would take
    transactions for seen, and drop them."""
    gtids = MysqlGtids()
    expected = set()
    for first, more in runs:
        gtids.add(A, first, first + more)
        expected |= set(range(first, first + more + 1))
    again = MysqlGtids(str(gtids))
    found = {n for n in range(1, 80) if MysqlGtids(f"{A}:{n}").is_within(again)}
    assert found == expected


def test_a_stream_that_moves_to_another_server_stays_in_order() -> None:
    """Guards the order of positions over servers whose files are numbered each for itself."""
    old = Coordinates(MYSQL, "a", "binlog.065535", 900)
    ahead = Coordinates(MYSQL, "a", "binlog.065540", 4)
    new = Coordinates(MYSQL, "b", "log.000001", 4, era=old.next_era(), by_gtids=True)
    assert old.value < ahead.value < new.value
    assert Coordinates.of(Position.from_json(new.position().to_json())) == new
    assert Coordinates(MYSQL, "c", "log.000001", 4, era=new.next_era()).value > new.value


def test_a_state_has_what_each_server_wrote() -> None:
    """Guards transactions of a server that went its own way: the same domain, higher numbers,
    another server."""
    copied = MariadbGtids("0-1-100,1-5-7")
    assert copied.is_in_state("0-1-100,0-2-130,1-5-9")
    assert not copied.is_in_state("0-1-90,0-2-130,1-5-9")
    assert not copied.is_in_state("0-1-100,0-2-130")


def test_a_set_goes_over_the_wire_with_open_ranges() -> None:
    """Guards the form of COM_BINLOG_DUMP_GTID, with and without tags."""
    raw = bytes.fromhex(A.replace("-", ""))
    plain = MysqlGtids(f"{A}:1-3:5").encoded()
    assert plain == struct.pack("<Q", 1) + raw + struct.pack("<QQQQQ", 2, 1, 4, 5, 6)
    tagged = MysqlGtids(f"{A}:1:tag:2").encoded()
    assert tagged[:8] == bytes([1, 2, 0, 0, 0, 0, 0, 1])
    assert tagged[8:25] == raw + b"\0"
    assert tagged[41 + 8 : 41 + 8 + 20] == raw + bytes([6]) + b"tag"


@given(st.sets(st.integers(1, 30)), st.sets(st.integers(1, 30)), st.sampled_from([A, f"{A}:tag"]))
def test_what_is_left_of_a_set(whole: set[int], part: set[int], source: str) -> None:
    """Guards `MysqlGtids.without`, by sets of numbers: what is left tells which transactions are
    still to come."""

    def made(numbers: set[int]) -> MysqlGtids:
        return MysqlGtids(",".join(f"{source}:{n}" for n in numbers))

    assert str(made(whole).without(made(part))) == str(made(whole - part))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", set()),
        (f"{A}:5#19:4#17", {(f"{A}:5", 19), (f"{A}:4", 17)}),
        (f"{A}:9#4{A}:tag:7#42,\n{A}:8#1", {(f"{A}:9", 4), (f"{A}:tag:7", 42), (f"{A}:8", 1)}),
    ],
)
def test_transactions_that_are_not_finished_are_read(
    text: str, found: set[tuple[str, int]]
) -> None:
    """Guards `gtid_owned` as MySQL 9.7 writes it: nothing stands between a process and the next
    source."""
    assert held_in(text) == found


@pytest.mark.parametrize("flavour", [MARIADB, MYSQL])
def test_a_place_beyond_four_gibibytes_is_asked_for_by_gtids(flavour: str) -> None:
    """Guards a restart behind a transaction of more than 4 GiB: the command's offset has four
    bytes."""
    last = Coordinates(flavour, "1", "binlog.000007", 0xFFFFFFFF, "0-1-5", 17, era=3)
    assert asked_for(last) == last
    asked = asked_for(replace(last, offset=1 << 32))
    assert (asked.file, asked.offset, asked.by_gtids) == ("", 4, True)
    assert (asked.gtids, asked.era) == ("0-1-5", 3)
    with pytest.raises(ReplicationError, match="4 GiB"):
        asked_for(replace(last, offset=1 << 32, gtids=""))
