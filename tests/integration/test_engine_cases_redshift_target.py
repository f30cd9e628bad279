"""The unusual keys, unsent values, transactions, schemas, names and choices of PostgreSQL, into
Redshift, as a PostgreSQL server plays it. The run needs no JVM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from replicators.connectors.model.schema import TableSchema
from tests.integration.case_world import assert_all_arrive
from tests.integration.neutral_cases import NeutralCases
from tests.integration.source_cases import CASES, make_cases, one_round
from tests.redshift_server import RedshiftServer, fresh_redshift_database
from tests.redshift_target import neutral_rows
from tests.redshift_world import RedshiftWorld
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600), pytest.mark.long]


LEFT_OUT = frozenset({"s_wide"})
"""Names of tables that have more columns than Redshift."""


@dataclass
class FromPostgres(RedshiftWorld, NeutralCases):
    """The cases of PostgreSQL."""

    cases = tuple(c for c in CASES if c.name not in LEFT_OUT)

    def neutral(self, schema: TableSchema) -> list[dict[str, Any]]:
        return neutral_rows(self.params, schema)


def test_every_case_of_postgresql_arrives(world_maker: MakeWorld, redshift: RedshiftServer) -> None:
    """Guards the statements of every mode where names and keys are as odd as at the source."""

    def prepare(database: Database) -> None:
        make_cases(database, FromPostgres.cases)

    with (
        fresh_redshift_database(redshift) as copies,
        world_maker(
            prepare=prepare, tables=(), kind=FromPostgres, played=redshift, copies=copies
        ) as world,
    ):
        assert isinstance(world, FromPostgres)
        assert_all_arrive(world, lambda number: one_round(world.database, number, world.cases))
