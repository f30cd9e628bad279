"""A change log that has no room: nothing is lost, it is said, and it goes on when there is room
again."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harness import FILL_ITEMS, Traffic, World
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


def test_at_its_limit_capture_waits_visibly_and_goes_on_when_the_limit_is_raised(
    twin_maker: MakeWorld,
) -> None:
    """Guards CORRECTNESS 28. Without the limit the disk fills; dropping instead of waiting loses
    rows; a wait that nobody sees ends when the server gives up the slot."""
    with twin_maker(tables=("items", "views")) as world:
        traffic = Traffic(world.database)
        world.start(REPLICATOR_LOG_LIMIT_BYTES="100000")
        world.settle()
        with traffic.going_on():
            world.until(lambda: "change log full" in world.label(), "backpressure is shown")
        traffic.write(50)
        held = world.position()
        mark = int(world.database.execute("SELECT (pg_current_wal_lsn() - '0/0')::bigint")[0][0])
        world.until(
            lambda: world.facts().get("is_backpressure") and not world.unmerged(),
            "what was read is merged",
        )
        assert world.position() < mark, "it went on reading"
        assert set(world.states().values()) == {"replicating"}
        assert world.differences("views"), "nothing remained to be done"
        assert world.stop() == 0
        assert world.position() >= held

        world.start()
        world.assert_equal()
        world.until(lambda: not world.facts().get("is_backpressure"), "it no longer says it waits")
        assert world.stop() == 0


@pytest.mark.long
def test_a_table_over_its_share_gives_way_to_the_others_until_its_resync(
    world_maker: MakeWorld,
) -> None:
    """Guards CORRECTNESS 28: one table's backlog must not fill the log for all, and what was
    dropped must never be taken for merged."""
    with world_maker() as world:
        traffic = Traffic(world.database)
        child = world.start(REPLICATOR_TABLE_LIMIT_BYTES="1000000")
        world.settle()
        world.database.execute(FILL_ITEMS, {"first": 5_000_000, "last": 5_030_000})
        world.until_states("failing log:table-over-limit", "items")
        traffic.write(20)
        world.assert_equal("pairs", "views")
        assert world.row("items").state == "failing"
        assert world.row("items").retry_at is None, "what was dropped would be tried again"
        assert world.differences("items"), "nothing was lost by it, so nothing was dropped"

        world.resync("items")
        traffic.write(20)
        world.assert_equal()
        assert not child.is_dead()
        assert world.stop() == 0


def _can_mount() -> bool:
    return os.geteuid() == 0 and shutil.which("mount") is not None


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 3 MB at `folder`."""
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], check=False
    )
    if made.returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.skipif(not _can_mount(), reason="only root can mount a small disk")
@pytest.mark.long
def test_a_disk_that_is_full_ends_the_run_with_a_sentence_and_loses_nothing(
    twin_maker: MakeWorld,
) -> None:
    """Guards CORRECTNESS 27: a segment that could not be written whole must not be recorded or
    acknowledged."""

    def fail(world: World, traffic: Traffic) -> str:
        child = world.start(TEST_RECONNECT_SECONDS="0.5 1.0")
        with traffic.going_on():
            child.wait()
        child.end()
        return child.run.error_code

    with twin_maker(tables=("items", "views")) as world, small_disk(world.folder / "log"):
        traffic = Traffic(world.database)
        assert fail(world, traffic) == "log:disk-full"
        subprocess.run(["mount", "-o", "remount,size=200m", str(world.folder / "log")], check=True)
        traffic.write(20)
        world.start()
        world.assert_equal()
        assert world.stop() == 0


def _is_read(world: World) -> bool | None:
    """Whether somebody reads the slot; None where there is no slot."""
    slot = world.replicator.slot_name
    query = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"
    found = world.database.execute(query, [slot])
    return bool(found[0][0]) if found else None


@pytest.mark.long
def test_a_stalled_replicator_closes_its_connection_and_opens_it_when_there_is_room(
    twin_maker: MakeWorld,
) -> None:
    """Guards the option *While stalled* with *Close the connection*: without it the source's sender
    stays while nobody reads; a connection that stays closed replicates nothing any more."""
    choice = {"when_stalled": "close", "keep_hours": 0.003}
    with twin_maker(tables=("items", "views"), options=choice) as world:
        traffic = Traffic(world.database)
        world.start(REPLICATOR_LOG_LIMIT_BYTES="100000", REPLICATOR_STALLED_SECONDS="1")
        world.settle()
        with traffic.going_on():
            world.until(lambda: world.facts().get("is_source_closed"), "it says so")
        world.until(lambda: _is_read(world) is False, "nobody reads the slot")
        world.until(lambda: _is_read(world), "it is read again")
        world.assert_equal()
        assert world.stop() == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "choice",
    [
        {"when_stalled": "release"},
        {"retention_action": "drop", "source_gigabytes": 0.0002},
    ],
    ids=["stalled", "log-short"],
)
def test_the_slot_is_given_up_if_told_and_a_resync_brings_the_tables_back(
    twin_maker: MakeWorld, choice: dict[str, Any]
) -> None:
    """Guards *While stalled: Give up the position*, and *Log at the source at most* with *then give
    up the position*: the slot must go, the tables must say that changes are missing, and a re-sync
    must make them equal."""
    with twin_maker(tables=("items", "views"), options=choice) as world:
        traffic = Traffic(world.database)
        child = world.start(REPLICATOR_LOG_LIMIT_BYTES="100000", REPLICATOR_STALLED_SECONDS="1")
        world.settle()
        with traffic.going_on():
            assert child.wait() != 0
        child.end()
        assert child.run.error_code == "source:position-given-up"
        assert _is_read(world) is None, "the slot holds the source's log"
        assert set(world.states().values()) == {"failing source:position-given-up"}
        for name in world.tables:
            world.resync(name)
        world.start()
        world.assert_equal()
        assert world.stop() == 0
