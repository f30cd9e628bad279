"""Names of tables that statements write otherwise than rows: in another case
(`lower_case_table_names = 1`), or in another character set."""

from __future__ import annotations

import pytest

from replicators.connectors.log import DecodedTable, Poison
from replicators.sources.mysql.checks import MysqlChecks
from tests.integration.mysql_source import connection_problems, decode_all, following, params_of
from tests.mysql_servers import MariadbServer, MysqlServer, SqlServer, fresh_sql_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.mark.parametrize("kind", [MariadbServer, pytest.param(MysqlServer, marks=pytest.mark.long)])
def test_a_statement_in_another_case_is_about_its_table(kind: type[SqlServer]) -> None:
    """Guards TRUNCATE and ALTER TABLE, which went by, and rows that were lost with them: the log
    has a table's name as it was written in statements, and in lower case for rows."""
    options = {"lower-case-table-names": "1"}
    with kind(options=options) as server, fresh_sql_database(server) as database:
        assert connection_problems(MysqlChecks(params_of(database))) == []
        database.execute(
            "CREATE TABLE `TÄ` (id int PRIMARY KEY, v int)", "CREATE TABLE U (id int PRIMARY KEY)"
        )
        with following(database, "tä", "u") as follower:
            database.execute(
                "INSERT INTO `TÄ` VALUES (1, 1)",
                "TRUNCATE TABLE `TÄ`",
                "ALTER TABLE `tÄ` DROP COLUMN v",
                "INSERT INTO `tÄ` VALUES (2)",
                f"RENAME TABLE {database.name.upper()}.U TO Gone",
            )
            found = decode_all(follower.blocks(), follower.tables)
        first, second = (p for p in found if isinstance(p, DecodedTable))
        assert first.changes["_op"].to_pylist() == [0, 3]
        assert [(s.kind, s.old) for s in second.schema.steps] == [("dropped", "v")]
        (poison,) = (p for p in found if isinstance(p, Poison))
        assert (poison.table.name, poison.code) == ("u", "source:table-renamed")
        assert poison.facts["now"] == f"{database.name}.gone"


@pytest.mark.parametrize("flavour", ["mariadb", "mysql"])
def test_a_statement_in_another_character_set_is_about_its_table(
    flavour: str, request: pytest.FixtureRequest
) -> None:
    """Guards TRUNCATE, ALTER TABLE and DROP by a client that speaks latin1, which went by: the log
    has its bytes as they came."""
    with fresh_sql_database(request.getfixturevalue(flavour)) as database:
        database.execute("CREATE TABLE `été` (id int PRIMARY KEY, v int)")
        with following(database, "été") as follower, database.connect() as connection:
            connection.set_character_set("latin1")
            cursor = connection.cursor()
            cursor.execute("INSERT INTO `été` VALUES (1, 1)")
            cursor.execute("TRUNCATE TABLE `été`")
            cursor.execute("ALTER TABLE `été` CHANGE v `ö` int")
            cursor.execute("INSERT INTO `été` VALUES (2, 2)")
            found = decode_all(follower.blocks(), follower.tables)
            cursor.execute("DROP TABLE `été`")
            found += decode_all(follower.blocks(), follower.tables)
        first, second = (p for p in found if isinstance(p, DecodedTable))
        assert first.changes["_op"].to_pylist() == [0, 3]
        assert ("renamed", "v", "ö") in [(s.kind, s.old, s.new) for s in second.schema.steps]
        assert [p.code for p in found if isinstance(p, Poison)] == ["source:table-missing"]
