"""The order of files in `make test`."""

from __future__ import annotations

from tests.turns import BUSY, folder, turns

FILES = [
    *(f"tests/crash/test_{n}.py" for n in range(10)),
    *(f"tests/spark/test_{n}.py" for n in range(10)),
    *(f"tests/unit/engine/test_{n}.py" for n in range(60)),
    *(f"tests/integration/test_{n}.py" for n in range(40)),
]


def test_busy_files_are_spread_and_none_is_among_the_last() -> None:
    """Guards both reasons of the order. With busy files in one block, or one of them at the end,
    a core would wait."""
    places = turns(FILES)
    assert set(places) == set(FILES)
    ordered = sorted(FILES, key=places.__getitem__)
    is_busy = [folder(f) in BUSY for f in ordered]
    assert sum(is_busy) == 20
    assert all(1 <= sum(is_busy[at : at + 12]) <= 4 for at in range(0, 96, 12))
    assert not any(is_busy[-8:])


def test_files_keep_their_order_within_each_group() -> None:
    places = turns(FILES)
    for group in (FILES[:20], FILES[20:]):
        assert sorted(group, key=places.__getitem__) == group
    assert turns([]) == {}
