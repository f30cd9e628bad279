"""SIGKILL at each step of a copy and of a merge into Redshift, played by a PostgreSQL server:
source and copies come to be equal, and no file waits in the bucket. The runs need no JVM."""

from __future__ import annotations

import pytest

from tests.crash.test_sql_target import (
    AT_RESYNC,
    AT_START,
    LIVE,
    PATIENT,
    first_copy,
    merges,
    resyncs,
)
from tests.harness import Traffic
from tests.redshift_server import RedshiftServer, fresh_redshift_database
from tests.redshift_world import RedshiftWorld
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1200), pytest.mark.long]


def test_a_kill_at_each_step_loses_and_doubles_nothing(
    world_maker: MakeWorld, redshift: RedshiftServer
) -> None:
    """Guards the order of writes (CORRECTNESS 13, 15, 16) where files wait in a bucket: those of a
    process that died go with its staging table. `views` has no key, so what comes twice shows."""
    with (
        fresh_redshift_database(redshift) as copies,
        world_maker(
            kind=RedshiftWorld, played=redshift, copies=copies, environment=PATIENT
        ) as world,
    ):
        traffic = Traffic(world.database, seed=47)
        first_copy(world, traffic, *AT_START)
        merges(world, traffic, *LIVE)
        resyncs(world, traffic, *AT_RESYNC)
        world.start()
        world.assert_equal()
        assert world.stop() == 0
        assert world.left_over("views") == set(), "a staging table or a file is left over"
