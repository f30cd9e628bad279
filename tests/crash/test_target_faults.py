"""What happens to a target: storage that may not be written for a while, merges that take long."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness import Traffic, World
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

SLOW_SECONDS, LIMIT = 120.0, 400_000


def _can_mount() -> bool:
    return os.geteuid() == 0 and shutil.which("mount") is not None


@contextmanager
def mounted(folder: Path, size: str = "300m") -> Iterator[None]:
    """A file system of its own at `folder`."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(command, check=False).returncode:
        pytest.skip("this machine lets nobody mount a file system")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def remount(world: World, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(world.warehouse)], check=True)


@pytest.mark.skipif(not _can_mount(), reason="only root can mount a file system")
@pytest.mark.long
def test_a_target_that_may_not_be_written_for_a_while_stops_merging_only(
    world_maker: MakeWorld,
) -> None:
    """Guards CORRECTNESS 28: a failing target must stop neither capture nor the run, and the tables
    come back by themselves."""
    with world_maker() as world, mounted(world.warehouse):
        traffic = Traffic(world.database)
        child = world.start()
        world.settle()
        remount(world, "ro")
        traffic.write(20)
        world.until_states("failing target:not-writable", "items")
        position = world.position()
        traffic.write(20)
        world.until(lambda: world.position() > position, "capture goes on")
        remount(world, "rw")
        world.assert_equal()
        assert not child.is_dead()
        assert world.stop() == 0


@pytest.mark.skipif(not _can_mount(), reason="only root can mount a file system")
@pytest.mark.long
def test_a_target_without_room_stops_merging_only(world_maker: MakeWorld) -> None:
    """Guards CORRECTNESS 28 where the target's disk is full: it is said so, capture goes on, and no
    half commit is left."""
    with world_maker(tables=("items",)) as world, mounted(world.warehouse, "40m"):
        traffic = Traffic(world.database)
        child = world.start()
        world.settle()
        filler = world.warehouse / "filler"
        room = shutil.disk_usage(world.warehouse).free
        filler.write_bytes(b"x" * (room - 4096))
        traffic.write(20)
        world.until_states("failing target:storage-full", "items")
        position = world.position()
        traffic.write(20)
        world.until(lambda: world.position() > position, "capture goes on")
        filler.unlink()
        world.assert_equal()
        assert not child.is_dead()
        assert world.stop() == 0


@pytest.mark.long
def test_while_merges_take_long_capture_goes_on_to_the_logs_limit_and_says_so(
    world_maker: MakeWorld,
) -> None:
    """Guards CORRECTNESS 28: a slow target must not hold the source's log, and the log's limit is
    shown as a state."""
    with world_maker() as world:
        traffic = Traffic(world.database)
        held = world.folder / "held"
        world.start(
            REPLICATOR_FAILPOINTS=f"target_merged=hold:{held}",
            REPLICATOR_LOG_LIMIT_BYTES=str(LIMIT),
        )
        world.settle()
        held.touch()
        traffic.write(5)
        position = world.position()
        world.until(lambda: world.position() > position, "capture goes on")
        with traffic.going_on():
            world.until(lambda: world.facts().get("is_backpressure"), "backpressure is shown")
            assert "change log full" in world.label()
            end = time.monotonic() + SLOW_SECONDS
            position = world.position()
            world.until(lambda: time.monotonic() > end, "minutes go by", 2 * SLOW_SECONDS)
            assert world.position() == position, "it went on reading"
            files = (p for p in (world.folder / "log").rglob("*") if p.is_file())
            assert sum(p.stat().st_size for p in files) < 2 * LIMIT
        worst = max(world.row(t).lag_seconds or 0.0 for t in world.tables)
        world.until(
            lambda: max(world.row(t).lag_seconds or 0.0 for t in world.tables) > worst,
            "lag is measured and grows",
        )
        held.unlink()
        assert world.stop() == 0
        world.start()
        world.assert_equal()
        assert world.stop() == 0
