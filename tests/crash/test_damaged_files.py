"""Files of the change log that a disk damaged, on the whole path."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from runners.models import ChangeFile, Segment
from tests.harness import Traffic, World
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]


def _flip(path: str) -> None:
    data = bytearray(Path(path).read_bytes())
    data[len(data) // 2] ^= 1
    Path(path).write_bytes(data)


def _cut(path: str) -> None:
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[: len(data) // 2])


def _is_said(world: World, times: int) -> bool:
    return world.log_text().count("decoding it again") >= times


def _listed(world: World) -> list[str]:
    """Paths of the change files that no table has merged."""
    files = ChangeFile.objects.filter(replicator=world.replicator)
    merged = {name: world.row(name).merged_sequence for name in world.tables}
    return [f.path for f in files if f.first_sequence > merged[f.table_name]]


def test_damaged_files_are_decoded_again_or_said_and_nothing_is_merged_of_them(
    twin_maker: MakeWorld,
) -> None:
    """Guards CORRECTNESS 27: a change file with a flipped bit, or without its end, is decoded again
    from its segment; a damaged segment stops every table, and a fresh copy heals it. Fails where
    either checksum is not read: then rows are wrong, or a reader dies of half a file."""
    with twin_maker(tables=("items", "views")) as world:
        traffic = Traffic(world.database)
        listed, recorded = world.folder / "listed", world.folder / "recorded"
        child = world.start(
            REPLICATOR_FAILPOINTS=f"change_files_listed=hold:{listed},segment_recorded=hold:{recorded}"
        )
        world.settle()
        for times, damage in enumerate((_flip, _cut), 1):
            listed.touch()
            traffic.write(20)
            for path in world.until(lambda: _listed(world), "change files are listed"):
                damage(path)
            listed.unlink()
            world.assert_equal()
            world.until(partial(_is_said, world, times), "it is said")
        assert {world.row(t).generation for t in world.tables} == {1}, "copied afresh"
        recorded.touch()
        last = world.last_segment()
        traffic.write(20)
        world.until(lambda: world.last_segment() > last, "a segment is recorded")
        _flip(Segment.objects.latest("number").path)
        recorded.unlink()
        world.until_states("failing log:segment-corrupt")
        for name in world.tables:
            world.resync(name)
        world.assert_equal()
        assert not child.is_dead()
        assert world.stop() == 0
