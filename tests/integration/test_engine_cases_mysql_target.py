"""The unusual keys, transactions, schemas, names and choices of MariaDB, into MySQL. The run needs
no JVM."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from replicators.targets.mysql.params import RIGHTS
from tests.integration import source_traffic_mysql
from tests.integration.case_world import CaseWorld, assert_all_arrive
from tests.integration.source_cases import Case
from tests.integration.source_cases_mysql import cases_of
from tests.model.reading_mysql import MysqlTable
from tests.mysql_servers import SqlServer, fresh_sql_database
from tests.mysql_target import USER
from tests.mysql_target_world import MysqlToMysqlWorld
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600), pytest.mark.long]


@dataclass
class FromMariadb(MysqlToMysqlWorld, CaseWorld):
    """The cases of MariaDB, each in the database of its name."""

    cases = tuple(cases_of("mariadb"))

    def target_params(self) -> tuple[str, dict[str, Any]]:
        name, params = super().target_params()
        rights = ", ".join(RIGHTS)
        self.there.execute(f"GRANT {rights} ON *.* TO {USER}@'%'")
        return name, {**params, "database": ""}

    def wanted(self, case: Case) -> MysqlTable:
        return MysqlTable(self.driver, case.schema, case.against or case.name)

    def _copy(self, case: Case) -> Any:
        """The copy's rows as the source has them: a moment lies in UTC there, a bit in a number."""
        source = self.wanted(case)
        params = {**self.there.params}
        found = MysqlTable(params, case.schema, case.name)

        def value(name: str, held: Any) -> Any:
            if held is not None and name in source.zoned:
                return held.replace(tzinfo=dt.UTC)
            return bool(held) if held is not None and name in source.bits else held

        def rows() -> Iterator[dict[str, Any]]:
            for row in found.rows():
                yield {name: value(name, held) for name, held in row.items()}

        return found.columns, rows()


def test_every_case_of_mariadb_arrives(
    world_maker: MakeWorld, mariadb: SqlServer, mysql: SqlServer
) -> None:
    """Guards the statements of every mode where names and keys are as odd as at the source: keys
    that differ in nothing but their case or trailing blanks, tables of a thousand columns."""
    cases = FromMariadb.cases

    def prepare(database: Any) -> None:
        source_traffic_mysql.make_cases(database, cases)

    try:
        with (
            fresh_sql_database(mysql) as copies,
            world_maker(
                server=mariadb, prepare=prepare, tables=(), kind=FromMariadb, copies=copies
            ) as world,
        ):
            assert isinstance(world, FromMariadb)
            database: Any = world.database

            def traffic(number: int) -> None:
                source_traffic_mysql.one_round(database, number, cases)

            assert_all_arrive(world, traffic)
    finally:
        source_traffic_mysql.drop_cases(mariadb)
        for schema in {case.schema for case in cases}:
            name = schema.replace("`", "``")
            mysql.execute(f"DROP DATABASE IF EXISTS `{name}`")
