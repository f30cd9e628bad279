"""PostgreSQL as a target without a server: types, names, params, and errors by SQLSTATE."""

from __future__ import annotations

import re

import psycopg
import pytest
from psycopg import errors

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Enum,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Unsupported,
    Uuid,
)
from replicators.connectors.params import InvalidParams, parse
from replicators.connectors.problems.errors import ReplicationError, Retry, Scope
from replicators.connectors.target import FitKind
from replicators.targets.postgresql import naming
from replicators.targets.postgresql.errors import translate
from replicators.targets.postgresql.params import PostgresqlTargetParams, places
from replicators.targets.postgresql.setup import setup
from replicators.targets.postgresql.types import fit

GIVEN = {"host": "db", "database": "copies", "user": "copier", "password": "s3cret-word"}
PARAMS = parse(PostgresqlTargetParams, GIVEN)
TABLE = TableId("shop", "orders")


@pytest.mark.parametrize(
    ("kind", "native", "how"),
    [
        (Boolean(), "boolean", FitKind.EXACT),
        (Int(8), "smallint", FitKind.WIDENED),
        (Int(16), "smallint", FitKind.EXACT),
        (Int(16, signed=False), "integer", FitKind.WIDENED),
        (Int(32), "integer", FitKind.EXACT),
        (Int(32, signed=False), "bigint", FitKind.WIDENED),
        (Int(64), "bigint", FitKind.EXACT),
        (Int(64, signed=False), "numeric(20,0)", FitKind.WIDENED),
        (Int(128), "", FitKind.UNSUPPORTED),
        (Decimal(38, 10), "numeric(38,10)", FitKind.EXACT),
        (Float(32), "real", FitKind.EXACT),
        (Float(64), "double precision", FitKind.EXACT),
        (String(10), "text", FitKind.EXACT),
        (Bytes(), "bytea", FitKind.EXACT),
        (Date(), "date", FitKind.EXACT),
        (Time(), "time without time zone", FitKind.EXACT),
        (Timestamp(zone=True), "timestamp with time zone", FitKind.EXACT),
        (Timestamp(), "timestamp without time zone", FitKind.EXACT),
        (Json(), "json", FitKind.EXACT),
        (Uuid(), "uuid", FitKind.EXACT),
        (Enum(("a",)), "text", FitKind.WIDENED),
        (Array(Decimal(5, 1)), "numeric(5,1)[]", FitKind.EXACT),
        (Unsupported("point"), "", FitKind.UNSUPPORTED),
        (Array(Unsupported("point")), "", FitKind.UNSUPPORTED),
    ],
)
def test_a_type_has_its_place(kind: LogicalType, native: str, how: FitKind) -> None:
    """Guards the table `types.fit`: a narrower type would cut or round values. The spelling is that
    of PostgreSQL's catalog, by which a live column is compared."""
    fitted = fit(kind)
    assert (fitted.native, fitted.kind) == (native, how)


@pytest.mark.parametrize(
    ("text", "left"),
    [("a" * 63, "a" * 63), ("a" * 64, "a" * 63), ("é" * 40, "é" * 31), ("é" * 31, "é" * 31)],
)
def test_a_name_is_cut_as_the_server_cuts_it(text: str, left: str) -> None:
    """Guards `naming.cut`: a name that the server cut itself would never be found again, and a
    character cut in two is no UTF-8."""
    assert naming.cut(text) == left
    assert naming.names(PARAMS, TableId("shop", text)) == ("shop", left)


def test_column_names_that_postgresql_can_not_have_are_known() -> None:
    """Guards the assessment's rows: a long column name would be cut, and CREATE TABLE refuses the
    name of a system column."""
    names = ("id", "x" * 64, "xmin", "XMIN")
    schema = TableSchema(TABLE, tuple(Column(n, Int(32), "int") for n in names))
    assert naming.long_columns(schema) == ["x" * 64]
    assert naming.system_columns(schema) == ["xmin"]


@pytest.mark.parametrize("schema", ["s" * 64, "pg_copies"])
def test_a_schema_that_postgresql_can_not_have_is_refused(schema: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        parse(PostgresqlTargetParams, {**GIVEN, "schema": schema})
    assert set(caught.value.errors) == {"schema"}


def test_places_and_steps_name_the_database_and_no_password() -> None:
    (place,) = places(PARAMS)
    assert (place.value, place.port, place.database) == ("db", 5432, "copies")
    for values in (GIVEN, {**GIVEN, "schema": "own"}):
        text = "\n".join(step.sql for step in setup(values))
        assert '"copies"' in text and '"copier"' in text and "s3cret" not in text
    assert '"own"' in text


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.DiskFull("could not extend file"), "target:storage-full"),
        (errors.OutOfMemory("out of memory"), "target:postgresql-memory"),
        (errors.TooManyConnections("sorry, too many clients already"),
         "target:postgresql-connections"),
        (errors.LockNotAvailable("canceling statement due to lock timeout"),
         "target:postgresql-lock"),
        (errors.QueryCanceled("canceling statement due to user request"),
         "target:postgresql-cancelled"),
        (errors.DeadlockDetected("deadlock detected"), "target:conflict"),
        (errors.SerializationFailure("could not serialize access"), "target:conflict"),
        (errors.UniqueViolation('duplicate key value violates unique constraint '
                                '"pg_type_typname_nsp_index"'),
         "target:conflict"),
        (errors.UniqueViolation('duplicate key value violates unique constraint "orders_u"'),
         "target:postgresql-constraint"),
        (errors.CheckViolation("violates check constraint"), "target:postgresql-constraint"),
        (errors.UndefinedTable('relation "x" does not exist'), "target:table-missing"),
        (errors.InvalidSchemaName('schema "x" does not exist'), "target:table-missing"),
        (errors.UndefinedColumn('column "x" does not exist'), "target:column-missing"),
        (errors.DatatypeMismatch("column is of type integer"), "target:postgresql-table-changed"),
        (errors.StringDataRightTruncation("value too long for type"),
         "target:postgresql-table-changed"),
        (errors.ReadOnlySqlTransaction("cannot execute INSERT in a read-only transaction"),
         "target:postgresql-read-only"),
        (errors.InsufficientPrivilege("permission denied for schema shop"),
         "target:postgresql-right"),
        (errors.CharacterNotInRepertoire('invalid byte sequence for encoding "UTF8": 0x00'),
         "target:postgresql-value"),
        (errors.UntranslatableCharacter("unsupported Unicode escape sequence"),
         "target:postgresql-value"),
        (errors.NumericValueOutOfRange("integer out of range"), "target:postgresql-value"),
        (errors.ProgramLimitExceeded("index row size 2800 exceeds btree maximum"),
         "target:postgresql-limit"),
        (errors.DependentObjectsStillExist("cannot drop table"), "target:postgresql-dependent"),
        (errors.FeatureNotSupported("cannot alter type of a column used by a view or rule"),
         "target:postgresql-dependent"),
        (errors.RaiseException("not today"), "target:postgresql-trigger"),
        (errors.InvalidPassword("password authentication failed"), "target:postgresql-login"),
        (errors.InvalidCatalogName('database "x" does not exist'), "target:postgresql-database"),
        (errors.AdminShutdown("terminating connection"), "target:postgresql-lost"),
        (errors.CannotConnectNow("the database system is starting up"), "target:postgresql-lost"),
        (psycopg.OperationalError("consuming input failed: server closed the connection "
                                  "unexpectedly"),
         "target:postgresql-lost"),
        (psycopg.OperationalError("the connection is closed"), "target:postgresql-lost"),
        (psycopg.OperationalError("connection failed: Connection refused"),
         "target:postgresql-unreachable"),
        (psycopg.OperationalError("connection timeout expired"), "target:timeout"),
        (psycopg.OperationalError("failed to resolve host 'db'"), "target:postgresql-host"),
        (psycopg.OperationalError("server does not support SSL, but SSL was required"),
         "target:postgresql-tls"),
        (errors.SyntaxError("syntax error"), "internal:unexpected"),
    ],
)  # fmt: skip
def test_a_driver_error_has_its_code(error: Exception, code: str) -> None:
    """Guards the table `errors.RULES` and its order: a changed table that is told as a cut
    connection would be tried again for ever."""
    found = translate(error, PARAMS, table=TABLE)
    assert isinstance(found, ReplicationError)
    assert found.code == code
    message = found.message
    texts = f"{message.text} {message.suggestion}"
    assert not re.search(r"\((host|port|database|user|seconds|reason|constraint)\)", texts)
    assert "s3cret" not in f"{found} {message}"


def test_what_a_restart_of_the_server_mends_is_tried_again_by_the_table_alone() -> None:
    """Guards the messages' `retry` and `scope` (CORRECTNESS 28): a target that is restarted must
    not end the run, which reads the source's log meanwhile."""
    for error in (
        errors.AdminShutdown("terminating connection"),
        psycopg.OperationalError("connection failed: Connection refused"),
        errors.TooManyConnections("too many clients already"),
        errors.LockNotAvailable("lock timeout"),
        errors.DeadlockDetected("deadlock detected"),
        errors.DiskFull("no space left on device"),
        errors.ReadOnlySqlTransaction("read-only transaction"),
    ):
        found = translate(error, PARAMS, table=TABLE)
        assert isinstance(found, ReplicationError)
        assert (found.retry, found.scope) == (Retry.AUTO, Scope.TABLE), found.code


def test_the_connection_is_told_where_it_may_wait_and_not_what_it_may_lose() -> None:
    """Guards the session's settings: without a lock's time limit a merge waits behind somebody's
    open transaction for ever; under another isolation a late merge is not seen."""
    from replicators.targets.postgresql.connections import OPTIONS

    assert OPTIONS["lock_timeout"] == "30000" and OPTIONS["statement_timeout"] == "0"
    assert OPTIONS["default_transaction_isolation"] == "read committed"
    assert "synchronous_commit" not in OPTIONS
