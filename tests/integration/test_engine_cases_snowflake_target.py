"""The unusual keys, unsent values, transactions, schemas, names and choices of PostgreSQL, into
Snowflake, seen in the emulator. The run needs no JVM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from replicators.connectors.model.schema import TableSchema
from tests.integration.case_world import assert_all_arrive
from tests.integration.neutral_cases import NeutralCases
from tests.integration.source_cases import make_cases, one_round
from tests.servers import Database
from tests.snowflake_server import SnowflakeServer
from tests.snowflake_target import neutral_rows
from tests.snowflake_world import SnowflakeWorld
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600), pytest.mark.long]


@dataclass
class FromPostgres(SnowflakeWorld, NeutralCases):
    """The cases of PostgreSQL."""

    def neutral(self, schema: TableSchema) -> list[dict[str, Any]]:
        return neutral_rows(self.params, schema)


def test_every_case_of_postgresql_arrives(
    world_maker: MakeWorld, snowflake: SnowflakeServer
) -> None:
    """Guards the statements of every mode where names and keys are as odd as at the source."""

    def prepare(database: Database) -> None:
        make_cases(database, FromPostgres.cases)

    with world_maker(
        prepare=prepare, tables=(), kind=FromPostgres, server_of_copies=snowflake
    ) as world:
        assert isinstance(world, FromPostgres)
        assert_all_arrive(world, lambda number: one_round(world.database, number, world.cases))
