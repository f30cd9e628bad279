"""What the log of both servers tells of changed tables: steps that can be followed, and what stops
a table at its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from replicators.connectors.log import DecodedTable, Poison
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.schema.numbering import changes_by_steps, with_numbers
from replicators.connectors.schema.steps import StepKind
from replicators.sources.mysql.checks import MysqlChecks
from replicators.sources.mysql.conversions import keeps_values
from tests.integration.mysql_source import (
    Follower,
    connection_problems,
    decode_all,
    decode_whole,
    decoded,
    describe,
    following,
    is_bare_schema,
    params_of,
)
from tests.mysql_servers import MysqlServer, SqlDatabase, SqlServer, fresh_sql_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TABLE = "CREATE TABLE t (id int PRIMARY KEY, v varchar(50))"


@pytest.fixture(params=["mariadb", "mysql"])
def any_database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """A database on each of the servers, with a table `t`."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        made.execute(TABLE)
        yield made


def schemas(found: Sequence[DecodedTable | Poison]) -> list[TableSchema]:
    """The schemas of decoded parts, in order."""
    assert all(isinstance(p, DecodedTable) for p in found), found
    return [p.schema for p in found if isinstance(p, DecodedTable)]


def steps(schema: TableSchema) -> list[tuple[str, ...]]:
    """What a schema tells of columns, short."""
    return [tuple(filter(None, (str(s.kind), s.old, s.new, s.text))) for s in schema.steps]


def with_known(follower: Follower) -> list[TableSchema]:
    """The tables as heads describe them, with the copy's schema."""
    return [replace(t, known=replace(t, upto=1)) for t in follower.tables]


def test_columns_come_and_go(any_database: SqlDatabase) -> None:
    """Guards values by the columns' names (issue airbyte, PeerDB: wrong columns after ADD COLUMN
    FIRST)."""
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
        assert len({b.context_version for b in blocks}) == 7


def test_what_an_alter_says_is_known_at_its_place(any_database: SqlDatabase) -> None:
    """Guards names, defaults and types from the statement's text, in the flavour's own events: rows
    before it don't know of it, rows after it do."""
    with following(any_database, "t") as follower:
        any_database.execute(
            "INSERT INTO t VALUES (1, 'a')",
            "ALTER TABLE t ADD COLUMN n int NOT NULL DEFAULT 5 AFTER id, ADD w varchar(9) "
            "DEFAULT 'it''s', ADD g datetime(3)",
            "INSERT INTO t VALUES (2, 6, 'b', 'x', NULL)",
            "ALTER TABLE t RENAME COLUMN v TO w2, MODIFY n bigint NOT NULL FIRST",
            "INSERT INTO t VALUES (7, 3, 'c', 'y', NULL)",
            "ALTER TABLE t CHANGE w2 w3 varchar(90) COMMENT 'x', DROP COLUMN g",
            "ALTER TABLE t COMMENT = 'nothing', ADD INDEX (w3), ENGINE = InnoDB",
            "INSERT INTO t VALUES (8, 4, 'd', 'z')",
        )
        first, second, third, fourth = schemas(decode_all(follower.blocks(), with_known(follower)))
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


def test_a_statement_tells_its_schema_without_any_row(any_database: SqlDatabase) -> None:
    """Guards a copy whose table is not written after a change that leaves all names and types as
    they were: the catalog shows none either."""
    any_database.execute(
        "ALTER TABLE t ADD k int, ADD k2 int", "INSERT INTO t VALUES (1, 'a', 1, 2)"
    )
    with following(any_database, "t") as follower:
        any_database.execute(
            "ALTER TABLE t DROP COLUMN v, ADD COLUMN v varchar(50) DEFAULT 'z' AFTER id",
            "ALTER TABLE t CHANGE k k2 int AFTER id, CHANGE k2 k int AFTER id",
            "ALTER TABLE t ADD INDEX (k)",
            "ALTER TABLE t RENAME COLUMN k TO t_",
            "ALTER TABLE t RENAME COLUMN k2 TO k, RENAME COLUMN t_ TO k2",
        )
        head = [
            replace(t, known=k)
            for t, k in zip(describe(any_database, "t"), with_known(follower), strict=True)
        ]
        found = decode_whole(follower.blocks(), head)
        assert all(map(is_bare_schema, found)), found
        copy, reported = with_numbers(head[0].known or head[0]), []
        for schema in schemas(found):
            _, copy, changes = changes_by_steps(copy, schema, keeps_values)
            reported.append(sorted(c.text for c in changes))
        assert reported == [
            ["column v dropped and made again"],
            ["column k renamed to k2", "column k2 renamed to k"],
            ["column k renamed to t_"],
            ["column k2 renamed to k", "column t_ renamed to k2"],
        ]


def test_old_rows_of_an_added_column(any_database: SqlDatabase) -> None:
    """Guards the default that old rows have, told from the statement and the column's type in the
    log."""
    with following(any_database, "t") as follower:
        any_database.execute(
            "ALTER TABLE t ADD n int NOT NULL DEFAULT 5, ADD w varchar(9) DEFAULT 'it''s', ADD o "
            "int,"
            " ADD d decimal(9,2) NOT NULL, ADD e enum('p', 'q') NOT NULL, ADD y year NOT NULL "
            "DEFAULT 2024",
            "INSERT INTO t (id, d) VALUES (2, 1)",
        )
        head = [
            replace(t, known=k)
            for t, k in zip(describe(any_database, "t"), with_known(follower), strict=True)
        ]
        (schema,) = schemas(decode_all(follower.blocks(), head))
        missing = {c.name: c.missing for c in schema.columns}
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
        assert [s.new for s in schema.steps if s.kind is StepKind.UNFILLED] == ["y"]


def test_what_was_reported_is_known_after_a_start(any_database: SqlDatabase) -> None:
    """Guards the steps in the position, also in that of the very block that ends with the
    statement."""
    with following(any_database, "t") as follower:
        any_database.execute("INSERT INTO t VALUES (1, 'a')", "ALTER TABLE t DROP COLUMN v")
        blocks = follower.blocks()
        assert schemas(decode_all(blocks, follower.tables))[0].steps == ()
        follower.reader.start(blocks[-1].position, follower.tables)
        any_database.execute(
            "ALTER TABLE t ADD COLUMN v varchar(50)", "INSERT INTO t VALUES (2, 'b')"
        )
        (schema,) = schemas(decode_all(follower.blocks(), follower.tables))
        assert [s.kind for s in schema.steps] == [StepKind.DROPPED, StepKind.ADDED]


def with_copy(follower: Follower, database: SqlDatabase, *names: str) -> list[TableSchema]:
    """The tables as a head describes them that is newer than the log, with the copies' schemas."""
    copies = {t.id: with_numbers(replace(t.bare, upto=1)) for t in follower.tables}
    return [replace(t, known=copies[t.id]) for t in describe(database, *names)]


def changes_of(follower: Follower, tables: Sequence[TableSchema]) -> list[list[str]]:
    """What follows for the copy from each part of the log, in words."""
    old, reported = tables[0].known, []
    assert old is not None
    for schema in schemas(decode_all(follower.blocks(), tables)):
        _, new, changes = changes_by_steps(old, schema, keeps_values)
        reported.append([c.text for c in changes])
        old = replace(new.bare, upto=max(old.upto, new.upto))
    return reported


def test_a_key_that_has_another_name_by_now_is_read(any_database: SqlDatabase) -> None:
    """Guards the whole run: rows from before the rename, met after a pause, ended it at every
    start."""
    with following(any_database, "t") as follower:
        any_database.execute(
            "INSERT INTO t VALUES (1, 'a')",
            "ALTER TABLE t RENAME COLUMN id TO no",
            "INSERT INTO t VALUES (2, 'b')",
        )
        tables = with_copy(follower, any_database, "t")
        blocks = follower.blocks()
        found = schemas(decode_all(blocks, tables))
        assert [s.key for s in found] == [("id",), ("no",)]
        rows = [part for parts in decoded(blocks, tables).values() for part in parts]
        assert [r.column(s.key[0]).to_pylist() for r, s in zip(rows, found, strict=True)] == [
            [1],
            [2],
        ]


@pytest.mark.parametrize(
    ("statements", "reported"),
    [
        (["TRUNCATE TABLE t", "ALTER TABLE t ADD n int DEFAULT 5",
        "INSERT INTO t VALUES (1, 'a', 2)"],
         [[], ["column n added"]]),
        (["TRUNCATE TABLE t", "ALTER TABLE t RENAME COLUMN v TO w",
        "INSERT INTO t VALUES (1, 'a')"],
         [[], ["column v renamed to w"]]),
        (["ALTER TABLE t ADD n int, RENAME COLUMN v TO w", "TRUNCATE TABLE t"],
         [["column v renamed to w", "column n added"]]),
        (["TRUNCATE TABLE t", "ALTER TABLE t DROP v", "TRUNCATE TABLE t"],
        [[], ["column v dropped"]]),
    ],
)  # fmt: skip
def test_a_truncation_alone_tells_no_other_schema_than_the_log(
    any_database: SqlDatabase, statements: list[str], reported: list[list[str]]
) -> None:
    """Guards tables that stopped, or were copied afresh, since the catalog's description had
    columns that no statement told of."""
    with following(any_database, "t") as follower:
        any_database.execute(*statements)
        tables = with_copy(follower, any_database, "t")
        assert changes_of(follower, tables) == reported


GHOST = (
    "CREATE TABLE _t_gho LIKE t",
    "CREATE TABLE _t_del (id int) COMMENT = 'ghost-cut-over-sentry'",
    "DROP TABLE _t_del",
)
"""What comes before each cut-over: none of it touches the table."""


@pytest.mark.parametrize(
    ("statements", "code", "fact"),
    [
        (["ALTER TABLE t ADD COLUMN g int AS (id + 1)"], "source:change-unlogged",
        "a new column with values in old rows"),
        (["ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, v)"], "source:change-unlogged",
        "a change of its primary key"),
        (["ALTER TABLE t CONVERT TO CHARACTER SET latin1"], "source:change-unlogged",
         "a change of its character set that may lose characters"),
        (["CREATE TABLE p (id int PRIMARY KEY, v varchar(50)) PARTITION BY RANGE (id) (PARTITION "
          "x VALUES LESS THAN (9))",
          "ALTER TABLE p EXCHANGE PARTITION x WITH TABLE t"], "source:change-unlogged",
         "an exchange of a partition with another table"),
        (["ALTER TABLE t RENAME TO gone"], "source:table-renamed", "gone"),
        (["RENAME TABLE t TO gone"], "source:table-renamed", "gone"),
        (["DROP TABLE t"], "source:table-missing", ""),
        (["CREATE TABLE x LIKE t", "RENAME TABLE t TO y, x TO t"], "source:change-unlogged",
        "a rename of the table"),
        ([*GHOST, "RENAME /* gh-ost */ TABLE `t` TO `_t_del`, `_t_gho` TO `t`"],
        "source:change-unlogged",
         "an online schema change (gh-ost)"),
        (["CREATE TABLE _t_new LIKE t", "RENAME TABLE `t` TO `_t_old`, `_t_new` TO `t`"],
        "source:change-unlogged",
         "an online schema change (pt-online-schema-change)"),
        (["CREATE TABLE __t_new LIKE t", "RENAME TABLE `t` TO `__t_old`, `__t_new` TO `t`"],
        "source:change-unlogged",
         "an online schema change (pt-online-schema-change)"),
    ],
)  # fmt: skip
def test_what_changes_rows_without_logging_them_stops_the_table(
    any_database: SqlDatabase, statements: list[str], code: str, fact: str
) -> None:
    """Guards against rows that silently differ: each of these changes rows that the log never
    shows."""
    with following(any_database, "t") as follower:
        any_database.execute("INSERT INTO t VALUES (1, 'a')", *statements)
        blocks = follower.blocks()
        (found,) = [p for p in decode_all(blocks, follower.tables) if isinstance(p, Poison)]
        assert found.code == code
        assert fact in "".join(found.facts[n] for n in ("change", "now") if n in found.facts)
        assert (
            follower.session.point.position.ordinal <= found.position < blocks[-1].position.ordinal
        )


@pytest.mark.parametrize("statement", ["DROP INDEX u ON k", "ALTER TABLE k DROP INDEX U"])
def test_the_index_by_which_rows_are_known_may_be_away_for_a_moment(
    any_database: SqlDatabase, statement: str
) -> None:
    """Guards a row that was lost: two rows of one key are one in the copy, and no look finds the
    index missing."""
    any_database.execute("CREATE TABLE k (a int NOT NULL, v int, UNIQUE u (a), INDEX i (v))")
    with following(any_database, "k", "t") as follower:
        any_database.execute("DROP INDEX i ON k", "INSERT INTO k VALUES (1, 1)")
        assert [s.key for s in schemas(decode_all(follower.blocks(), follower.tables))] == [("a",)]
        any_database.execute(
            statement,
            "INSERT INTO k VALUES (1, 2)",
            "DELETE FROM k WHERE v = 1",
            "CREATE UNIQUE INDEX u ON k (a)",
        )
        now = describe(any_database, "k", "t")
        (found,) = [p for p in decode_all(follower.blocks(), now) if isinstance(p, Poison)]
        assert (found.table.name, found.code) == ("k", "source:change-unlogged")
        assert found.facts["change"] == "a drop of the index that told its rows apart"


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
    """Guards sql_mode as the servers write it: outside of strict mode NULL becomes 0 or '' by a
    MODIFY."""
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


@pytest.mark.parametrize(
    ("clause", "key"),
    [
        ("ADD CONSTRAINT fk FOREIGN KEY (p) REFERENCES parents (id) ON DELETE CASCADE",
        ("fk", "DELETE CASCADE")),
        ("ADD q int REFERENCES parents (id) ON UPDATE CASCADE ON DELETE SET NULL",
        ("(q)", "UPDATE CASCADE, ON DELETE SET NULL")),
        ("ADD FOREIGN KEY (p) REFERENCES parents (id) ON DELETE RESTRICT", None),
    ],
)  # fmt: skip
def test_a_foreign_key_that_comes_later_stops_its_table_where_cascades_are_not_logged(
    any_database: SqlDatabase, clause: str, key: tuple[str, str] | None
) -> None:
    """Guards CORRECTNESS 24 in a running table: rows that such a key deletes would stay in the copy
    without a word."""
    any_database.execute(
        "CREATE TABLE parents (id int PRIMARY KEY)",
        "INSERT INTO parents VALUES (1), (2)",
        "ALTER TABLE t ADD p int",
    )
    with following(any_database, "t", "parents") as follower:
        any_database.execute("INSERT INTO t VALUES (1, 'a', 1)", f"ALTER TABLE t {clause}")
        if key is not None:
            any_database.execute("DELETE FROM parents WHERE id = 1")
        blocks = follower.blocks()
        found = decode_all(blocks, follower.tables)
        stopped = [p for p in found if isinstance(p, Poison)]
        if key is None or any_database.server.flavour == "mysql":
            assert stopped == []
            changes = decoded(blocks, follower.tables)["t"]
            is_cascading = key is not None and key[0] == "fk"
            ops = [op for part in changes for op in part["_op"].to_pylist()]
            assert ops == ([0, 2] if is_cascading else [0])
            return
        (poison,) = stopped
        assert (poison.table.name, poison.code) == ("t", "source:cascade")
        assert (poison.facts["constraint"], poison.facts["rule"]) == key
        assert (
            follower.session.point.position.ordinal < poison.position < blocks[-1].position.ordinal
        )


def test_a_mysql_whose_engine_follows_the_keys_logs_no_cascade() -> None:
    """Guards a setting that takes back what MySQL 9.6 brought: the log is as silent as before, and
    the preflight and a running table must know it."""
    with (
        MysqlServer(options={"innodb-native-foreign-keys": "ON"}) as server,
        fresh_sql_database(server) as database,
    ):
        key = "FOREIGN KEY (p) REFERENCES parents (id) ON DELETE CASCADE"
        database.execute(
            "CREATE TABLE parents (id int PRIMARY KEY)",
            "INSERT INTO parents VALUES (1)",
            f"CREATE TABLE children (id int PRIMARY KEY, p int, {key})",
            "INSERT INTO children VALUES (1, 1)",
            "CREATE TABLE t (id int PRIMARY KEY, p int)",
        )
        with following(database, "t", "parents", "children") as follower:
            database.execute("DELETE FROM parents", f"ALTER TABLE t ADD CONSTRAINT fk {key}")
            assert database.execute("SELECT count(*) FROM children") == [(0,)]
            deleted, stopped = sorted(
                decode_all(follower.blocks(), follower.tables), key=lambda p: isinstance(p, Poison)
            )
            assert isinstance(deleted, DecodedTable)
            assert deleted.schema.id.name == "parents"
            assert isinstance(stopped, Poison)
            assert (stopped.table.name, stopped.code) == ("t", "source:cascade")
        with MysqlChecks(params_of(database)) as checks:
            (problem,) = checks.tables([TableSelection(TableId(database.name, "children"))])
        assert problem.code == "source:cascade"


@pytest.mark.parametrize("is_described_after", [False, True])
def test_a_column_that_is_compressed_later_stops_its_table_in_words(
    mariadb: SqlServer, is_described_after: bool
) -> None:
    """Guards MariaDB's compressed columns, whose values the log has in a form of its own: a number
    said so, or, with a newer look into the catalog, the column went from the copy."""
    with fresh_sql_database(mariadb) as database:
        database.execute(TABLE)
        with following(database, "t") as follower:
            database.execute(
                "ALTER TABLE t MODIFY v varchar(50) COMPRESSED", "INSERT INTO t VALUES (1, 'a')"
            )
            (known,) = with_known(follower)
            head = replace(describe(database, "t")[0], known=known.known)
            (found,) = decode_all(follower.blocks(), [head if is_described_after else known])
        assert isinstance(found, Poison)
        assert (found.code, found.facts["column"]) == ("source:column-packed", "v")
        assert found.facts["quoted"] == f"`{database.name}`.`t`"


def test_a_table_whose_tablespace_was_discarded_is_reported_as_that(
    any_database: SqlDatabase,
) -> None:
    """Guards the copy that follows on such a statement: it ended with a number that nobody
    knows."""
    with following(any_database, "t") as follower:
        any_database.execute("ALTER TABLE t DISCARD TABLESPACE")
        (poison,) = decode_all(follower.blocks(), follower.tables)
        assert isinstance(poison, Poison)
        assert poison.code == "source:change-unlogged"
        with pytest.raises(ReplicationError) as caught:
            follower.copy()
    assert caught.value.code == "source:tablespace-missing"
    assert f"`{any_database.name}`.`t`" in caught.value.message.suggestion


def test_statements_with_settings_before_them_are_seen(mariadb: SqlServer) -> None:
    """Guards `SET STATEMENT ... FOR`, which MariaDB logs with the statement: a truncation, a change
    and rows in words went by."""
    setting = "SET STATEMENT lock_wait_timeout = 5 FOR"
    with fresh_sql_database(mariadb) as database:
        database.execute(TABLE, "CREATE TABLE u LIKE t")
        with following(database, "t", "u") as follower:
            database.execute(
                "INSERT INTO t VALUES (1, 'a')",
                f"{setting} TRUNCATE TABLE t",
                f"{setting} SET STATEMENT max_statement_time = 9 FOR ALTER TABLE t DROP COLUMN v",
                "INSERT INTO t VALUES (2)",
                "SET SESSION binlog_format = 'STATEMENT'",
                f"{setting} INSERT INTO u VALUES (1, 'a')",
            )
            found = decode_all(follower.blocks(), follower.tables)
            (poison,) = [p for p in found if isinstance(p, Poison)]
            assert (poison.table.name, poison.code) == ("u", "source:statement-logged")
            first, second = (p for p in found if isinstance(p, DecodedTable))
            assert first.changes["_op"].to_pylist() == [0, 3]
            assert steps(second.schema) == [("dropped", "v")]


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
            (0, 1, "a"), (0, 2, "b"), (0, 3, "c"), (1, 1, "z"), (1, 2, "z"), (2, 1, None),
            (0, 4, "d"),
        ]  # fmt: skip


def test_a_server_that_logs_an_alter_twice_is_refused(mariadb: SqlServer) -> None:
    """Guards steps against being reported at an ALTER's begin and again at its end: a swap would be
    undone."""
    with fresh_sql_database(mariadb) as database:
        checks = MysqlChecks(params_of(database))
        assert connection_problems(checks) == []
        mariadb.execute("SET GLOBAL binlog_alter_two_phase = ON")
        try:
            (problem,) = connection_problems(checks)
        finally:
            mariadb.execute("SET GLOBAL binlog_alter_two_phase = OFF")
        assert (problem.code, dict(problem.facts)["setting"]) == (
            "source:setting",
            "binlog_alter_two_phase",
        )
