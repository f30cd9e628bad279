"""The unusual keys, unsent values, transactions, schemas, names and choices of PostgreSQL, into
Spanner, seen in the tests' server. The run needs no JVM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from replicators.connectors.model.schema import TableSchema
from runners.models import Table
from tests.integration.case_world import CaseWorld, assert_all_arrive
from tests.integration.source_cases import CASES, Case, make_cases, one_round
from tests.model.reading import PostgresTable
from tests.servers import Database
from tests.spanner_server import SpannerServer
from tests.spanner_target import neutral_rows
from tests.spanner_world import SpannerWorld
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600), pytest.mark.long]

LEFT_OUT: frozenset[str] = frozenset()
"""Names of tables that Spanner can't have."""


@dataclass
class FromPostgres(SpannerWorld, CaseWorld):
    """The cases of PostgreSQL. Each schema's tables have its name first."""

    cases = tuple(c for c in CASES if c.name not in LEFT_OUT)

    def target_params(self) -> tuple[str, dict[str, Any]]:
        kind, found = super().target_params()
        return kind, {**found, "table_names": "{schema}_{table}"}

    def wanted(self, case: Case) -> PostgresTable:
        name = case.against or case.name
        return PostgresTable(self.database.dsn, case.schema, name, only=case.only)

    def _copy(self, case: Case) -> Any:
        assert self.played is not None
        found = Table.objects.get(
            replicator=self.replicator, schema_name=case.schema, name=case.name
        )
        schema = TableSchema.from_json(found.schema or {})
        name = f"{case.schema}_{case.name}"
        rows = neutral_rows(self.played, self.made, schema, name=name)
        columns = tuple(rows[0]) if rows else tuple(c.name for c in schema.supported)
        return columns, iter(rows)


def test_every_case_of_postgresql_arrives(world_maker: MakeWorld, spanner: SpannerServer) -> None:
    """Guards every mode where names and keys are as odd as at the source."""

    def prepare(database: Database) -> None:
        make_cases(database, FromPostgres.cases)

    with world_maker(prepare=prepare, tables=(), kind=FromPostgres, played=spanner) as world:
        assert isinstance(world, FromPostgres)
        assert_all_arrive(world, lambda number: one_round(world.database, number, world.cases))
