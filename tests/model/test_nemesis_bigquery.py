"""The random adversary where the copies lie in BigQuery's emulator. The runs need no JVM."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from demo.bigquery import EmbeddedBigQuery
from demo.postgres import EmbeddedPostgres
from tests.bigquery_world import BigQueryWorld
from tests.model.machine import Machine
from tests.model.sources import TABLES, PostgresSource
from tests.model.tables import CHOICES, MODES
from tests.model.test_nemesis import KEPT, LOOKS, SEED, walk
from tests.world_fixtures import MakeWorld

STEPS = int(os.environ.get("STEPS", "50"))
pytestmark = [pytest.mark.crash, pytest.mark.long, pytest.mark.timeout(600 + 20 * STEPS)]


def test_no_walk_makes_source_and_bigquery_differ(
    world_maker: MakeWorld,
    bigquery: EmbeddedBigQuery,
    record_property: Callable[[str, object], None],
) -> None:
    """Guards the same of CORRECTNESS as a walk into a lakehouse does, by load jobs and scripts. The
    emulator copies a table in each transaction, so a step takes seconds: only in `make
    test-long`. The tables of other modes have arrays with NULL, which BigQuery can't hold."""
    tables = TABLES
    with (
        EmbeddedPostgres() as server,
        world_maker(
            server=server,
            prepare=PostgresSource.prepare,
            tables=tables,
            modes=MODES,
            choices=CHOICES,
            options=KEPT,
            environment=LOOKS,
            kind=BigQueryWorld,
            target={"endpoint": bigquery.url},
        ) as world,
    ):
        walk(Machine(world, SEED, PostgresSource(world, server), tables), STEPS, record_property)
