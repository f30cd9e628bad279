"""The whole path with its change log in an object store, killed where a segment and where change
files have just been sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicators.connectors import files
from runners.engine.changelog.segments import root_of
from tests.crash.test_failpoints import died_at
from tests.harness import Traffic
from tests.stores import object_store
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]


@pytest.mark.long
def test_a_log_in_a_store_loses_and_doubles_nothing(
    world_maker: MakeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards CORRECTNESS 27 for stores: a segment recorded before it was sent, a task that wrote to
    a disk of its own, or a sweep that took a listed object would lose rows after the kills."""
    with object_store() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        knobs = {"REPLICATOR_LOG_URL": store.url, "REPLICATOR_LOG_SPOOL_DIR": str(tmp_path)}
        with world_maker(environment={**store.environment, **knobs}) as world:
            traffic = Traffic(world.database)
            child = world.start()
            world.settle()
            for point in ("segment_renamed", "change_files_written"):
                with traffic.going_on():
                    world.arm(point)
                    died_at(world, child, point)
                traffic.write(20)
                child = world.start()
                world.assert_equal()
            assert world.stop() == 0
            root = root_of(store.url, str(world.replicator.pk))
            assert list(files.listed(f"{root}/segments"))
            assert list(files.listed(f"{root}/changes"))
            assert list(files.listed(f"{root}/merges")) == []
            assert not (world.folder / "log").exists()
            assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
