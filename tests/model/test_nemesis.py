"""A random adversary against the whole data path; `SEED=... STEPS=... FORMAT=iceberg|delta make
nemesis` repeats or lengthens its walk, MINUTES=... ends it after a time, NEMESIS_REPORT=file keeps
its metrics."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest

from demo.postgres import EmbeddedPostgres
from tests.model.machine import Machine
from tests.model.sources import TABLES, PostgresSource
from tests.model.sources_mysql import MysqlSource
from tests.model.tables import CHOICES, FURTHER, MODES
from tests.mysql_servers import MariadbServer, MysqlServer, SqlServer
from tests.mysql_world import MysqlWorld
from tests.world_fixtures import MakeWorld

STEPS = int(os.environ.get("STEPS", "30"))
"""Of a walk in `make test`; every commit has another seed."""
LONG_STEPS = max(STEPS, 200)
MYSQL_STEPS = min(STEPS, 20) if "STEPS" not in os.environ else min(STEPS, 50)
MINUTES = float(os.environ.get("MINUTES", "0"))
# What was committed outlives a kill of the server.
DURABLE = {"innodb-flush-log-at-trx-commit": "1", "sync-binlog": "1"}
FORMAT = os.environ.get("FORMAT", "iceberg")
SEED = int(os.environ["SEED"])
# The catalog is looked into each second, since schemas change without a row; changes are kept for
# twelve minutes, so that longer walks see the change log pruned.
LOOKS = {"REPLICATOR_CATALOG_SECONDS": "1"}
# There, old versions of the target go after two minutes, but for those that tags keep for rewinds.
HISTORY = {"history_minutes": 2} if STEPS > 200 else {}
KEPT = {"keep_hours": 0.2, "seal_seconds": 0.3, "merge_seconds": 0.3 if STEPS <= 200 else 1.0}
pytestmark = [pytest.mark.crash, pytest.mark.timeout(500 + 5 * LONG_STEPS)]


def walk(machine: Machine, steps: int, record: Callable[[str, object], None]) -> None:
    """A walk from a copy that is whole to a run that is paused; what repeats it is reported
    beforehand."""
    sys.stderr.write(f"nemesis: SEED={SEED} STEPS={steps} FORMAT={FORMAT}\n")
    machine.world.start()
    machine.world.until_states("replicating")
    record("seed", SEED)
    try:
        metrics = machine.walk(steps, 60 * MINUTES)
    finally:
        sys.stderr.write(f"nemesis: SEED={SEED}, step {len(machine.reported)} of {steps}\n")
        sys.stderr.write(f"nemesis: {dict(machine.counts)}\n")
    sys.stderr.write(f"nemesis: {metrics}\n")
    record("walk", str(metrics))


@pytest.mark.parametrize("steps", [STEPS, pytest.param(LONG_STEPS, marks=pytest.mark.long)])
def test_no_random_walk_of_changes_kills_and_cuts_makes_source_and_target_differ(
    world_maker: MakeWorld, steps: int, record_property: Callable[[str, object], None]
) -> None:
    """Guards the whole of CORRECTNESS as far as the walk goes. It fails where any of these is
    switched off: whole transactions by position (1), the frontier (2), stable row numbers (3), a
    file for each schema (5), the truncate barrier (6), the folds of each mode (7), the delete half
    of a changed key (8), filling of unsent columns (9), key ranges over old keys (11), digests of
    rows without a key (12), the token in the target (13), staging of rewinds and copies (15, 18),
    columns by number (21), quarantine by key (30), the cut at a round's end (31)."""
    tables = (*TABLES, *FURTHER)
    with (
        EmbeddedPostgres() as server,
        world_maker(
            server=server,
            prepare=PostgresSource.prepare,
            tables=tables,
            modes=MODES,
            choices=CHOICES,
            format=FORMAT,
            options=KEPT,
            target=HISTORY,
            environment=LOOKS,
        ) as world,
    ):
        walk(Machine(world, SEED, PostgresSource(world, server), tables), steps, record_property)


@pytest.mark.parametrize(
    ("flavour", "steps"),
    [
        (MysqlServer, MYSQL_STEPS),
        pytest.param(MariadbServer, LONG_STEPS, marks=pytest.mark.long),
        pytest.param(MysqlServer, LONG_STEPS, marks=pytest.mark.long),
    ],
)
@pytest.mark.long
def test_nor_does_one_from_mariadb_or_mysql(
    world_maker: MakeWorld,
    flavour: type[SqlServer],
    steps: int,
    record_property: Callable[[str, object], None],
) -> None:
    """Guards the same on the other servers, and CORRECTNESS 19: copies there converge with the log,
    or are read in a view of their own."""
    tables = (*TABLES, *FURTHER)
    with (
        flavour(options=DURABLE) as server,
        world_maker(
            server=server,
            prepare=MysqlSource.prepare,
            tables=tables,
            modes=MODES,
            choices=CHOICES,
            source={"zero_dates": "fail"},
            format=FORMAT,
            options=KEPT,
            target=HISTORY,
            environment=LOOKS,
            kind=MysqlWorld,
        ) as world,
    ):
        walk(Machine(world, SEED, MysqlSource(world, server), tables), steps, record_property)
