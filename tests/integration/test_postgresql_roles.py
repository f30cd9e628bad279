"""What a role's or a server's settings must not change: which rows are read, how long connections
stay, what may be written."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from replicators.connectors.model.schema import TableId, TableSelection
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.postgresql.checks import PostgresqlChecks
from replicators.sources.postgresql.connections import connect
from replicators.sources.postgresql.log import LogControl, LogReader
from replicators.sources.postgresql.params import PostgresqlParams
from replicators.sources.postgresql.rows import RowReader
from replicators.sources.postgresql.snapshot import ChunkReader, snapshot_first
from tests.integration.postgresql_source import begin, describe, params_of
from tests.servers import Database

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(120),
    pytest.mark.oldest_postgresql(is_long=True),
]

SLOT = "roles_slot"
ROLE = "plain_reader"


@pytest.fixture
def plain(database: Database) -> PostgresqlParams:
    """An owner of tables who may replicate and do nothing else."""
    database.execute(f"DROP ROLE IF EXISTS {ROLE}")
    params = database.user(ROLE, "LOGIN REPLICATION")
    database.execute(f"GRANT CREATE ON DATABASE {database.name} TO {ROLE}")
    return params_of(database, user=params["user"])


def code_and_suggestion(params: PostgresqlParams, name: str) -> list[tuple[str, str]]:
    with PostgresqlChecks(params) as checks:
        found = checks.tables([TableSelection(TableId("public", name))])
    return [(p.code, p.message.suggestion) for p in found]


@pytest.mark.parametrize("where", ["t", "p_1"])
def test_rows_that_a_policy_hides_are_never_left_out_in_silence(
    database: Database, plain: PostgresqlParams, where: str
) -> None:
    """Guards `row_security` in `connections.OPTIONS`: a policy that is forced upon the owner would
    leave rows out of the copy, and out of what is read by key, while the log goes on with the
    changes of all."""
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, tenant text); CREATE TABLE p (id int PRIMARY KEY, "
        "tenant text)"
        " PARTITION BY RANGE (id); CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (10);"
        f"ALTER TABLE t OWNER TO {ROLE}; ALTER TABLE p OWNER TO {ROLE}; ALTER TABLE p_1 OWNER TO "
        f"{ROLE};"
        f"INSERT INTO {where} VALUES (1, 'a'), (2, 'b'); CREATE POLICY mine ON {where} USING "
        "(tenant = 'a');"
        f"ALTER TABLE {where} ENABLE ROW LEVEL SECURITY"
    )
    name = where[0]
    (table,) = describe(database, name)
    assert code_and_suggestion(plain, name) == []
    database.execute(f"ALTER TABLE {where} FORCE ROW LEVEL SECURITY")
    ((code, suggestion),) = code_and_suggestion(plain, name)
    assert code == "source:row-security" and f'ALTER ROLE "{ROLE}" BYPASSRLS;' in suggestion

    reader, session = begin(database, SLOT, [table])
    with reader, session:
        (chunk,) = session.plan(table, rows_per_chunk=10)
        with pytest.raises(ReplicationError) as caught:
            list(ChunkReader(plain, session.point.token)(chunk, table))
        assert caught.value.code == "source:row-security"
    if where == "t":
        keys = pa.table({"id": pa.array([1, 2], pa.int32())})
        with RowReader(plain) as rows, pytest.raises(ReplicationError) as caught:
            rows.read(table, keys)
        assert caught.value.code == "source:row-security"
    database.execute(f"ALTER ROLE {ROLE} BYPASSRLS")
    assert code_and_suggestion(plain, name) == []


def test_a_partition_that_may_not_be_read_is_named(
    database: Database, plain: PostgresqlParams
) -> None:
    """Guards `checks.RIGHTS`: a copy reads partitions by their own names, for which a right to read
    their table is none."""
    database.execute(
        "CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id);"
        "CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (10);"
        f"ALTER TABLE p OWNER TO {ROLE}"
    )
    ((code, suggestion),) = code_and_suggestion(plain, "p")
    assert code == "source:select-right"
    assert f'GRANT SELECT ON public.p_1 TO "{ROLE}"' in suggestion
    database.execute(f"GRANT SELECT ON p_1 TO {ROLE}")
    assert code_and_suggestion(plain, "p") == []


def test_a_role_that_only_reads_by_default_can_be_followed(
    database: Database, plain: PostgresqlParams
) -> None:
    """Guards `default_transaction_read_only` in `connections.OPTIONS`: publications are made and
    heartbeats are written, and the assessment had found no fault with such a role."""
    database.execute(
        f"ALTER ROLE {ROLE} SET default_transaction_read_only = on; CREATE TABLE t (id int "
        "PRIMARY KEY);"
        f"ALTER TABLE t OWNER TO {ROLE}"
    )
    tables = describe(database, "t")
    reader = LogReader(plain, SLOT)
    reader.prepare(tables, None)
    snapshot_first(plain, SLOT, reader).close()
    with LogControl(plain, SLOT) as control:
        assert control.heartbeat() > 0
        control.drop()


def test_limits_on_sessions_end_neither_a_view_nor_a_quiet_connection(
    database: Database, plain: PostgresqlParams
) -> None:
    """Guards `connections.LIMITS`: a view lasts as long as the copy, and between two heartbeats a
    connection is idle; ended each time, a copy would begin again without an end."""
    database.execute(f"ALTER ROLE {ROLE} SET idle_session_timeout = '200ms'")
    if int(database.execute("SHOW server_version_num")[0][0]) >= 170000:
        database.execute(f"ALTER ROLE {ROLE} SET transaction_timeout = '200ms'")
    with connect(plain) as quiet, connect(plain) as holder:
        holder.execute("BEGIN")
        holder.execute("SELECT 1")
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            database.execute("SELECT pg_sleep(0.2)")
        assert quiet.execute("SELECT 1").fetchone() == (1,)
        assert holder.execute("SELECT 1").fetchone() == (1,)
        holder.rollback()
