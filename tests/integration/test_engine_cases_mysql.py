"""The cases of MySQL and MariaDB: unusual keys, transactions, schemas, names and choices, one
replicator, the whole path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.integration.case_world import CaseWorld, assert_all_arrive
from tests.integration.source_cases import Case
from tests.integration.source_cases_mysql import cases_of
from tests.integration.source_traffic_mysql import drop_cases, make_cases, one_round
from tests.model.reading_mysql import MysqlTable
from tests.mysql_servers import SqlDatabase, SqlServer
from tests.mysql_world import MysqlWorld
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(5400)]


class MysqlCaseWorld(CaseWorld, MysqlWorld):
    """The cases that both servers have, and one's own."""

    def wanted(self, case: Case) -> MysqlTable:
        return MysqlTable(self.driver, case.schema, case.against or case.name)


class MariadbCases(MysqlCaseWorld):
    """On MariaDB."""

    cases = cases_of("mariadb")


class MysqlCases(MysqlCaseWorld):
    """On MySQL."""

    cases = cases_of("mysql")


@contextmanager
def dropped_at_the_end(server: SqlServer) -> Iterator[None]:
    """The cases' databases are gone afterwards: the server is the whole session's."""
    try:
        yield
    finally:
        drop_cases(server)


@pytest.mark.long
@pytest.mark.parametrize(
    ("flavour", "form"), [("mariadb", "iceberg"), ("mysql", "iceberg"), ("mariadb", "delta")]
)
def test_every_case_of_mysql_and_mariadb_arrives_by_snapshot_by_log_and_across_a_restart(
    request: pytest.FixtureRequest, world_maker: MakeWorld, flavour: str, form: str
) -> None:
    """Guards, from the binlog, CORRECTNESS 1 (whole transactions: savepoints, rollbacks, compressed
    ones), 6 (truncate), 8 (changed keys, in chains, in circles, and in nothing but their case or
    trailing blanks), 11 (key ranges by the target's order of keys), 12 (rows without a key,
    counted), 19 (copies that converge, and exact ones), 25 (prepared transactions), and that a key,
    value or name that the server sorts, pads or quotes in its own way is the same by copy, by log
    and in the target: with any of them switched off some table here differs."""
    server: SqlServer = request.getfixturevalue(flavour)
    kind = MariadbCases if flavour == "mariadb" else MysqlCases

    def prepare(database: SqlDatabase) -> None:
        make_cases(database, kind.cases)

    with (
        dropped_at_the_end(server),
        world_maker(server=server, prepare=prepare, tables=(), kind=kind, format=form) as world,
    ):
        assert isinstance(world, MysqlCaseWorld)
        assert_all_arrive(world, lambda number: one_round(world.database, number, kind.cases))
