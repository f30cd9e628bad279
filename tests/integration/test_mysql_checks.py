"""Preflight of MariaDB and MySQL: what is wrong is named, with the line that mends it; the line is
run, and then it is well."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from replicators.connectors.model.schema import TableId, TableSelection
from replicators.connectors.problems.problem import Problem, Severity
from replicators.sources.mysql import checks as checks_module
from replicators.sources.mysql.catalog import MysqlCatalog
from replicators.sources.mysql.checks import MysqlChecks
from replicators.sources.mysql.setup import setup
from tests.integration.mysql_source import connection_problems, describe, params_of
from tests.mysql_servers import (
    MariadbServer,
    MysqlServer,
    SqlDatabase,
    SqlServer,
    fresh_sql_database,
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture(params=["mariadb", "mysql"])
def any_database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """A database on each of the servers."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        yield made


@pytest.fixture(params=[MariadbServer, MysqlServer])
def private_server(request: pytest.FixtureRequest) -> Iterator[SqlServer]:
    """A server of the test's own, to be configured badly."""
    with request.param() as server:
        yield server


@contextmanager
def modest_user(database: SqlDatabase) -> Iterator[dict[str, str]]:
    """The user that the page's own statements make, who may do no more than they grant."""
    try:
        for step in setup({"user": "reader", "database": database.name}):
            database.execute(*(s.rstrip(";") for s in step.statements))
        yield {"user": "reader", "password": "choose one", "database": database.name}
    finally:
        database.execute(
            "DROP USER IF EXISTS reader@'%'", "SET GLOBAL binlog_expire_logs_seconds = 2592000"
        )


def problems(database: SqlDatabase, /, **changes: object) -> list[Problem]:
    """Those that somebody should do something about."""
    with MysqlChecks(params_of(database, **changes)) as checks:
        return connection_problems(checks)


def reported(database: SqlDatabase, /, **changes: object) -> list[Problem]:
    with MysqlChecks(params_of(database, **changes)) as checks:
        return checks.connection()


def of_tables(database: SqlDatabase, /, *names: str, **changes: object) -> dict[str, list[str]]:
    with MysqlChecks(params_of(database, **changes)) as checks:
        found = checks.tables([TableSelection(TableId(database.name, n)) for n in names])
    return {n: [p.code for p in found if p.table and p.table.name == n] for n in names}


def mending(problem: Problem) -> str:
    """The statement that its suggestion shows."""
    found = re.search(r"`([^`]*(?:`[^`]+`[^`]*)*;)`", problem.message.suggestion)
    assert found, problem.message.suggestion
    return found.group(1)


def test_settings_are_named_with_the_line_that_mends_them(private_server: SqlServer) -> None:
    """Guards the refusals of the preflight, each tried."""
    wrong = ["binlog_format = 'MIXED'", "binlog_row_image = 'MINIMAL'",
        "binlog_row_metadata = 'MINIMAL'",
             "binlog_expire_logs_seconds = 3600"]  # fmt: skip
    if private_server.flavour == "mysql":
        wrong.append("binlog_row_value_options = 'PARTIAL_JSON'")
    with fresh_sql_database(private_server) as database:
        assert problems(database) == []
        for setting in wrong:
            database.execute(f"SET GLOBAL {setting}")
            (problem,) = problems(database)
            assert problem.code in {"source:setting", "source:log-short"}
            database.execute(mending(problem))
            assert problems(database) == [], setting
        if private_server.flavour == "mysql":
            # A short time that is never kept to.
            database.execute(
                "SET GLOBAL binlog_expire_logs_seconds = 3600",
                "SET GLOBAL binlog_expire_logs_auto_purge = OFF",
            )
            assert problems(database) == []
            assert kept(database) == "The server keeps its log without a limit of time."


def kept(database: SqlDatabase) -> str:
    (info,) = (p for p in reported(database) if p.severity is Severity.INFO)
    assert info.code == "source:log-kept"
    return info.message.text


def test_the_hours_that_the_log_is_kept_are_said(any_database: SqlDatabase) -> None:
    """Guards `source:log-kept`: who pauses a replicator must know for how long it may be."""
    (before,) = any_database.execute("SELECT @@GLOBAL.binlog_expire_logs_seconds")
    any_database.execute("SET GLOBAL binlog_expire_logs_seconds = 360000")
    try:
        assert kept(any_database) == "The server keeps its log for 100 hours."
    finally:
        any_database.execute(f"SET GLOBAL binlog_expire_logs_seconds = {before[0]}")


def test_rights_are_named_with_the_line_that_grants_them(any_database: SqlDatabase) -> None:
    """Guards the rights that are needed, and that no more are: each line alone, and then it is
    well."""
    any_database.execute(
        "CREATE TABLE t (id int PRIMARY KEY)", "CREATE USER poor@'%' IDENTIFIED BY 'poor'"
    )
    poor = {"user": "poor", "password": "poor"}
    try:
        found = problems(any_database, **poor)
        assert [p.code for p in found] == ["source:right-missing"] * 2
        assert of_tables(any_database, "t", **poor) == {"t": ["source:select-right"]}
        for problem in found:
            any_database.execute(mending(problem))
        assert problems(any_database, **poor) == []
        with MysqlChecks(params_of(any_database, **poor)) as checks:
            (problem,) = checks.tables([TableSelection(TableId(any_database.name, "t"))])
        any_database.execute(mending(problem))
        assert of_tables(any_database, "t", **poor) == {"t": []}
    finally:
        any_database.execute("DROP USER poor@'%'")


def test_the_steps_of_the_set_up_are_all_that_is_needed(any_database: SqlDatabase) -> None:
    """Guards the page's statements: run as they stand, they make a user that passes."""
    any_database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    with modest_user(any_database) as given:
        assert problems(any_database, **given) == []
        assert of_tables(any_database, "t", **given) == {"t": []}
        with MysqlCatalog(params_of(any_database, **given)) as catalog:
            (table,) = catalog.list_tables()
        assert table.has_key


def test_the_list_and_the_schema_agree_on_what_has_a_key(any_database: SqlDatabase) -> None:
    """Guards the wizard's table list, which said "no key" of tables that are followed by a unique
    index."""
    any_database.execute(
        "CREATE TABLE a_primary (id int PRIMARY KEY, v int)",
        "CREATE TABLE b_unique (id int NOT NULL, v int, UNIQUE (v), UNIQUE (id))",
        "CREATE TABLE c_null (id int NOT NULL, v int, UNIQUE (id, v))",
        "CREATE TABLE d_prefix (t varchar(50) NOT NULL, UNIQUE (t(5)))",
        "CREATE TABLE e_none (id int NOT NULL, KEY (id))",
    )
    names = ["a_primary", "b_unique", "c_null", "d_prefix", "e_none"]
    with MysqlCatalog(params_of(any_database)) as catalog:
        listed = {t.id.name: t.has_key for t in catalog.list_tables()}
    assert listed == {n: n in ("a_primary", "b_unique") for n in names}
    assert listed == {s.id.name: bool(s.key) for s in describe(any_database, *names)}


def test_comments_of_tables_and_columns_are_read(any_database: SqlDatabase) -> None:
    """They come with a description, and make no other schema."""
    any_database.execute(
        "CREATE TABLE t (id int PRIMARY KEY COMMENT 'the number', plain text) COMMENT 'it''s here'"
    )
    (found,) = describe(any_database, "t")
    assert (found.comment, [c.comment for c in found.columns]) == ("it's here", ["the number", ""])
    any_database.execute("ALTER TABLE t COMMENT ''")
    (after,) = describe(any_database, "t")
    assert (after.comment, after) == ("", found)


def test_a_modest_user_hears_the_same_of_foreign_keys(any_database: SqlDatabase) -> None:
    """Guards CORRECTNESS 24 for users with no more rights than needed, to whom a MariaDB's catalog
    shows no rules: each of them, in any name, is found; what only looks like one is not."""
    any_database.execute(
        "CREATE TABLE parents (id int PRIMARY KEY, `ON DELETE CASCADE` int UNIQUE)",
        "CREATE TABLE deleted (id int PRIMARY KEY, p int, CONSTRAINT `a``b` FOREIGN KEY (p) "
        "REFERENCES parents (id)"
        " ON DELETE CASCADE ON UPDATE SET NULL)",
        "CREATE TABLE nulled (id int PRIMARY KEY, p int, FOREIGN KEY (p) REFERENCES parents (id) "
        "ON DELETE SET NULL)",
        "CREATE TABLE kept (id int PRIMARY KEY, p int COMMENT 'x\n  CONSTRAINT `c` FOREIGN KEY "
        "(p) ON DELETE CASCADE',"
        " FOREIGN KEY (p) REFERENCES parents (`ON DELETE CASCADE`) ON DELETE RESTRICT ON UPDATE "
        "NO ACTION)",
    )
    names = ("parents", "deleted", "nulled", "kept")
    with modest_user(any_database) as given:
        as_admin = of_tables(any_database, *names)
        assert of_tables(any_database, *names, **given) == as_admin
    found = ["source:cascade"] if any_database.server.flavour == "mariadb" else []
    assert as_admin == {"parents": [], "deleted": found, "nulled": found, "kept": []}


def test_a_modest_user_hears_of_a_replica_that_logs_nothing_of_its_source() -> None:
    """Guards the setting without which a replica's log lacks most changes, where the user may not
    ask whether it is one."""
    with MariadbServer() as server, fresh_sql_database(server) as database:
        with modest_user(database) as given:
            assert problems(database, **given) == []
            server.execute("SET GLOBAL gtid_slave_pos = '7-7-7'")
            (problem,) = problems(database, **given)
        assert (problem.code, dict(problem.facts)["setting"]) == (
            "source:setting",
            "log_slave_updates",
        )
        assert problems(database) == []


def test_a_server_id_that_can_not_be_checked_is_a_warning(mariadb_database: SqlDatabase) -> None:
    """Guards two readers under one number where the user may not ask for the others."""
    with modest_user(mariadb_database) as given:
        (problem,) = problems(mariadb_database, server_id=4711, **given)
        assert (problem.code, problem.severity) == ("source:server-id-unknown", Severity.WARNING)
        mariadb_database.execute(mending(problem))
        assert problems(mariadb_database, server_id=4711, **given) == []


def test_a_login_that_is_refused(any_database: SqlDatabase) -> None:
    """Guards a clear word for the commonest fault, without the password."""
    (problem,) = problems(any_database, password="wrong-word")
    assert problem.code == "source:login-refused"
    assert "wrong-word" not in str(problem.message)
    (problem,) = problems(any_database, database="is_not_there")
    assert problem.code == "source:database-missing"


def test_tables_that_can_not_be_followed_exactly(any_database: SqlDatabase) -> None:
    """Guards CORRECTNESS 19 and 24: no key, cascades, engines."""
    any_database.execute(
        "CREATE TABLE parents (id int PRIMARY KEY)",
        "CREATE TABLE children (id int PRIMARY KEY, p int, CONSTRAINT fk FOREIGN KEY (p) "
        "REFERENCES parents (id)"
        " ON DELETE CASCADE)",
        "CREATE TABLE keyless (a int)",
        "CREATE TABLE keyless_myisam (a int) ENGINE = MyISAM",
        "CREATE TABLE by_unique (a int NOT NULL UNIQUE, b int UNIQUE)",
        "CREATE TABLE in_memory (id int PRIMARY KEY) ENGINE = MEMORY",
    )
    cascades = any_database.server.flavour == "mariadb"
    assert of_tables(
        any_database,
        "parents",
        "children",
        "keyless",
        "keyless_myisam",
        "by_unique",
        "in_memory",
        "missing",
    ) == {
        "parents": [],
        "children": ["source:cascade"] if cascades else [],
        "keyless": ["source:kept-by-count"],
        "keyless_myisam": ["source:key-needed"],
        "by_unique": [],
        "in_memory": ["source:engine-unlogged"],
        "missing": ["source:table-missing"],
    }


def test_a_table_without_a_key_needs_the_right_to_lock_it_where_a_view_does_not_say_its_place(
    any_database: SqlDatabase,
) -> None:
    """Guards the one right that only such tables need, and only in MySQL; a table that is busy is
    no missing right."""
    any_database.execute(
        "CREATE TABLE t (a int)",
        "CREATE USER locker@'%' IDENTIFIED BY 'locker'",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO locker@'%'",
        f"GRANT SELECT ON {any_database.name}.* TO locker@'%'",
    )
    given = {"user": "locker", "password": "locker"}
    needs_lock = any_database.server.flavour == "mysql"
    try:
        with MysqlChecks(params_of(any_database, **given)) as checks:
            (problem,) = checks.tables([TableSelection(TableId(any_database.name, "t"))])
        assert problem.code == ("source:right-missing" if needs_lock else "source:kept-by-count")
        if needs_lock:
            any_database.execute(mending(problem))
        with any_database.connect(autocommit=False) as busy, busy.cursor() as cursor:
            cursor.execute("INSERT INTO t VALUES (1)")
            assert of_tables(any_database, "t", **given) == {"t": ["source:kept-by-count"]}
    finally:
        any_database.execute("DROP USER locker@'%'")


def test_cascades_are_logged_or_refused(any_database: SqlDatabase) -> None:
    """Guards what the check of cascades believes of this server, by looking into its log."""
    from tests.integration.mysql_source import following

    any_database.execute(
        "CREATE TABLE parents (id int PRIMARY KEY)",
        "CREATE TABLE children (id int PRIMARY KEY, p int, FOREIGN KEY (p) REFERENCES parents "
        "(id) ON DELETE CASCADE)",
        "INSERT INTO parents VALUES (1)",
        "INSERT INTO children VALUES (1, 1)",
    )
    with following(any_database, "parents", "children") as follower:
        any_database.execute("DELETE FROM parents")
        is_logged = "children" in follower.changes()
    refused = "source:cascade" in of_tables(any_database, "children")["children"]
    assert is_logged is not refused


def test_columns_in_forms_that_the_log_does_not_tell_are_refused(
    mariadb_database: SqlDatabase,
) -> None:
    """Guards MariaDB's compressed columns, and dates as MariaDB before 10.1 stored them."""
    mariadb_database.execute("CREATE TABLE packed (id int PRIMARY KEY, v text COMPRESSED)")
    server = mariadb_database.server
    server.execute("SET GLOBAL mysql56_temporal_format = OFF")
    try:
        mariadb_database.execute("CREATE TABLE old (id int PRIMARY KEY, at datetime)")
    finally:
        server.execute("SET GLOBAL mysql56_temporal_format = ON")
    unsupported = ["source:column-unsupported"]
    assert of_tables(mariadb_database, "packed", "old") == {
        "packed": ["source:column-compressed"],
        "old": unsupported,
    }


def test_vitess_is_refused(mysql: SqlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards against a proxy that answers like a MySQL and has no binlog of its own."""
    real = checks_module.server_of
    monkeypatch.setattr(
        checks_module, "server_of", lambda c: replace(real(c), version_text="8.0.30-Vitess")
    )
    with fresh_sql_database(mysql) as database:
        (problem,) = problems(database)
    assert (problem.code, dict(problem.facts)["version"]) == ("source:server-version", "Vitess")


def test_a_compressed_column_is_named_with_the_line_that_stores_it_otherwise(
    mariadb_database: SqlDatabase,
) -> None:
    """Guards the way out of a column that can't be followed, and that nothing else of it is lost by
    it: type, character set, default, comment and place stay; fails where the line is made of the
    type alone."""
    columns = (
        "SELECT column_name, column_type, is_nullable, column_default, character_set_name, "
        "collation_name, column_comment"
        f" FROM information_schema.columns WHERE table_schema = '{mariadb_database.name}' AND "
        f"table_name = '{{}}'"
        " ORDER BY ordinal_position"
    )
    declared = (
        "CREATE TABLE {0} (id int PRIMARY KEY, `a``b` text {1} NOT NULL DEFAULT 'x;' COMMENT "
        "'it''s /* , here',"
        " c varchar(30) CHARACTER SET latin1 {1} DEFAULT 'é', d varbinary(40) {1}, e int)"
    )
    mariadb_database.execute(declared.format("packed", "COMPRESSED"), declared.format("plain", ""))
    with MysqlChecks(params_of(mariadb_database)) as checks:
        found = checks.tables([TableSelection(TableId(mariadb_database.name, "packed"))])
    assert [(p.code, p.column) for p in found] == [
        ("source:column-compressed", name) for name in ("a`b", "c", "d")
    ]
    for problem in found:
        mariadb_database.execute(dict(problem.facts)["statement"])
        if problem.column != "a`b":
            assert mending(problem) == dict(problem.facts)["statement"]
    assert of_tables(mariadb_database, "packed") == {"packed": []}
    packed, plain = (mariadb_database.execute(columns.format(n)) for n in ("packed", "plain"))
    assert packed == plain
