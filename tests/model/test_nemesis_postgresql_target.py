"""The random adversary where the copies lie in PostgreSQL. The runs need no JVM."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from demo.postgres import EmbeddedPostgres
from tests.model.machine import Machine
from tests.model.sources import TABLES, PostgresSource
from tests.model.tables import CHOICES, FURTHER, MODES
from tests.model.test_nemesis import KEPT, LOOKS, SEED, walk
from tests.postgres_target_world import PostgresTargetWorld
from tests.servers import fresh_database
from tests.world_fixtures import MakeWorld

STEPS = int(os.environ.get("STEPS", "15"))
LONG_STEPS = max(STEPS, 50)
pytestmark = [pytest.mark.crash, pytest.mark.timeout(500 + 5 * LONG_STEPS)]


@pytest.mark.parametrize("steps", [STEPS, pytest.param(LONG_STEPS, marks=pytest.mark.long)])
@pytest.mark.long
def test_no_walk_makes_source_and_postgresql_differ(
    world_maker: MakeWorld,
    postgres: EmbeddedPostgres,
    steps: int,
    record_property: Callable[[str, object], None],
) -> None:
    """Guards the same of CORRECTNESS as a walk into a lakehouse does, by the statements and
    transactions of a SQL target: folds, unsent values, changed keys, truncate, columns by
    number, fresh copies beside the live rows, and the progress row in each commit."""
    tables = (*TABLES, *FURTHER)
    with (
        EmbeddedPostgres() as server,
        fresh_database(postgres) as copies,
        world_maker(
            server=server,
            prepare=PostgresSource.prepare,
            tables=tables,
            modes=MODES,
            choices=CHOICES,
            options=KEPT,
            environment=LOOKS,
            kind=PostgresTargetWorld,
            copies=copies,
        ) as world,
    ):
        walk(Machine(world, SEED, PostgresSource(world, server), tables), steps, record_property)
