"""Maps errors of psycopg and libpq to `ReplicationError`s by a table of rules. A driver's text
never gets into them."""

from __future__ import annotations

from replicators.connectors.model.schema import TableId
from replicators.connectors.postgres.params import facts as facts_of
from replicators.connectors.postgres.rules import Rule, code_by, name_of
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.postgresql import sql
from replicators.sources.postgresql.params import PostgresqlParams

RULES = (
    Rule("source:slot-missing", "42704", r"replication slot"),
    Rule("source:position-lost", "42704", r"publication"),
    Rule("source:snapshot-lost", "", r"snapshot .* does not exist|invalid snapshot identifier"),
    Rule("source:snapshot-lost", "", r"could not import the requested snapshot"),
    Rule("source:slot-in-use", "55006", r"replication slot"),
    Rule("source:slot-invalidated", "55000", r"can no longer (get|access)|invalidated"),
    Rule("source:slot-invalidated", "58P01", r"WAL segment"),
    Rule("source:wal-level", "55000", r"wal_level"),
    Rule("source:standby", "", r"recovery is in progress|(during|in) recovery$"),
    Rule("source:slots-used-up", "53400", r"replication slots"),
    Rule("source:senders-used-up", "", r"max_wal_senders"),
    Rule("source:connections-used-up", "53300"),
    Rule("source:replication-right", "42501", r"replication"),
    Rule(
        "source:publication-right",
        "42501",
        r"must be owner|publication|permission denied for database",
    ),
    Rule("source:row-security", "42501", r"row-level security"),
    Rule("source:usage-right", "42501", r"schema"),
    Rule("source:select-right", "42501"),
    Rule("source:table-missing", "42P01"),
    Rule("source:login-refused", "28"),
    Rule("source:database-missing", "3D000"),
    Rule(
        "source:value-unsupported", "", r"out of range|overflow|exceeds? .*range|array.*dimension"
    ),
    Rule("source:text-encoding", "22021"),
    Rule("source:text-encoding", "22P05"),
    Rule("source:timeout", "57014"),
    Rule("source:connection-lost", "57P"),
    Rule("source:unknown-host", "", r"translate host name|resolve host|name resolution|not known"),
    Rule("source:timeout", "", r"timeout expired|timed out"),
    Rule("source:login-refused", "", r"authentication failed|no password supplied|pg_hba\.conf"),
    Rule("source:login-refused", "", r"role \".*\" does not exist|not permitted to log in"),
    Rule(
        "source:replication-right", "", r"replication role|REPLICATION attribute|start WAL sender"
    ),
    Rule("source:database-missing", "", r"database \".*\" does not exist"),
    Rule("source:connections-used-up", "", r"too many (clients|connections)|connection slots"),
    Rule("source:connection-lost", "", r"server closed the connection|connection is (lost|closed)"),
    Rule(
        "source:connection-lost",
        "",
        r"no connection to the server|could not (send|receive) data|reset by peer|broken "
        r"pipe|EOF detected|lost synchronization",
    ),
    Rule(
        "source:connection-lost",
        "",
        r"starting up|shutting down|terminating connection|recovery mode",
    ),
    Rule("source:tls", "", r"SSL|certificate|TLS"),
    Rule(
        "source:unreachable", "", r"refused|No such file|unreachable|No route|connection to server"
    ),
    Rule("source:connection-lost", "08"),
)
ENCODING = "a text is not valid in the database's encoding, or has no form in Unicode"


def code_of(err: BaseException) -> str:
    """The error code for a driver's error; `internal:unexpected` where no rule fits."""
    return code_by(RULES, err)


def translate(
    err: BaseException,
    params: PostgresqlParams | None = None,
    *,
    table: TableId | None = None,
    **facts: object,
) -> Exception:
    """The `ReplicationError` for `err`; raise it `from err`. An error that is a `ReplicationError`
    already is returned unchanged."""
    if isinstance(err, ReplicationError):
        return err
    code = code_of(err)
    if table is not None and code == "source:text-encoding":
        code, facts = (
            "source:value-unsupported",
            {"column": "not reported", "reason": ENCODING, **facts},
        )
    known: dict[str, object] = {} if params is None else facts_of(params)
    if table is not None:
        known["quoted"] = sql.table(table)
    if code == "source:position-lost":
        known["reason"] = "its publication was dropped"
    if code == "internal:unexpected":
        known["name_of_error"] = name_of(err)
    return ReplicationError(code, table=table, **{**known, **facts})
