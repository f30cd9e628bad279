"""The partition of a key is the one that Java's default partitioner chooses."""

from __future__ import annotations

import pyarrow as pa
import pytest

from replicators.targets.kafka.partitions import partitions

KNOWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""Murmur2 of these bytes, as Kafka's own tests of its Java client have it."""


@pytest.mark.parametrize("count", [1, 2, 6, 1000, 2**31 - 1])
def test_partitions_are_those_of_javas_client(count: int) -> None:
    """Guards that other producers and stream joins find a key where we put it."""
    keys = pa.array(list(KNOWN), pa.binary())
    wanted = [(hashed & 0x7FFFFFFF) % count for hashed in KNOWN.values()]
    assert partitions(keys, count).tolist() == wanted
    assert partitions(keys.slice(2, 3), count).tolist() == wanted[2:5]


def test_rows_without_a_key_are_on_the_first_partition() -> None:
    """Guards NULL among keys, and an empty key, which has a partition of its own."""
    found = partitions(pa.array([None, b"21", b""], pa.binary()), 1000)
    assert found[0] == 0 and found[1] == (-973932308 & 0x7FFFFFFF) % 1000
    assert len(partitions(pa.array([], pa.binary()), 4)) == 0
