"""What the log of both servers tells of changed tables: steps that can be followed, and what stops a table at its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from replicators.connectors.schema import TableSchema
from replicators.connectors.source import DecodedTable, Poison
from replicators.connectors.steps import StepKind
from replicators.sources.mysql.checks import MysqlChecks
from tests.integration.mysql_source import (
    Follower,
    decode_all,
    decoded,
    describe,
    following,
    params_of,
)
from tests.mysql_servers import SqlDatabase, SqlServer, fresh_sql_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TABLE = "CREATE TABLE t (id int PRIMARY KEY, v varchar(50))"


@pytest.fixture(params=["mariadb", "mysql"])
def any_database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """A database on each of the servers, with a table `t`."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        made.execute(TABLE)
        yield made


def shapes(found: Sequence[DecodedTable | Poison]) -> list[TableSchema]:
    """The shapes of decoded parts, in order."""
    assert all(isinstance(p, DecodedTable) for p in found), found
    return [p.schema for p in found if isinstance(p, DecodedTable)]


def steps(schema: TableSchema) -> list[tuple[str, ...]]:
    """What a shape tells of columns, short."""
    return [tuple(filter(None, (str(s.kind), s.old, s.new, s.text))) for s in schema.steps]


def with_known(follower: Follower) -> list[TableSchema]:
    """The tables as heads describe them, with the copy's shape."""
    return [replace(t, known=replace(t, upto=1)) for t in follower.tables]


def test_columns_come_and_go(any_database: SqlDatabase) -> None:
    """Guards values by the columns' names (issue airbyte, PeerDB: wrong columns after ADD COLUMN FIRST)."""
    with following(any_database, "t") as follower:
        any_database.execute(
            "INSERT INTO t VALUES (1, 'a')",
            "ALTER TABLE t ADD COLUMN first_one int FIRST",
            "INSERT INTO t VALUES (7, 2, 'b')",
            "ALTER TABLE t ADD COLUMN middle int AFTER id, ADD INDEX (v)",
            "INSERT INTO t VALUES (8, 3, 9, 'c')",
            "ALTER TABLE t DROP COLUMN first_one",
            "INSERT INTO t VALUES (4, 10, 'd')",
        )
        blocks = follower.blocks()
        tables = describe(any_database, "t")
        rows = [
            (r["id"], r.get("middle"), r["v"])
            for part in decode_all(blocks, tables)
            if isinstance(part, DecodedTable)
            for r in part.changes.to_pylist()
        ]
        assert rows == [(1, None, "a"), (2, None, "b"), (3, 9, "c"), (4, 10, "d")]
        assert len({b.context_version for b in blocks}) == 4


def test_what_an_alter_says_is_known_at_its_place(any_database: SqlDatabase) -> None:
    """Guards names, defaults and types from the statement's text, in the flavour's own events: rows before it don't know of
    it, rows after it do."""
    with following(any_database, "t") as follower:
        any_database.execute(
            "INSERT INTO t VALUES (1, 'a')",
            "ALTER TABLE t ADD COLUMN n int NOT NULL DEFAULT 5 AFTER id, ADD w varchar(9) DEFAULT 'it''s', ADD g datetime(3)",
            "INSERT INTO t VALUES (2, 6, 'b', 'x', NULL)",
            "ALTER TABLE t RENAME COLUMN v TO w2, MODIFY n bigint NOT NULL FIRST",
            "INSERT INTO t VALUES (7, 3, 'c', 'y', NULL)",
            "ALTER TABLE t CHANGE w2 w3 varchar(90) COMMENT 'x', DROP COLUMN g",
            "ALTER TABLE t COMMENT = 'nothing', ADD INDEX (w3), ENGINE = InnoDB",
            "INSERT INTO t VALUES (8, 4, 'd', 'z')",
        )
        first, second, third, fourth = shapes(decode_all(follower.blocks(), with_known(follower)))
        assert (first.steps, first.upto) == ((), 1)
        added = [
            ("added", "int", "n", "n5"),
            ("added", "varchar(9)", "w", "sit's"),
            ("added", "datetime(3)", "g"),
        ]
        assert steps(second) == added
        moved = [("modified", "n", "n", "bigint"), ("renamed", "v", "w2")]
        assert sorted(steps(third)[3:]) == moved
        assert sorted(steps(fourth)[5:]) == [
            ("dropped", "g"), ("modified", "w2", "w3", "varchar(90)"), ("renamed", "w2", "w3"),
        ]  # fmt: skip
        assert [c.name for c in first.columns] == ["id", "v"]
        assert first.upto < second.upto < third.upto < fourth.upto


def test_old_rows_of_an_added_column(any_database: SqlDatabase) -> None:
    """Guards the default that old rows have, told from the statement and the column's type in the log."""
    with following(any_database, "t") as follower:
        any_database.execute(
            "ALTER TABLE t ADD n int NOT NULL DEFAULT 5, ADD w varchar(9) DEFAULT 'it''s', ADD o int,"
            " ADD d decimal(9,2) NOT NULL, ADD e enum('p', 'q') NOT NULL, ADD y year NOT NULL DEFAULT 2024",
            "INSERT INTO t (id, d) VALUES (2, 1)",
        )
        head = [
            replace(t, known=k)
            for t, k in zip(describe(any_database, "t"), with_known(follower), strict=True)
        ]
        (shape,) = shapes(decode_all(follower.blocks(), head))
        missing = {c.name: c.missing for c in shape.columns}
        assert missing == {
            "id": None,
            "v": None,
            "n": "5",
            "w": "it's",
            "o": None,
            "d": "0",
            "e": "p",
            "y": None,
        }
        assert [s.new for s in shape.steps if s.kind is StepKind.UNFILLED] == ["y"]


def test_what_was_told_is_known_after_a_start(any_database: SqlDatabase) -> None:
    """Guards the steps in the position, also in that of the very block that ends with the statement."""
    with following(any_database, "t") as follower:
        any_database.execute("INSERT INTO t VALUES (1, 'a')", "ALTER TABLE t DROP COLUMN v")
        blocks = follower.blocks()
        assert shapes(decode_all(blocks, follower.tables))[0].steps == ()
        follower.reader.start(blocks[-1].position, follower.tables)
        any_database.execute(
            "ALTER TABLE t ADD COLUMN v varchar(50)", "INSERT INTO t VALUES (2, 'b')"
        )
        (shape,) = shapes(decode_all(follower.blocks(), follower.tables))
        assert [s.kind for s in shape.steps] == [StepKind.DROPPED, StepKind.ADDED]


GHOST = (
    "CREATE TABLE _t_gho LIKE t",
    "CREATE TABLE _t_del (id int) COMMENT = 'ghost-cut-over-sentry'",
    "DROP TABLE _t_del",
)
"""What comes before each cut-over: none of it touches the table."""


@pytest.mark.parametrize(
    ("statements", "code", "fact"),
    [
        (["ALTER TABLE t ADD COLUMN g int AS (id + 1)"], "source:change-unlogged", "a new column with values in old rows"),
        (["ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, v)"], "source:change-unlogged", "a change of its primary key"),
        (["ALTER TABLE t CONVERT TO CHARACTER SET latin1"], "source:change-unlogged",
         "a change of its character set that may lose characters"),
        (["ALTER TABLE t RENAME TO gone"], "source:table-renamed", "gone"),
        (["RENAME TABLE t TO gone"], "source:table-renamed", "gone"),
        (["DROP TABLE t"], "source:table-missing", ""),
        (["CREATE TABLE x LIKE t", "RENAME TABLE t TO y, x TO t"], "source:change-unlogged", "a rename of the table"),
        ([*GHOST, "RENAME /* gh-ost */ TABLE `t` TO `_t_del`, `_t_gho` TO `t`"], "source:change-unlogged",
         "an online schema change (gh-ost)"),
        (["CREATE TABLE _t_new LIKE t", "RENAME TABLE `t` TO `_t_old`, `_t_new` TO `t`"], "source:change-unlogged",
         "an online schema change (pt-online-schema-change)"),
        (["CREATE TABLE __t_new LIKE t", "RENAME TABLE `t` TO `__t_old`, `__t_new` TO `t`"], "source:change-unlogged",
         "an online schema change (pt-online-schema-change)"),
    ],
)  # fmt: skip
def test_what_changes_rows_without_logging_them_stops_the_table(
    any_database: SqlDatabase, statements: list[str], code: str, fact: str
) -> None:
    """Guards against rows that silently differ: each of these changes rows that the log never shows."""
    with following(any_database, "t") as follower:
        any_database.execute("INSERT INTO t VALUES (1, 'a')", *statements)
        blocks = follower.blocks()
        (found,) = [p for p in decode_all(blocks, follower.tables) if isinstance(p, Poison)]
        assert found.code == code
        assert fact in "".join(found.facts[n] for n in ("change", "now") if n in found.facts)
        assert follower.session.point.position.value <= found.position < blocks[-1].position.value


def test_a_cut_over_in_two_statements(any_database: SqlDatabase) -> None:
    """Guards the second half, which names the table only as the new name of another one."""
    with following(any_database, "t") as follower:
        any_database.execute(
            *GHOST,
            "INSERT INTO t VALUES (1, 'a')",
            "ALTER TABLE t RENAME _t_del",
            "ALTER TABLE _t_gho RENAME t",
        )
        found = [p for p in decode_all(follower.blocks(), follower.tables) if isinstance(p, Poison)]
        assert [p.code for p in found] == ["source:table-renamed", "source:change-unlogged"]


def test_the_session_s_mode_is_in_the_event(any_database: SqlDatabase) -> None:
    """Guards sql_mode as the servers write it: outside of strict mode NULL becomes 0 or '' by a MODIFY."""
    with following(any_database, "t") as follower, any_database.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("SET SESSION sql_mode = 'STRICT_TRANS_TABLES'")
        cursor.execute("ALTER TABLE t MODIFY v varchar(50) NOT NULL")
        assert decode_all(follower.blocks(), follower.tables) == []
        cursor.execute("ALTER TABLE t MODIFY v varchar(50)")
        cursor.execute("SET SESSION sql_mode = 'ANSI_QUOTES'")
        cursor.execute('ALTER TABLE "t" MODIFY "v" varchar(50) NOT NULL')
        (found,) = decode_all(follower.blocks(), follower.tables)
        assert isinstance(found, Poison)
        assert found.facts["change"] == "a change of a column that may have changed values"


def test_tables_without_transactions(any_database: SqlDatabase) -> None:
    """Guards MyISAM: its rows are no transaction's, and end with a COMMIT in words."""
    any_database.execute("CREATE TABLE m (id int PRIMARY KEY, v varchar(9)) ENGINE = MyISAM")
    with following(any_database, "t", "m") as follower:
        any_database.execute(
            "INSERT INTO m VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "INSERT INTO t VALUES (1, 'a')",
            "UPDATE m SET v = 'z' WHERE id < 3",
            "DELETE FROM m WHERE id = 1",
            "ALTER TABLE m ADD w int NOT NULL DEFAULT 4",
            "INSERT INTO m VALUES (4, 'd', 5)",
        )
        blocks = follower.blocks()
        assert all(b.ends_closed for b in blocks)
        found = decoded(blocks, follower.tables)
        assert [p["id"].to_pylist() for p in found["t"]] == [[1]]
        rows = [(r["_op"], r["id"], r["v"]) for part in found["m"] for r in part.to_pylist()]
        assert rows == [
            (0, 1, "a"), (0, 2, "b"), (0, 3, "c"), (1, 1, "z"), (1, 2, "z"), (2, 1, None), (0, 4, "d"),
        ]  # fmt: skip


def test_a_server_that_logs_an_alter_twice_is_refused(mariadb: SqlServer) -> None:
    """Guards steps against being told at an ALTER's begin and again at its end: a swap would be undone."""
    with fresh_sql_database(mariadb) as database:
        checks = MysqlChecks(params_of(database))
        assert checks.connection() == []
        mariadb.execute("SET GLOBAL binlog_alter_two_phase = ON")
        try:
            (problem,) = checks.connection()
        finally:
            mariadb.execute("SET GLOBAL binlog_alter_two_phase = OFF")
        assert (problem.code, dict(problem.facts)["setting"]) == (
            "source:setting",
            "binlog_alter_two_phase",
        )
