"""The preflight against real servers: each fault a person can mend is a problem with one clear
code."""

from __future__ import annotations

import socket
import time

import pytest

from demo.postgres import EmbeddedPostgres
from replicators.connectors.model.schema import TableId, TableSelection
from replicators.connectors.problems.problem import Problem, Severity
from replicators.sources.postgresql import checks as checks_module
from replicators.sources.postgresql.checks import PostgresqlChecks
from replicators.sources.postgresql.connections import ReplicationConnection
from replicators.sources.postgresql.params import PostgresqlParams
from replicators.sources.postgresql.setup import setup
from tests.integration.postgresql_source import params_of
from tests.servers import Database, fresh_database

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(120),
    pytest.mark.oldest_postgresql(is_long=True),
]


def connection_problems(database: Database, /, **changes: object) -> list[Problem]:
    with PostgresqlChecks(params_of(database, **changes)) as checks:
        return checks.connection()


def errors(problems: list[Problem]) -> list[str]:
    return [p.code for p in problems if p.severity is Severity.ERROR]


def table_problems(
    database: Database, *tables: TableSelection | str, **changes: object
) -> list[Problem]:
    chosen = [
        t if isinstance(t, TableSelection) else TableSelection(TableId("public", t)) for t in tables
    ]
    with PostgresqlChecks(params_of(database, **changes)) as checks:
        return checks.tables(chosen)


def role(database: Database, name: str, options: str) -> dict[str, str]:
    database.execute(f"DROP ROLE IF EXISTS {name}")
    made = database.user(name, options)
    return {"user": made["user"], "password": made["password"]}


def test_a_server_that_accepts_and_says_nothing_is_given_up_within_ten_seconds() -> None:
    """Guards `connections.CONNECT_SECONDS`: without libpq's own limit the page would wait for ever
    on a port that takes connections and is no PostgreSQL. No server takes part."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        params = PostgresqlParams("127.0.0.1", port=port, user="u", password="p", database="d")
        started = time.monotonic()
        with PostgresqlChecks(params) as checks:
            problems = checks.connection()
    assert time.monotonic() - started < 10
    assert errors(problems) == ["source:timeout"]


class TestConnection:
    def test_a_good_server_has_no_error(self, database):
        """Guards `checks._server` against false alarms: of a right server only the log without a
        limit (`max_slot_wal_keep_size` = -1) is said, and that as a warning."""
        problems = connection_problems(database)
        assert errors(problems) == []
        assert [p.code for p in problems] == ["source:log-retention"]

    @pytest.mark.parametrize(
        ("changes", "code"),
        [
            ({"host": "no-such-host.invalid"}, "source:unknown-host"),
            ({"port": 1}, "source:unreachable"),
            ({"password": "wrong"}, "source:login-refused"),
            ({"user": "nobody_here"}, "source:login-refused"),
            ({"database": "no_such_database"}, "source:database-missing"),
            ({"sslmode": "require"}, "source:tls"),
        ],
    )
    def test_a_wrong_parameter_is_named(self, database, changes, code):
        """Guards `errors.RULES`: each mistake gets the code of its own cause, and nothing of the
        driver's text or the password is in what a person reads."""
        problems = connection_problems(database, **changes)
        assert [p.code for p in problems] == [code]
        assert "wrong" not in str(problems[0].to_json())

    def test_a_role_without_replication_is_named(self, database):
        """Guards the rights in `checks.SERVER` (`rolreplication`, CREATE on the database): without
        them the first run, not the assessment, would find out."""
        plain = role(database, "plain_role", "LOGIN")
        assert errors(connection_problems(database, **plain)) == [
            "source:replication-right",
            "source:create-right",
        ]

    def test_a_role_that_may_replicate_and_create_is_enough(self, database):
        """Guards against asking for more than is needed: a check that wants a superuser would
        refuse the role that the set-up page tells people to make."""
        copier = role(database, "copier_role", "LOGIN REPLICATION")
        database.execute(f"GRANT CREATE ON DATABASE {database.name} TO copier_role")
        assert errors(connection_problems(database, **copier)) == []
        database.execute(f"REVOKE CREATE ON DATABASE {database.name} FROM copier_role")

    def test_an_old_server_is_named(self, database, monkeypatch):
        """Guards `MINIMUM_VERSION` in `checks._server`: an older pgoutput knows no `binary` option,
        so START_REPLICATION would fail in every run."""
        monkeypatch.setattr(checks_module, "MINIMUM_VERSION", 990000)
        assert errors(connection_problems(database)) == ["source:version"]

    def test_a_server_that_can_not_be_followed_says_all_of_it(self):
        """Guards the look at `wal_level`: without it the first run would fail at
        CREATE_REPLICATION_SLOT. A limit of the kept log, which is set here, takes the warning about
        it away."""
        options = {"wal_level": "replica", "max_slot_wal_keep_size": "1GB"}
        with (
            EmbeddedPostgres(fsync=False, options=options) as server,
            fresh_database(server) as database,
        ):
            assert [p.code for p in connection_problems(database)] == ["source:wal-level"]

    def test_no_free_slot_and_no_free_sender_are_named(self):
        """Guards the counts in `checks.SERVER` (CORRECTNESS 18): without them the first run would
        find no slot, or no walsender for its stream."""
        options = {"max_replication_slots": "1", "max_wal_senders": "1"}
        with (
            EmbeddedPostgres(fsync=False, options=options) as server,
            fresh_database(server) as database,
        ):
            database.execute("SELECT pg_create_logical_replication_slot('taken', 'pgoutput')")
            assert errors(connection_problems(database)) == ["source:slots-used-up"]
            sender = ReplicationConnection(params_of(database))
            assert errors(connection_problems(database)) == [
                "source:slots-used-up",
                "source:senders-used-up",
            ]
            sender.close()


class TestTables:
    def test_no_table_and_a_missing_one_are_errors(self, database):
        """Guards the first lines of `checks.tables` and `checks._table`: `describe` leaves out what
        is not there, so an empty choice and a wrong name would pass as well."""
        assert errors(table_problems(database)) == ["source:no-tables"]
        assert errors(table_problems(database, "none")) == ["source:table-missing"]

    def test_a_good_table_has_no_problem(self, database):
        """Guards the checks of tables against false alarms: fails where a keyed table of plain
        types is said to have any fault."""
        database.execute("CREATE TABLE good (id int PRIMARY KEY, note text)")
        assert table_problems(database, "good") == []

    def test_rights_are_named_with_the_statement_that_gives_them(self, database):
        """Guards `checks.RIGHTS`: every right that lacks is said at once, with the GRANT that gives
        it, names quoted; fails where the first one hides the others."""
        plain = role(database, "no_rights", "LOGIN REPLICATION")
        database.execute("CREATE SCHEMA hidden")
        database.execute("CREATE TABLE hidden.t (id int PRIMARY KEY)")
        problems = table_problems(database, TableSelection(TableId("hidden", "t")), **plain)
        assert errors(problems) == [
            "source:usage-right",
            "source:select-right",
            "source:publication-right",
        ]
        assert 'GRANT SELECT ON "hidden"."t" TO "no_rights"' in problems[1].message.suggestion

    def test_a_member_of_the_owner_may_publish(self, database):
        """Guards `pg_has_role` in `checks.RIGHTS`: compared with the owner alone, a member of the
        owning role, who may publish, would be refused."""
        member = role(database, "member_role", "LOGIN REPLICATION")
        database.execute("DROP ROLE IF EXISTS owner_role")
        database.execute("CREATE ROLE owner_role")
        database.execute("GRANT owner_role TO member_role")
        database.execute("CREATE TABLE t (id int PRIMARY KEY)")
        database.execute("ALTER TABLE t OWNER TO owner_role")
        assert table_problems(database, "t", **member) == []

    def test_a_table_without_key_is_a_warning(self, database):
        """Guards `source:no-key` in `checks._table`: of such a table only inserts are published
        (CORRECTNESS 20), which nobody would be told before rows differ."""
        database.execute("CREATE TABLE views (page text)")
        (problem,) = table_problems(database, "views")
        assert (problem.code, problem.severity) == ("source:no-key", Severity.WARNING)
        assert '`ALTER TABLE "public"."views" REPLICA IDENTITY FULL;`' in problem.message.suggestion

    def test_a_table_without_key_whose_old_rows_are_sent_is_counted(self, database):
        """Guards the choice: FULL on all partitions is what keeps such a table; one without it
        can't be updated."""
        database.execute("CREATE TABLE views (page text); ALTER TABLE views REPLICA IDENTITY FULL")
        database.execute("CREATE TABLE parts (n int) PARTITION BY RANGE (n)")
        database.execute("CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10)")
        database.execute("ALTER TABLE parts REPLICA IDENTITY FULL")
        codes = [p.code for p in table_problems(database, "views", "parts")]
        assert codes == ["source:kept-by-count", "source:no-key"]
        database.execute("ALTER TABLE parts_1 REPLICA IDENTITY FULL")
        assert [p.code for p in table_problems(database, "parts")] == ["source:kept-by-count"]

    def test_columns_that_can_not_be_copied_as_they_are_are_named(self, database):
        """Guards `column_problems` and `is_reserved`: a type without a place, one that loses
        something, and a name that our own columns take, in any case of letters since Spark tells
        none apart."""
        database.execute("CREATE TYPE pair AS (a int, b int)")
        database.execute(
            'CREATE TABLE odd (id int PRIMARY KEY, p pair, n numeric, "_op" int, "_Origin" int)'
        )
        found = {(p.code, p.column, p.severity) for p in table_problems(database, "odd")}
        assert found == {
            ("source:column-unsupported", "p", Severity.ERROR),
            ("source:column-partial", "n", Severity.WARNING),
            ("source:column-reserved", "_op", Severity.ERROR),
            ("source:column-reserved", "_Origin", Severity.ERROR),
        }

    def test_columns_that_are_left_out_are_no_problem(self, database):
        """Guards the way out that those problems suggest: fails where `catalog._table` describes,
        and so `column_problems` judges, columns that were not chosen."""
        database.execute("CREATE TYPE pair AS (a int, b int)")
        database.execute('CREATE TABLE odd (id int PRIMARY KEY, p pair, "_op" int, note text)')
        chosen = TableSelection(TableId("public", "odd"), ("id", "note"))
        assert table_problems(database, chosen) == []

    def test_a_chosen_column_that_is_gone_is_an_error(self, database):
        """Guards `source:column-missing` in `column_problems`: without it the copy would lack the
        column without a word."""
        database.execute("CREATE TABLE t (id int PRIMARY KEY)")
        chosen = TableSelection(TableId("public", "t"), ("id", "gone"))
        assert errors(table_problems(database, chosen)) == ["source:column-missing"]

    def test_an_unlogged_table_is_an_error(self, database):
        """Guards `relpersistence` in `checks.RIGHTS`: no log has an unlogged table's rows, and
        publishing it fails in the first run."""
        database.execute("CREATE UNLOGGED TABLE fast (id int PRIMARY KEY)")
        assert errors(table_problems(database, "fast")) == ["source:table-unlogged"]


class TestSetup:
    def test_the_statements_name_the_role_and_no_secret(self):
        """Guards `setup.setup`: names go through `sql.name`, since people paste these statements as
        a superuser, and the password stays out of them."""
        values = {"user": 'odd"name', "database": "shop", "password": "hidden"}
        text = "\n".join(s for step in setup(values) for s in step.statements)
        assert "wal_level" in text
        assert '"odd""name"' in text
        assert "hidden" not in text

    def test_a_user_made_by_the_statements_may_do_everything(self, database):
        """Guards the set-up page's statements against the checks: run as they stand, they give
        every right that is asked for; fails where one grant is left out."""
        owner, user = "owner_of_the_tables", f"made_{database.name}"
        values = {"user": user, "database": database.name}
        database.execute(f"CREATE ROLE {owner}; CREATE TABLE t (id int PRIMARY KEY)")
        database.execute(f"ALTER TABLE t OWNER TO {owner}")
        try:
            for step in setup(values)[1:]:
                for statement in step.statements:
                    database.execute(statement)
            login = {"user": user, "password": "choose one"}
            assert errors(connection_problems(database, **login)) == []
            assert errors(table_problems(database, "t", **login)) == []
        finally:
            database.execute(f"DROP OWNED BY {owner}, {user}; DROP ROLE {user}, {owner}")
