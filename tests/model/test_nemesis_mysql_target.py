"""The random adversary where the copies lie in MariaDB. The runs need no JVM."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from demo.postgres import EmbeddedPostgres
from tests.model.machine import Machine
from tests.model.sources import TABLES, PostgresSource
from tests.model.tables import CHOICES, FURTHER, MODES
from tests.model.test_nemesis import KEPT, LOOKS, SEED, walk
from tests.mysql_servers import SqlServer, fresh_sql_database
from tests.mysql_target_world import MysqlTargetWorld
from tests.world_fixtures import MakeWorld

STEPS = int(os.environ.get("STEPS", "250"))
pytestmark = [pytest.mark.crash, pytest.mark.timeout(500 + 5 * STEPS)]


@pytest.mark.long
def test_no_walk_makes_source_and_mariadb_differ(
    world_maker: MakeWorld,
    mariadb: SqlServer,
    record_property: Callable[[str, object], None],
) -> None:
    """Guards the same of CORRECTNESS as a walk into a lakehouse does, by the statements of
    an engine without MERGE: folds, unsent values, changed keys, truncate, columns by
    number, fresh copies beside the live rows, and the progress row in each commit."""
    tables = (*TABLES, *FURTHER)
    with (
        EmbeddedPostgres() as server,
        fresh_sql_database(mariadb) as copies,
        world_maker(
            server=server,
            prepare=PostgresSource.prepare,
            tables=tables,
            modes=MODES,
            choices=CHOICES,
            options=KEPT,
            environment=LOOKS,
            kind=MysqlTargetWorld,
            copies=copies,
        ) as world,
    ):
        walk(Machine(world, SEED, PostgresSource(world, server), tables), STEPS, record_property)
