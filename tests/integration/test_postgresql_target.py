"""PostgreSQL as a target on a real server: faults of the server, of rights and of hands, each with
a clear text and a clean way on."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demo.postgres import EmbeddedPostgres
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem, Severity
from replicators.connectors.sql.target import SqlMergeTarget
from replicators.connectors.target import FoldedBatch, TargetTable
from replicators.targets.postgresql import connections, staging
from replicators.targets.postgresql.checks import PostgresqlTargetChecks
from replicators.targets.postgresql.params import PostgresqlTargetParams
from tests.postgres_target import ROLE, writer_of, writer_params
from tests.proxies import CuttingProxy
from tests.servers import Database, fresh_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]
SCHEMA = TableSchema(
    TableId("shop", "orders"),
    (
        Column("id", Int(64), "bigint", nullable=False, ordinal=1),
        Column("note", String(), "text", ordinal=2),
        Column("n", Int(32), "integer", ordinal=3),
    ),
    ("id",),
    ("id",),
)
TABLE = TargetTable(SCHEMA.id, "r1", 1)


@pytest.fixture
def params(database: Database) -> PostgresqlTargetParams:
    return writer_params(database)


@pytest.fixture
def target(params: PostgresqlTargetParams, tmp_path: Path) -> Iterator[SqlMergeTarget]:
    made = writer_of(params, tmp_path)
    yield made
    made.close()


@pytest.fixture
def live(target: SqlMergeTarget) -> TargetTable:
    """A published table: rows 1 and 2."""
    return published(target)


def published(target: SqlMergeTarget) -> TargetTable:
    target.begin_snapshot(TABLE, SCHEMA)
    place = target.snapshot_place(TABLE, SCHEMA)
    path = f"{place.folder}/1.parquet"
    pq.write_table(pa.Table.from_pylist([{"id": 1, "n": 1}, {"id": 2}], place.arrow), path)
    target.load_snapshot_files(TABLE, SCHEMA, [path])
    return replace(TABLE, table_uuid=target.publish_snapshot(TABLE, SCHEMA, 10))


def batch(folder: Path, sequence: int, **values: Any) -> FoldedBatch:
    """A batch that sets row 1, and adds a row of its own."""
    arrow = pa.schema([*SCHEMA.arrow_schema(), pa.field("_delete", pa.bool_())])
    row = {"id": 1, "note": f"s{sequence}", "n": sequence, "_delete": False, **values}
    added = {"id": 1000 + sequence, "_delete": False}
    path = folder / f"{sequence}.parquet"
    pq.write_table(pa.Table.from_pylist([row, added], arrow), path)
    return FoldedBatch(SCHEMA, (str(path),), sequence, 2)


def rows(database: Database) -> list[Any]:
    return database.execute("SELECT id, note, n FROM shop.orders ORDER BY id")


def code_of(act: Callable[[], Any]) -> str:
    with pytest.raises(ReplicationError) as caught:
        act()
    error = caught.value
    texts = f"{error.message.text} {error.message.suggestion}"
    assert not re.search(r"\((target|constraint|reason|user|seconds|table)\)", texts), texts
    return error.code


# --- the server ---------------------------------------------------------------------------------


def test_a_crash_of_the_server_between_load_and_merge_loses_no_row(
    target: SqlMergeTarget, live: TargetTable, database: Database, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Guards `client._require_rows`: after a crash the unlogged staging table is there and empty.
    Merged as it is, it would move the token past changes that never arrived."""
    client: Any = target._client
    run = client.run

    def after_a_crash(*given: Any, **named: Any) -> None:
        database.server.stop("immediate")
        database.server.start()
        client._connections.give_up()
        run(*given, **named)

    monkeypatch.setattr(client, "run", after_a_crash)
    assert code_of(lambda: target.merge(live, batch(tmp_path, 20))) == "target:postgresql-lost"
    monkeypatch.setattr(client, "run", run)
    assert rows(database) == [(1, None, 1), (2, None, None)]
    assert target.merge(live, batch(tmp_path, 20)).was_applied
    assert rows(database) == [(1, "s20", 20), (2, None, None), (1020, None, None)]


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_lost_answer_to_a_commit_is_asked_for(
    params: PostgresqlTargetParams, database: Database, tmp_path: Path, is_committed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Guards `transactions`: where the connection is cut while the server commits, the server's own
    word decides. Without it, a merge that was done would be told as a fault, and one that was not
    as done."""
    with CuttingProxy(params.port) as proxy:
        target = writer_of(replace(params, port=proxy.port), tmp_path)
        live = published(target)
        client: Any = target._client
        inner = client._run

        def cut(connection: Any, steps: Any) -> None:
            inner(connection, steps)
            if is_committed:
                proxy.cut_after(0)
            else:
                database.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])

        monkeypatch.setattr(client, "_run", cut)
        if is_committed:
            assert target.merge(live, batch(tmp_path, 20)).was_applied
        else:
            found = code_of(lambda: target.merge(live, batch(tmp_path, 20)))
            assert found == "target:postgresql-lost"
        monkeypatch.setattr(client, "_run", inner)
        assert target.merge(live, batch(tmp_path, 20)).was_applied is not is_committed
        target.close()
    assert rows(database) == [(1, "s20", 20), (2, None, None), (1020, None, None)]


def test_connections_that_were_cut_are_opened_again(
    target: SqlMergeTarget, live: TargetTable, database: Database, tmp_path: Path
) -> None:
    """Guards `connections.get`: a restart of the server costs one try of a table, not the run."""
    database.server.restart()
    assert code_of(lambda: target.merge(live, batch(tmp_path, 20))) == "target:postgresql-lost"
    assert target.merge(live, batch(tmp_path, 20)).was_applied
    assert len(rows(database)) == 3


def test_a_commit_that_was_acknowledged_survives_whatever_the_role_is_set_to(
    database: Database, params: PostgresqlTargetParams
) -> None:
    """Guards `synchronous_commit` and the time limits: a role may be set to lose its last commits,
    or to end long statements; a stricter setting stays."""
    for given, kept in (("off", "on"), ("remote_apply", "remote_apply")):
        database.execute(
            f"ALTER ROLE {ROLE} SET synchronous_commit = '{given}';"
            f"ALTER ROLE {ROLE} SET statement_timeout = '1s';"
            f"ALTER ROLE {ROLE} SET default_transaction_isolation = 'serializable'"
        )
        with connections.connect(params) as connection:
            found = connection.execute(
                "SELECT current_setting('synchronous_commit'),"
                " current_setting('statement_timeout'), current_setting('transaction_isolation'),"
                " current_setting('lock_timeout')"
            ).fetchone()
        assert found == (kept, "0", "read committed", "30s")
    database.execute(f"ALTER ROLE {ROLE} RESET ALL")


# --- other sessions and hands -------------------------------------------------------------------


def test_a_lock_that_somebody_holds_is_told_and_waited_for_again(
    target: SqlMergeTarget, live: TargetTable, database: Database, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Guards `lock_timeout`: without it a merge hangs behind an open transaction until the
    watchdog kills the run."""
    target._client._connections.get().execute("SET lock_timeout = '200ms'")  # type: ignore[attr-defined]
    with database.connect(autocommit=False) as other:
        other.execute("LOCK TABLE shop.orders")
        assert code_of(lambda: target.merge(live, batch(tmp_path, 20))) == "target:postgresql-lock"
        other.rollback()
    assert target.merge(live, batch(tmp_path, 20)).was_applied


def test_a_statement_that_somebody_cancels_is_tried_again(
    target: SqlMergeTarget, live: TargetTable, database: Database, tmp_path: Path
) -> None:
    """Guards 57014: it must not look like a fault of the table."""
    with database.connect(autocommit=False) as other:
        other.execute("LOCK TABLE shop.orders")
        cancel = threading.Thread(target=_cancel, args=(database,))
        cancel.start()
        found = code_of(lambda: target.merge(live, batch(tmp_path, 20)))
        cancel.join()
        other.rollback()
    assert found == "target:postgresql-cancelled"
    assert target.merge(live, batch(tmp_path, 20)).was_applied


def _cancel(database: Database) -> None:
    waiting = (
        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND wait_event_type = 'Lock'"
    )
    with database.connect() as connection:
        while connection.execute(waiting).fetchone() is None:
            pass


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("ALTER TABLE shop.orders DROP COLUMN note", "target:column-missing"),
        ("ALTER TABLE shop.orders RENAME note TO other", "target:column-missing"),
        ("ALTER TABLE shop.orders ALTER n TYPE date USING NULL",
         "target:postgresql-table-changed"),
        ("ALTER TABLE shop.orders ADD CHECK (note <> 's20')", "target:postgresql-constraint"),
        ("CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS "
         "'BEGIN RAISE EXCEPTION ''no''; END'; GRANT EXECUTE ON FUNCTION no TO PUBLIC;"
         "CREATE TRIGGER t BEFORE INSERT ON shop.orders FOR EACH ROW EXECUTE FUNCTION no()",
         "target:postgresql-trigger"),
        ("DROP TABLE shop.orders", "target:table-missing"),
        ("DROP TABLE shop.orders; CREATE TABLE shop.orders (id bigint, note text, n int)",
         "target:table-replaced"),
        ("ALTER TABLE shop.orders RENAME TO gone; CREATE VIEW shop.orders AS TABLE shop.gone",
         "target:table-replaced"),
        ("DROP SCHEMA shop CASCADE", "target:table-missing"),
        ("ALTER TABLE shop.orders OWNER TO postgres; REVOKE ALL ON shop.orders FROM plain_writer",
         "target:postgresql-right"),
        ("ALTER ROLE plain_writer SET default_transaction_read_only = on",
         "target:postgresql-read-only"),
    ],
)  # fmt: skip
def test_a_table_that_was_changed_by_hand_stops_with_its_own_text(
    target: SqlMergeTarget, live: TargetTable, database: Database, tmp_path: Path, statement: str,
    code: str,
) -> None:  # fmt: skip
    """Guards `errors.RULES` against what a real server says, and that nothing of such a merge
    stays."""
    database.execute(statement)
    target._client._connections.give_up()  # type: ignore[attr-defined]
    assert code_of(lambda: target.merge(live, batch(tmp_path, 20))) == code
    database.execute(f"ALTER ROLE {ROLE} RESET ALL")
    token = target.token(live) if code.startswith("target:postgresql") else None
    assert token is None or token.sequence == 10


@pytest.mark.parametrize(
    ("values", "code"),
    [({"note": "a\x00b"}, "target:postgresql-value")],
)
def test_a_value_that_postgresql_can_not_hold_stops_the_table(
    target: SqlMergeTarget, live: TargetTable, database: Database, tmp_path: Path,
    values: dict[str, Any], code: str,
) -> None:  # fmt: skip
    """Guards 22021: MySQL has texts with a NUL character, PostgreSQL has none."""
    with pytest.raises(ReplicationError) as caught:
        target.merge(live, batch(tmp_path, 20, **values))
    assert caught.value.code == code
    assert caught.value.facts["reason"].startswith("column note: a text has a NUL character")
    assert target.merge(live, batch(tmp_path, 20)).was_applied


def test_a_small_staging_table_is_used_again_and_goes_in_the_end(
    target: SqlMergeTarget, live: TargetTable, database: Database, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Guards the catalog, which a table made for each merge fills with dead rows: a kept table has
    the rows of one batch only, also after it was truncated, after somebody dropped it, and where a
    batch has other columns. A large one goes at once."""
    staged = "SELECT oid, oid::regclass::text FROM pg_class WHERE relname LIKE '%\\_batch\\_%'"

    def after_merge(sequence: int, **values: Any) -> list[Any]:
        assert target.merge(live, batch(tmp_path, sequence, **values)).was_applied
        return database.execute(staged)

    ((first, name),) = after_merge(20)
    assert after_merge(21) == [(first, name)]
    assert database.execute(f"SELECT count(*) FROM {name}") == [(2,)]  # noqa: S608
    monkeypatch.setattr(staging, "MOST_STORED", 3)
    assert after_merge(22) == [(first, name)]
    assert database.execute(f"SELECT count(*) FROM {name}") == [(2,)]  # noqa: S608
    assert database.execute(f"SELECT pg_relation_size('{name}') <= 8192") == [(True,)]
    database.execute(f"DROP TABLE {name}")
    ((second, _),) = after_merge(23)
    assert second != first
    monkeypatch.setattr(staging, "MOST_KEPT", 1)
    assert after_merge(24) == []
    monkeypatch.undo()
    assert len(after_merge(25)) == 1
    assert [row[0] for row in rows(database)][2:] == [1000 + n for n in range(20, 26)]
    target.close()
    assert database.execute(staged) == []


def test_no_free_connection_is_told(
    database: Database, params: PostgresqlTargetParams, tmp_path: Path
) -> None:
    """Guards 53300, which a role's own limit brings too."""
    database.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT 0")
    try:
        with PostgresqlTargetChecks(params) as checks:
            (problem,) = checks.connection()
        assert problem.code == "target:postgresql-connections"
    finally:
        database.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT -1")


# --- the preflight ------------------------------------------------------------------------------


def found_by(
    params: PostgresqlTargetParams, *schemas: TableSchema, owner: str = ""
) -> list[Problem]:
    with PostgresqlTargetChecks(params) as checks:
        return [*checks.connection(), *checks.tables(list(schemas) or [SCHEMA], owner)]


def mend(database: Database, problem: Problem) -> None:
    """Run the statement that the problem's suggestion names."""
    statement = problem.message.suggestion.split("`")[1]
    database.execute(statement)


@pytest.mark.parametrize(
    ("broken", "code", "values"),
    [
        ("REVOKE CREATE ON DATABASE {name} FROM plain_writer",
         "target:postgresql-create-schema", {}),
        ("REVOKE CREATE ON DATABASE {name} FROM plain_writer; CREATE SCHEMA shop",
         "target:postgresql-create-table", {}),
        ("REVOKE CREATE ON DATABASE {name} FROM plain_writer; CREATE SCHEMA \"Two words\"",
         "target:postgresql-create-table", {"schema": "Two words"}),
        ("CREATE SCHEMA shop; GRANT CREATE ON SCHEMA shop TO plain_writer",
         "target:postgresql-create-table", {}),
    ],
)  # fmt: skip
def test_a_missing_right_is_mended_by_the_statement_that_is_told(
    database: Database, broken: str, code: str, values: dict[str, Any], tmp_path: Path
) -> None:
    """Guards the preflight and its texts: the statement, run as it is shown, is enough for a first
    copy."""
    params = writer_params(database, **values)
    database.execute(broken.replace("{name}", database.name))
    found = {p.code: p for p in found_by(params)}
    assert set(found) == {code}
    mend(database, found[code])
    assert found_by(params) == []
    target = writer_of(params, tmp_path)
    published(target)
    target.close()


def test_an_owner_that_was_changed_is_mended_too(
    database: Database, params: PostgresqlTargetParams, target: SqlMergeTarget, live: TargetTable
) -> None:
    database.execute("ALTER TABLE shop.orders OWNER TO postgres")
    (problem,) = found_by(params, owner="r1")
    assert problem.code == "target:postgresql-owner"
    mend(database, problem)
    assert found_by(params, owner="r1") == []


def test_names_that_are_taken_shared_long_or_reserved_are_rows_of_the_assessment(
    database: Database, params: PostgresqlTargetParams, live: TargetTable
) -> None:
    """Guards naming: two tables under one name would overwrite each other."""
    assert found_by(params, owner="r1") == []
    assert {p.code for p in found_by(params, owner="r2")} == {"target:table-taken"}
    long = [replace(SCHEMA, id=TableId("shop", "n" * 63 + end)) for end in "ab"]
    found = found_by(params, *long)
    errors = [p.code for p in found if p.severity is Severity.ERROR]
    assert errors == ["target:name-shared"]
    assert [p.code for p in found if p.severity is Severity.WARNING] == [
        "target:postgresql-shortened"
    ] * 2
    own = replace(SCHEMA, id=TableId("shop", "_replicator_progress"))
    system = replace(SCHEMA, id=TableId("pg_shop", "orders"))
    assert [p.code for p in found_by(params, own)][0] == "target:name-reserved"
    assert [p.code for p in found_by(params, system)][0] == "target:postgresql-schema-name"
    moved = replace(params, schema="all")
    twice = [replace(SCHEMA, id=TableId(s, "things")) for s in ("one", "two")]
    assert [p.code for p in found_by(moved, *twice)] == ["target:name-shared"]


def test_a_copy_onto_the_source_itself_is_refused(
    database: Database, params: PostgresqlTargetParams
) -> None:
    """Guards the OID: the target's table would be the source's own."""
    database.execute("CREATE SCHEMA shop; CREATE TABLE shop.orders (id int)")
    (row,) = database.execute("SELECT 'shop.orders'::regclass::oid::bigint")
    database.execute(f"GRANT USAGE, CREATE ON SCHEMA shop TO {ROLE}")
    same = replace(SCHEMA, native_id=row[0])
    assert [p.code for p in found_by(params, same)] == ["target:postgresql-same-table"]
    assert [p.code for p in found_by(params)] == ["target:table-taken"]


def test_a_database_in_another_encoding_and_a_read_only_one_are_told(
    postgres: EmbeddedPostgres, database: Database
) -> None:
    params = writer_params(database)
    database.execute(f"ALTER ROLE {ROLE} SET default_transaction_read_only = on")
    assert {p.code for p in found_by(params)} == {"target:postgresql-read-only"}
    database.execute(f"ALTER ROLE {ROLE} RESET ALL")
    with fresh_database(postgres) as other:
        postgres.execute(f"DROP DATABASE {other.name}")
        postgres.execute(
            f"CREATE DATABASE {other.name} ENCODING 'LATIN1' TEMPLATE template0"
            " LC_COLLATE 'C' LC_CTYPE 'C'"
        )
        assert "target:postgresql-encoding" in {p.code for p in found_by(writer_params(other))}


def test_wrong_words_are_told_apart(params: PostgresqlTargetParams) -> None:
    """Guards the connection's rules on a real server."""
    for values, code in (
        ({"password": "wrong"}, "target:postgresql-login"),
        ({"user": "nobody_here"}, "target:postgresql-login"),
        ({"database": "not_there"}, "target:postgresql-database"),
        ({"host": "no-such-host.invalid"}, "target:postgresql-host"),
        ({"sslmode": "require"}, "target:postgresql-tls"),
    ):
        with PostgresqlTargetChecks(replace(params, **values)) as checks:
            assert [p.code for p in checks.connection()] == [code], values
