"""A random adversary against the whole data path; `SEED=... STEPS=... FORMAT=iceberg|delta make nemesis` repeats or lengthens its walk."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable

import pytest

from demo.postgres import EmbeddedPostgres
from tests.model.machine import Machine
from tests.model.sources import TABLES, MysqlSource, PostgresSource
from tests.mysql_servers import MariadbServer, MysqlServer, SqlServer
from tests.mysql_world import MysqlWorld
from tests.world_fixtures import MakeWorld

STEPS = int(os.environ.get("STEPS", "200"))
MYSQL_STEPS = min(STEPS, 50)
# What was committed outlives a kill of the server.
DURABLE = {"innodb-flush-log-at-trx-commit": "1", "sync-binlog": "1"}
FORMAT = os.environ.get("FORMAT", "iceberg")
SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(1_000_000))))
pytestmark = [pytest.mark.crash, pytest.mark.timeout(600 + 10 * STEPS)]


def walk(machine: Machine, steps: int) -> None:
    """A walk from a copy that is whole to a run that is paused; what repeats it is told beforehand."""
    sys.stderr.write(f"nemesis: SEED={SEED} STEPS={steps} FORMAT={FORMAT}\n")
    machine.world.start()
    machine.world.until_states("replicating")
    try:
        machine.walk(steps)
    except BaseException:
        sys.stderr.write(f"nemesis: SEED={SEED}, step {len(machine.told)} of {steps}\n")
        raise
    finally:
        sys.stderr.write(f"nemesis: {dict(machine.counts)}\n")
    assert machine.world.stop() == 0


def test_no_random_walk_of_changes_kills_and_cuts_makes_source_and_target_differ(
    world_maker: MakeWorld, record_property: Callable[[str, object], None]
) -> None:
    """Guards the whole of CORRECTNESS as far as the walk goes. It fails where any of these is switched off: whole
    transactions by position (1), the frontier (2), stable row numbers (3), the truncate barrier (6), the delete half of a
    changed key (8), filling of unsent columns (9), key ranges over old keys (11), the token in the target (13), the cut at a
    round's end (31)."""
    prepare = PostgresSource.prepare
    with (
        EmbeddedPostgres() as server,
        world_maker(server=server, prepare=prepare, tables=TABLES, format=FORMAT) as world,
    ):
        machine = Machine(world, SEED, PostgresSource(world, server))
        try:
            walk(machine, STEPS)
        finally:
            sys.stderr.write(f"nemesis: {machine.figures}\n")
            record_property("seed", SEED)
            record_property("walk", machine.figures)


@pytest.mark.parametrize("flavour", [MariadbServer, MysqlServer])
@pytest.mark.parametrize("steps", [MYSQL_STEPS, pytest.param(STEPS, marks=pytest.mark.long)])
def test_nor_does_one_from_mariadb_or_mysql(
    world_maker: MakeWorld, flavour: type[SqlServer], steps: int
) -> None:
    """Guards the same on the other servers, and CORRECTNESS 19: every copy there converges with the log."""
    with (
        flavour(options=DURABLE) as server,
        world_maker(
            server=server,
            prepare=MysqlSource.prepare,
            tables=TABLES,
            format=FORMAT,
            kind=MysqlWorld,
        ) as world,
    ):
        walk(Machine(world, SEED, MysqlSource(world, server)), steps)
