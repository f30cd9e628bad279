"""The unusual keys, unsent values, transactions, schemas, names and choices of both kinds of
source, into PostgreSQL. The runs need no JVM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from demo.postgres import EmbeddedPostgres
from tests.integration import source_traffic_mysql
from tests.integration.case_world import assert_all_arrive
from tests.integration.source_cases import CASES, Case, make_cases, one_round
from tests.integration.source_cases_mysql import cases_of
from tests.model.reading import PostgresTable
from tests.model.reading_mysql import MysqlTable
from tests.mysql_servers import SqlServer
from tests.postgres_target_world import MysqlToPostgresWorld, PostgresTargetCases
from tests.servers import Database, fresh_database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600), pytest.mark.long]

NUL = r"\0"
"""PostgreSQL can't hold a text with this character; its table would stop, as it should."""
TOO_WIDE = "s_wide"
"""It has as many columns as a PostgreSQL table can have; a staging table has some more."""


@pytest.fixture
def copies(postgres: EmbeddedPostgres) -> Iterator[Database]:
    """The target's database."""
    with fresh_database(postgres) as made:
        yield made


@dataclass
class FromPostgres(PostgresTargetCases):
    """The cases of PostgreSQL."""

    cases = tuple(c for c in CASES if c.name != TOO_WIDE)

    def wanted(self, case: Case) -> PostgresTable:
        name = case.against or case.name
        return PostgresTable(self.database.dsn, case.schema, name, only=case.only)


@dataclass
class FromMariadb(PostgresTargetCases, MysqlToPostgresWorld):
    """The cases of MariaDB."""

    cases = tuple(replace(c, rows=c.rows.replace(NUL, "")) for c in cases_of("mariadb"))

    def wanted(self, case: Case) -> MysqlTable:
        return MysqlTable(self.driver, case.schema, case.against or case.name)


def test_every_case_of_postgresql_arrives(world_maker: MakeWorld, copies: Database) -> None:
    """Guards the statements of every mode, and that no name or key is changed on the way, where
    the tables lie in a database of the same kind."""

    def prepare(database: Database) -> None:
        make_cases(database, FromPostgres.cases)

    with world_maker(prepare=prepare, tables=(), kind=FromPostgres, copies=copies) as world:
        assert isinstance(world, FromPostgres)
        assert_all_arrive(world, lambda number: one_round(world.database, number, world.cases))


@pytest.mark.long
def test_every_case_of_mariadb_arrives(
    world_maker: MakeWorld, mariadb: SqlServer, copies: Database
) -> None:
    """The same from the binlog: keys that differ in nothing but their case or trailing blanks."""
    cases = FromMariadb.cases

    def prepare(database: Any) -> None:
        source_traffic_mysql.make_cases(database, cases)

    try:
        with world_maker(
            server=mariadb, prepare=prepare, tables=(), kind=FromMariadb, copies=copies
        ) as world:
            assert isinstance(world, FromMariadb)
            database: Any = world.database

            def traffic(number: int) -> None:
                source_traffic_mysql.one_round(database, number, cases)

            assert_all_arrive(world, traffic)
    finally:
        source_traffic_mysql.drop_cases(mariadb)
